"""The map as every process of the session sees it: whole from the start, written by one, torn for nobody."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose import _native
from netsandbox_portmap import port_map, window
from netsandbox_portmap.port_map import PortMap

ffi, lib = _native.ffi, _native.lib
SIZE = ffi.sizeof("struct ns_map")
OPTIONS = {
    "strategy": lib.NS_STRATEGY_PORT,
    "device": "127.78.32.1",
    "window_base": 20000,
    "window_count": 100,
    "door": 1011,
    "passing": (1011, 53, 5432),
}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "port-map")


@pytest.fixture
def ports(path):
    made = PortMap.create(_native, path, **OPTIONS)
    yield made
    made.close()


def seen(path):
    """The map as values, as a process that opens the file now gets it."""
    with open(path, "rb") as file:
        content = file.read()
    table = ffi.from_buffer("struct ns_map *", content)
    fields = [name for name, _ in ffi.typeof("struct ns_map").fields]
    values = {name: getattr(table, name) for name in fields}
    return SimpleNamespace(**{name: v if isinstance(v, int) else list(v) for name, v in values.items()}, all=content)


def test_the_largest_window_fills_the_map():
    assert window.MAX_PORTS == lib.NS_MAP_SLOTS


def test_the_header_says_what_it_was_given(ports, path):
    header = seen(path)
    assert (header.magic, header.version, header.size) == (lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, SIZE)
    assert header.strategy == lib.NS_STRATEGY_PORT
    assert bytes(header.device) == bytes([127, 78, 32, 1])
    assert (header.base, header.count, header.door) == (20000, 100, 1011)
    assert header.passing[: header.passing_count] == [1011, 53, 5432]
    assert not any(header.passing[3:])
    assert not any(header.requested)
    assert not any(header.window)
    assert header.sequence % 2 == 0


def test_the_token_is_in_the_map_and_new_each_time(ports, path, tmp_path):
    assert bytes(seen(path).token) == ports.token
    assert len(ports.token) == lib.NS_TOKEN_BYTES
    other = PortMap.create(_native, str(tmp_path / "other"), **OPTIONS)
    assert other.token != ports.token
    other.close()


@pytest.mark.attack(106)
def test_the_file_is_only_for_its_owner_and_has_no_holes(ports, path):
    """Attack 106: a hole would be a SIGBUS on a full disk."""
    status = os.stat(path)
    assert stat.S_ISREG(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_size == SIZE
    with open(path, "rb") as file:
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == SIZE


@pytest.mark.attack(106)
@pytest.mark.parametrize("kind", ["file", "link", "dangling", "fifo"])
def test_what_is_there_already_is_neither_used_nor_touched(path, tmp_path, kind):
    """Attack 106: a planted file, link or pipe at the path is an error."""
    elsewhere = tmp_path / "elsewhere"
    if kind == "file":
        (tmp_path / "port-map").write_bytes(b"planted")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        os.symlink(elsewhere, path)
        if kind == "link":
            elsewhere.write_bytes(b"planted")
    before = os.lstat(path)
    with pytest.raises(FileExistsError):
        PortMap.create(_native, path, **OPTIONS)
    assert os.lstat(path) == before
    assert not elsewhere.exists() or elsewhere.read_bytes() == b"planted"


def test_a_change_is_seen_at_once_and_leaves_the_sequence_even(ports, path):
    before = seen(path).sequence
    ports.set(20000, 3000)
    ports.set(20099, 65535)
    now = seen(path)
    assert (now.requested[0], now.requested[99]) == (3000, 65535)
    assert now.sequence == before + 4
    ports.clear(20000)
    now = seen(path)
    assert (now.requested[0], now.requested[99]) == (0, 65535)
    assert now.sequence == before + 6


def test_the_sequence_is_odd_while_a_slot_is_written(path):
    """What a reader sees in the middle of a change tells it to read again."""
    moments = []

    class Between:
        """The C side, with a look at the file on each side of the store."""

        ffi = _native.ffi

        class lib:
            NS_MAP_SLOTS, NS_MAP_PASSING, NS_TOKEN_BYTES = lib.NS_MAP_SLOTS, lib.NS_MAP_PASSING, lib.NS_TOKEN_BYTES
            NS_MAP_MAGIC, NS_MAP_VERSION = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION
            NS_STRATEGY_FAIL, NS_STRATEGY_PORT = lib.NS_STRATEGY_FAIL, lib.NS_STRATEGY_PORT

            @staticmethod
            def ns_map_begin(table):
                lib.ns_map_begin(table)
                moments.append((seen(path).sequence % 2, seen(path).requested[5]))

            @staticmethod
            def ns_map_end(table):
                moments.append((seen(path).sequence % 2, seen(path).requested[5]))
                lib.ns_map_end(table)

    ports = PortMap.create(Between, path, **OPTIONS)
    ports.set(20005, 3000)
    assert moments == [(1, 0), (1, 3000)]
    assert seen(path).sequence % 2 == 0
    ports.close()


@pytest.mark.parametrize("port", [19999, 20100, 0, -1, 65536])
def test_a_port_outside_the_window_is_refused(ports, path, port):
    before = seen(path).all
    with pytest.raises(ValueError, match="outside the window"):
        ports.set(port, 3000)
    with pytest.raises(ValueError, match="outside the window"):
        ports.clear(port)
    assert seen(path).all == before


@pytest.mark.parametrize("requested", [0, -1, 65536])
def test_what_is_no_port_cannot_be_set(ports, requested):
    with pytest.raises(ValueError, match="no port"):
        ports.set(20000, requested)


@pytest.mark.parametrize(
    "wrong",
    [
        {"window_base": 0},
        {"window_count": 0},
        {"window_count": lib.NS_MAP_SLOTS + 1},
        {"window_base": 65500, "window_count": 37},
        {"passing": range(1, lib.NS_MAP_PASSING + 2)},
        {"passing": [65536]},
        {"device": "localhost"},
        {"device": "127.1"},
        {"device": "192.0.2.1"},
        {"door": 65536},
        {"door": 0},
        {"strategy": 0},
        {"strategy": lib.NS_STRATEGY_PORT + 1},
    ],
)
def test_what_does_not_fit_makes_no_file(path, wrong):
    with pytest.raises((ValueError, OverflowError, OSError)):
        PortMap.create(_native, path, **{**OPTIONS, **wrong})
    assert not os.path.lexists(path)


def test_the_largest_window_and_the_longest_list_fit(path):
    passing = range(1, lib.NS_MAP_PASSING + 1)
    full = {**OPTIONS, "window_count": lib.NS_MAP_SLOTS, "passing": passing}
    ports = PortMap.create(_native, path, **full)
    ports.set(20000 + lib.NS_MAP_SLOTS - 1, 3000)
    now = seen(path)
    assert now.requested[lib.NS_MAP_SLOTS - 1] == 3000
    assert now.passing == list(passing)
    ports.close()


def test_a_disk_that_fills_up_leaves_no_file(path, monkeypatch):
    """INV-1: no map rather than a part of one."""

    def full(fd, data):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(port_map.os, "write", full)
    with pytest.raises(OSError, match="no space left"):
        PortMap.create(_native, path, **OPTIONS)
    assert not os.path.lexists(path)


def test_a_disk_that_takes_little_at_a_time_gets_everything(path, monkeypatch):
    write = os.write
    monkeypatch.setattr(port_map.os, "write", lambda fd, data: write(fd, data[:1000]))
    ports = PortMap.create(_native, path, **OPTIONS)
    assert os.stat(path).st_size == SIZE
    ports.close()


def test_after_close_nothing_can_be_written_and_the_file_stays(ports, path):
    ports.set(20000, 3000)
    ports.close()
    ports.close()
    with pytest.raises(ValueError, match="closed"):
        ports.set(20001, 3001)
    assert seen(path).requested[0] == 3000


def test_unlink_takes_the_file_away_and_may_come_twice(ports, path):
    ports.unlink()
    assert not os.path.exists(path)
    ports.unlink()
    ports.set(20000, 3000)  # whoever mapped it before still sees it


def test_no_descriptor_is_left_to_a_child(ports, path):
    told = subprocess.run(
        [sys.executable, "-c", "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in range(3, 64)"
         " if os.path.lexists(f'/proc/self/fd/{n}')])"],
        capture_output=True, text=True, check=True, close_fds=False, timeout=20,
    )  # fmt: skip
    assert path not in told.stdout


WINDOWS = st.integers(1, 65535).flatmap(
    lambda base: st.tuples(st.just(base), st.integers(1, min(lib.NS_MAP_SLOTS, 65536 - base)))
)


@given(
    window=WINDOWS,
    strategy=st.sampled_from([lib.NS_STRATEGY_FAIL, lib.NS_STRATEGY_DEVICE, lib.NS_STRATEGY_PORT]),
    door=st.integers(1, 65535),
    passing=st.sets(st.integers(1, 65535), max_size=lib.NS_MAP_PASSING).map(sorted),
    requested=st.lists(st.integers(1, 65535), unique=True, max_size=20),
)
def test_the_preload_library_reads_what_was_written(tmp_path_factory, window, strategy, door, passing, requested):
    """Whatever map can be made is believed by the C side, and says the same there in both directions."""
    base, count = window
    path = str(tmp_path_factory.mktemp("map") / "port-map")
    ports = PortMap.create(_native, path, strategy=strategy, device="127.78.32.1", window_base=base,
                           window_count=count, door=door, passing=passing)  # fmt: skip
    table = lib.ns_map_open(path.encode())
    assert table
    view = ffi.new("struct ns_view *")
    pairs = dict(zip(range(base, base + count), requested, strict=False))
    for port, wanted in pairs.items():
        ports.set(port, wanted)
    for port, wanted in pairs.items():
        assert lib.ns_map_look(table, wanted, view) == 0
        assert (view.window, view.passing) == (port, wanted in passing)
        assert lib.ns_map_look(table, port, view) == 0
        assert view.requested == wanted
        assert bytes(view.token) == ports.token
    for port in pairs:
        ports.clear(port)
        assert lib.ns_map_look(table, port, view) == 0
        assert view.requested == 0
    lib.ns_map_close(table)
    ports.close()


READER = """
import mmap, sys
sys.path[:0] = {paths!r}
from netsandbox_interpose import _native
ffi = _native.ffi
with open({path!r}, "rb") as file:
    memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
