"""The map as a reader meets it: whatever is wrong with the file or in it, there is no map, and nobody waits long."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose._native import ffi, lib

SIZE = ffi.sizeof("struct ns_map")
HEADER = ffi.offsetof("struct ns_map", "passing")


def sound() -> Any:
    table = ffi.new("struct ns_map *")
    table.magic, table.version, table.size = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, SIZE
    table.strategy, table.base, table.count, table.door = lib.NS_STRATEGY_PORT, 31000, 100, 1011
    return table


def content(**fields: int) -> bytes:
    table = sound()
    for field, value in fields.items():
        setattr(table, field, value)
    return bytes(ffi.buffer(table))


def opens(path: Path) -> bool:
    found = lib.ns_map_open(os.fsencode(path))
    if found == ffi.NULL:
        return False
    lib.ns_map_close(found)
    return True


def test_a_sound_map_opens_and_answers_in_both_directions(tmp_path: Path) -> None:
    table = sound()
    table.requested[42], table.window[3000] = 3000, 31042
    (tmp_path / "map").write_bytes(bytes(ffi.buffer(table)))
    found = lib.ns_map_open(os.fsencode(tmp_path / "map"))
    view = ffi.new("struct ns_view *")
    assert lib.ns_map_look(found, 3000, view) == 0
    assert (view.window, view.requested) == (31042, 0)
    assert lib.ns_map_look(found, 31042, view) == 0
    assert (view.window, view.requested) == (0, 3000)
    lib.ns_map_close(found)


@pytest.mark.attack(106)
@pytest.mark.parametrize(
    "field",
    [
        {"magic": 1},
        {"version": lib.NS_MAP_VERSION + 1},
        {"size": SIZE - 1},
        {"strategy": 0},
        {"strategy": 4},
        {"strategy": 2},  # device, without a device
        {"count": 0},
        {"count": 4097},
        {"base": 0},
        {"base": 65500},
        {"door": 0},
        {"passing_count": 65},
    ],
)
def test_nonsense_in_the_header_is_no_map(tmp_path: Path, field: dict[str, int]) -> None:
    (tmp_path / "map").write_bytes(content(**field))
    assert not opens(tmp_path / "map")


@pytest.mark.attack(106)
def test_what_is_no_regular_file_of_full_size_is_no_map(tmp_path: Path) -> None:
    whole, short, fifo, link = (tmp_path / name for name in ("whole", "short", "fifo", "link"))
    whole.write_bytes(content())
    short.write_bytes(content()[:-1])
    os.mkfifo(fifo)
    link.symlink_to(whole)
    assert opens(whole)
    for path in (short, fifo, link, tmp_path, tmp_path / "absent"):
        assert not opens(path)


@pytest.mark.attack(106)
@pytest.mark.parametrize("window", [1, 30999, 31001, 31100, 65535])
def test_an_entry_that_its_slot_contradicts_is_no_map(window: int) -> None:
    table = sound()
    table.requested[42] = 3000
    table.window[3000] = window
    assert lib.ns_map_look(table, 3000, ffi.new("struct ns_view *")) == -1
    assert lib.ns_map_look(table, 3001, ffi.new("struct ns_view *")) == 0


PORT, SLOT = st.integers(0, 65535), st.integers(0, lib.NS_MAP_SLOTS - 1)


@given(st.binary(min_size=HEADER, max_size=HEADER), PORT, PORT, PORT, SLOT, st.booleans())
def test_nothing_in_it_leads_out_of_the_map(
    header: bytes, port: int, window: int, requested: int, slot: int, plausible: bool
) -> None:
    table = sound()
    ffi.memmove(table, header, HEADER)
    table.window[port] = window
    table.requested[slot] = requested
    table.sequence &= ~1  # a writer that never ends is another test
    if plausible:
        table.magic, table.version, table.size = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, SIZE
    view = ffi.new("struct ns_view *")
    if lib.ns_map_look(table, port, view) == 0:
        assert 0 < view.base <= view.base + view.count - 1 <= 65535
        assert view.window == 0 or view.base <= view.window < view.base + view.count


def test_a_writer_that_never_ends_is_no_map() -> None:
    """The reader gives up by itself, while the writer is still in the middle."""
    table = sound()
    lib.ns_map_begin(table)
    assert lib.ns_map_look(table, 3000, ffi.new("struct ns_view *")) == -1
    lib.ns_map_end(table)
    assert lib.ns_map_look(table, 3000, ffi.new("struct ns_view *")) == 0


def test_a_reader_sees_what_was_written_as_a_whole() -> None:
    """Two slots swap what they stand for, many times; there is no moment at which neither or both have it."""
    table = sound()
    table.requested[1], table.window[3000] = 3000, 31001
    stop = threading.Event()

    def swap() -> None:
        while not stop.wait(0.0001):  # a supervisor has other things to do, too
            lib.ns_map_begin(table)
            table.requested[1], table.requested[2] = table.requested[2], table.requested[1]
            table.window[3000] = 31001 + 31002 - table.window[3000]
            lib.ns_map_end(table)

    writer = threading.Thread(target=swap)
    writer.start()
    view = ffi.new("struct ns_view *")
    seen = set()
    for _ in range(3000):
        assert lib.ns_map_look(table, 3000, view) == 0
        seen.add(view.window)
    stop.set()
    writer.join()
    assert seen <= {31001, 31002}


@pytest.mark.attack(106)
@pytest.mark.parametrize("wrong", ["absent", "short", "version", "fifo", "symlink"])
def test_a_program_without_a_map_reaches_nothing_local(
    tmp_path: Path, python: Callable[[Path, str], list[str]], wrong: str
) -> None:
    path = tmp_path / "map"
    if wrong == "short":
        path.write_bytes(content()[:100])
    elif wrong == "version":
        path.write_bytes(content(version=lib.NS_MAP_VERSION + 1))
    elif wrong == "fifo":
        os.mkfifo(path)
    elif wrong == "symlink":
        (tmp_path / "real").write_bytes(content())
        path.symlink_to(tmp_path / "real")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert python(path, ATTEMPTS.replace("PORT", str(port))) == ["EACCES"] * 7 + ["ENETUNREACH or so"]


ATTEMPTS = """
import errno
def attempt(call):
    try: call()
    except OSError as error: return errno.errorcode[error.errno]
    return "done"
udp = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(attempt(lambda: socket.socket().connect(("127.0.0.1", PORT))))
print(attempt(lambda: socket.socket(socket.AF_INET6).connect(("::1", PORT))))
print(attempt(lambda: socket.socket().bind(("127.0.0.1", 0))))
print(attempt(lambda: socket.socket().bind(("", 0))))
print(attempt(lambda: socket.socket().listen()))
print(attempt(lambda: udp().sendto(b"x", ("127.0.0.1", PORT))))
print(attempt(lambda: udp().sendmsg([b"x"], [], 0, ("127.0.0.1", PORT))))
a, b = socket.socketpair()
a.send(b"not inet")
other = udp()
other.connect_ex(("192.0.2.1", 9))
print("ENETUNREACH or so")
"""
