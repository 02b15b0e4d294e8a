"""What a session holds before its command runs: all of it or nothing, and never what another one has."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap import reservation
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.reservation import Reservation

from netsandbox.backends.namespaces import launch
from netsandbox.errors import HostError, UsageError

Reserve = Callable[..., Reservation]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_two_sessions_never_share_a_port(reserve: Reserve) -> None:
    windows = [reserve().window for _ in range(3)]
    ports = [port for window in windows if window is not None for port in window.ports]
    assert len(ports) == len(set(ports)) == 30
    assert len({window.device for window in windows if window is not None}) == 3


@pytest.mark.attack(220)
def test_a_lock_file_that_is_removed_gives_no_window_twice(reserve: Reserve) -> None:
    """H8: a cleaner of /tmp removes the shared file while a session runs, and the next session makes a new one."""
    first = reserve()
    os.unlink(reservation.HOST_LOCKS)
    second = reserve()
    assert first.window is not None
    assert second.window is not None
    assert not set(first.window.ports) & set(second.window.ports)
    assert first.window.device != second.window.device
    base = first.window.base
    with pytest.raises(HostError, match="another session has"):
        reserve(base=base)
    first.close()
    assert reserve(base=base).window is not None


def test_a_removed_lock_file_of_this_user_leaves_the_shared_one(reserve: Reserve, state: Path) -> None:
    first = reserve()
    (state / "ports").unlink()
    second = reserve()
    assert first.window is not None
    assert second.window is not None
    assert not set(first.window.ports) & set(second.window.ports)


@pytest.mark.parametrize("spoilt", ["folder", "no locks"])
def test_without_a_lock_file_of_this_user_the_shared_one_is_enough(
    reserve: Reserve, state: Path, monkeypatch: pytest.MonkeyPatch, spoilt: str
) -> None:
    """A home on a network file system may know no locks; that must not end every session."""
    if spoilt == "folder":
        (state / "ports").mkdir()
    else:
        opened, asked = RangeLock.open, RangeLock.obstacle

        def no_locks(self: RangeLock, start: int, length: int) -> tuple[int, int] | None:
            if self in private:
                raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
            return asked(self, start, length)

        private: list[RangeLock] = []

        def remember(path: str, *, shared: bool) -> RangeLock:
            lock = opened(path, shared=shared)
            if not shared:
                private.append(lock)
            return lock

        monkeypatch.setattr(RangeLock, "open", remember)
        monkeypatch.setattr(RangeLock, "obstacle", no_locks)
    before = descriptors()
    windows = [reserve().window, reserve().window]
    assert descriptors() == before + 2  # only the shared file, once for each
    assert windows[0] is not None
    assert windows[1] is not None
    assert not set(windows[0].ports) & set(windows[1].ports)


def test_a_pool_that_is_full_is_an_error_that_leaves_nothing(reserve: Reserve) -> None:
    kept = [reserve() for _ in range(3)]
    before = descriptors()
    with pytest.raises(HostError, match=r"no window of 10 is free.*; "):
        reserve()
    assert descriptors() == before
    kept[1].close()
    reserve()


def test_whatever_is_closed_can_be_had_again(reserve: Reserve, free_range: Callable[[int], int]) -> None:
    base = free_range(4)
    for _ in range(3):
        held = reserve(base=base, count=4, publish=((3000, base + 1),))
        held.close()
        held.close()  # once more is no error


def test_the_kernel_frees_what_a_killed_process_held(
    reserve: Reserve, state: Path, free_range: Callable[[int], int]
) -> None:
    """INV-10: kill -9, and the window is free."""
    base = free_range(4)
    script = (
        "import sys\nfrom netsandbox_portmap import reservation as r, localhost_settings as s\n"
        f"r.HOST_LOCKS = {reservation.HOST_LOCKS!r}\n"
        f"held = r.Reservation(s.LocalhostSettings(base={base}, count=4), {str(state)!r})\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(HostError, match=f"another session has {base}-{base + 3}"):
            reserve(base=base, count=4)
        other.kill()
    reserve(base=base, count=4)


def test_without_a_window_nothing_is_held_or_said(reserve: Reserve) -> None:
    held = reserve(publish=())
    assert (held.window, held.by_name_port, held.settings.trapped_calls) == (None, None, ())
    assert held.environment({b"A": b"1"}) == {b"A": b"1"}


@pytest.mark.parametrize(
    ("settings", "trapped_calls", "by_name"),
    [
        ({}, ("listen",), True),
        ({"publish": ((3000, None),)}, ("listen",), True),
        ({"count": 1}, ("listen",), False),
        ({"strategy": "fail"}, ("bind", "listen"), False),
        ({"strategy": "fail", "publish": ()}, ("bind", "listen"), False),
        ({"strategy": "rewire-device"}, ("listen",), True),
        ({"strategy": "rewire-device", "publish": ()}, (), False),
        ({"strategy": "rewire-port"}, ("listen",), True),
    ],
)
def test_what_the_filter_asks_and_who_has_the_last_port(
    reserve: Reserve, settings: dict[str, Any], trapped_calls: tuple[str, ...], by_name: bool
) -> None:
    """INV-7: a session with a guard has every bind and listen brought before it."""
    held = reserve(**settings)
    assert held.window is not None
    assert held.settings.trapped_calls == trapped_calls
    assert held.by_name_port == (held.window.last if by_name else None)


def test_the_command_learns_its_window(reserve: Reserve) -> None:
    held = reserve(strategy="rewire-device")
    assert held.window is not None
    assert held.environment({}) == {
        b"LISTENING_BASE_PORT": b"%d" % held.window.base,
        b"LISTENING_PORT_COUNT": b"10",
        b"LISTENING_LOOPBACK_DEVICE": held.window.device.encode(),
    }
    assert set(reserve().environment({})) == {b"LISTENING_BASE_PORT", b"LISTENING_PORT_COUNT"}
    assert reserve(device="127.0.0.9").environment({})[b"LISTENING_LOOPBACK_DEVICE"] == b"127.0.0.9"


def test_a_callers_own_words_about_a_window_do_not_stay(reserve: Reserve) -> None:
    stale = {b"LISTENING_BASE_PORT": b"1", b"LISTENING_PORT_COUNT": b"2"}
    held = reserve()
    assert held.window is not None
    assert held.environment(stale)[b"LISTENING_BASE_PORT"] == b"%d" % held.window.base


def test_a_device_is_one_sessions(reserve: Reserve) -> None:
    reserve(device="127.0.0.9")
    with pytest.raises(HostError, match=r"another session has the device 127\.0\.0\.9; "):
        reserve(device="127.0.0.9")


def test_the_locks_of_the_host_are_nothing_inside(reserve: Reserve) -> None:
    """INV-8."""
    assert reserve().covers() == ((os.path.join(launch.FILES, "nothing"), reservation.HOST_LOCKS),)


def test_the_locks_of_the_host_are_for_every_user(reserve: Reserve) -> None:
    reserve()
    found = os.lstat(reservation.HOST_LOCKS)
    assert stat.S_ISREG(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o666
    assert found.st_size == 0


@pytest.mark.parametrize("spoilt", ["link", "folder", "fifo", "two names"])
def test_where_the_shared_file_is_spoilt_the_users_own_is_taken(
    reserve: Reserve, state: Path, tmp_path: Path, spoilt: str
) -> None:
    """A link to somebody's file is not followed, and what is not covered inside is not said to be."""
    place, victim = Path(reservation.HOST_LOCKS), tmp_path / "victim"
    victim.write_text("mine")
    {
        "link": lambda: place.symlink_to(victim),
        "folder": place.mkdir,
        "fifo": lambda: os.mkfifo(place),
        "two names": lambda: os.link(victim, place),
    }[spoilt]()
    held = reserve()
    assert held.window is not None
    assert (state / "ports").exists()
    assert held.covers() == ()
    assert victim.read_text() == "mine"
    second = reserve()
    assert second.window is not None
    assert second.window.base != held.window.base