table = ffi.cast("const struct ns_map *", ffi.from_buffer(memory))
print("ready", flush=True)
good = torn = 0
while table.requested[99] != 1:
    before = table.sequence
    pair = (table.requested[0], table.requested[1])
    if before % 2 or table.sequence != before:
        continue
    good += 1
    torn += pair[0] == pair[1] != 0
print(good, torn)
"""


def test_a_reader_in_another_process_sees_every_state_whole(ports, path):
    """The pair moves between two slots; by the seqlock no reader finds it in both."""
    script = READER.format(paths=[entry for entry in sys.path if entry], path=path)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout.readline() == "ready\n"
            for _ in range(20000):
                ports.set(20000, 3000)
                ports.clear(20000)
                ports.set(20001, 3000)
                ports.clear(20001)
            ports.set(20099, 1)
            told = reader.communicate(timeout=20)[0].split()
        finally:
            reader.kill()
    assert int(told[0]) > 0
    assert told[1] == "0"


def test_a_reader_cannot_write(ports, path):
    with open(path, "rb") as file, pytest.raises(PermissionError):
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def test_both_tables_say_the_same_after_every_change(ports, path):
    """A port that is given to another slot leaves its first one; a slot that is used again lets its port go."""

    def pairs():
        now = seen(path)
        by_slot = {20000 + slot: requested for slot, requested in enumerate(now.requested) if requested}
        assert {port: requested for requested, port in enumerate(now.window) if port} == by_slot
        return by_slot

    ports.set(20000, 3000)
    ports.set(20001, 3001)
    assert pairs() == {20000: 3000, 20001: 3001}
    ports.set(20002, 3000)
    assert pairs() == {20001: 3001, 20002: 3000}
    ports.set(20002, 20002)
    assert pairs() == {20001: 3001, 20002: 20002}
    ports.clear(20001)
    ports.clear(20050)
    assert pairs() == {20002: 20002}