def test_where_nothing_can_be_locked_there_is_no_session(state: Path) -> None:
    """INV-1."""
    Path(reservation.HOST_LOCKS).mkdir()
    (state / "ports").mkdir()
    before = descriptors()
    with pytest.raises(HostError, match=r"cannot lock ports in .*; set XDG_STATE_HOME"):
        Reservation(LocalhostSettings(), str(state))
    assert descriptors() == before


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOLCK])
def test_out_of_descriptors_is_an_error_and_holds_nothing(
    state: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(RangeLock, "take", fail)
    before = descriptors()
    with pytest.raises(HostError):
        Reservation(LocalhostSettings(), str(state))
    assert descriptors() == before


def test_fixed_ports_are_bound_before_anything_runs(reserve: Reserve, free_range: Callable[[int], int]) -> None:
    outer = free_range(1)
    held = reserve(publish=((3000, outer), (4000, None)), pool=(31000, 31999))
    assert set(held.fixed) == {3000}
    assert {sock.getsockname()[:2] for sock in held.fixed[3000]} >= {("127.0.0.1", outer)}
    with socket.socket() as client:  # bound, but nobody answers yet
        assert client.connect_ex(("127.0.0.1", outer)) == errno.ECONNREFUSED
    with socket.socket() as rival, pytest.raises(OSError, match="in use"):
        rival.bind(("127.0.0.1", outer))


def test_a_fixed_port_that_somebody_has_is_an_error_now(reserve: Reserve, free_range: Callable[[int], int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = descriptors()
        with pytest.raises(HostError, match="cannot be had"):
            reserve(publish=((3000, server.getsockname()[1]),))
        assert descriptors() == before
    reserve()  # and the window was given back


def test_a_fixed_port_of_another_sessions_window_is_an_error(
    reserve: Reserve, free_range: Callable[[int], int]
) -> None:
    """Even while nobody has bound it."""
    other = reserve()
    assert other.window is not None
    with pytest.raises(HostError, match="belongs to another session; "):
        reserve(publish=((3000, other.window.base),))


def test_a_fixed_port_of_its_own_window_is_its_own(reserve: Reserve, free_range: Callable[[int], int]) -> None:
    base = free_range(5)
    held = reserve(base=base, count=5, publish=((3000, base + 2),))
    assert held.fixed[3000][0].getsockname()[1] == base + 2


def test_the_last_port_is_not_the_proxys_when_the_user_gave_it_away(
    reserve: Reserve, free_range: Callable[[int], int]
) -> None:
    base = free_range(5)
    held = reserve(base=base, count=5, publish=((3000, base + 4),))
    assert held.by_name_port is None
    assert held.fixed[3000][0].getsockname()[1] == base + 4


def test_what_can_never_listen_cannot_be_published(reserve: Reserve) -> None:
    """With `fail` the session's ports are the window's."""
    with pytest.raises(UsageError, match=r"--publish 3000: .*nothing can listen there; publish one of"):
        reserve(strategy="fail", publish=((3000, None),))


def test_a_guarded_window_is_free_on_the_host_as_a_whole(reserve: Reserve, free_range: Callable[[int], int]) -> None:
    base = free_range(20)
    with socket.create_server(("127.0.0.1", base + 3)):
        held = reserve(strategy="fail", pool=(base, base + 19))
        assert held.window is not None
        assert held.window.base == base + 10
        with pytest.raises(HostError, match=f"port {base + 3} of .* is in use on this host; "):
            reserve(strategy="fail", base=base, count=5)


def test_doors_are_those_of_the_ports_that_were_asked_for(reserve: Reserve) -> None:
    assert reserve().doors() == ()
    names = [door.name for door in reserve(connect_host=(HostPort(5432), HostPort(6379))).doors()]
    assert names == ["host-5432", "host6-5432", "host-6379", "host6-6379"]


class TestPreload:
    """Sessions with a port map."""

    @pytest.fixture(autouse=True)
    def built(self) -> None:
        pytest.importorskip("netsandbox_interpose._native")

    def test_the_map_covers_its_placeholder_and_has_no_name_later(self, reserve: Reserve, state: Path) -> None:
        from netsandbox_interpose.library import PORT_MAP

        held = reserve(strategy="rewire-port", engine="preload")
        assert held.map is not None
        assert held.covers()[-1] == (held.map.path, PORT_MAP)
        assert os.path.exists(held.map.path)
        assert stat.S_IMODE(os.stat(state / "maps").st_mode) == 0o700
        assert [door.name for door in held.doors()] == ["requests"]
        held.forget_map_name()
        assert not os.path.exists(held.map.path)

    def test_a_map_that_never_stood_is_removed(self, reserve: Reserve) -> None:
        held = reserve(strategy="rewire-port", engine="preload")
        assert held.map is not None
        path = held.map.path
        held.close()
        assert not os.path.exists(path)

    def test_the_command_gets_the_library(self, reserve: Reserve) -> None:
        from netsandbox_interpose.library import LIBRARY

        inside = reserve(strategy="rewire-port", engine="preload").environment({b"LD_PRELOAD": b"/lib/x.so"})
        assert os.fsencode(str(LIBRARY)) in inside[b"LD_PRELOAD"]
        assert b"/lib/x.so" in inside[b"LD_PRELOAD"]

    @pytest.mark.parametrize("missing", ["native", "library"])
    def test_without_the_library_there_is_no_session(
        self, reserve: Reserve, state: Path, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        """INV-1: never a session that was promised a rewriting and has none."""
        if missing == "native":
            monkeypatch.setitem(sys.modules, "netsandbox_interpose._native", None)
            monkeypatch.delattr("netsandbox_interpose._native", raising=False)
        else:
            monkeypatch.setattr("netsandbox_interpose.library.LIBRARY", str(state / "none.so"))
        before = descriptors()
        with pytest.raises(HostError, match=r"preload library cannot be used .*; reinstall"):
            reserve(strategy="rewire-port", engine="preload")
        assert descriptors() == before

    def test_a_map_that_cannot_be_made_is_an_error_that_says_where(self, reserve: Reserve, state: Path) -> None:
        state.mkdir(exist_ok=True)
        (state / "maps").write_text("in the way")
        before = descriptors()
        with pytest.raises(HostError, match=r"cannot make a port map in .*; free space there, or set XDG_STATE_HOME"):
            reserve(strategy="rewire-port", engine="preload")
        assert descriptors() == before
