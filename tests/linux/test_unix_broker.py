"""The broker's own decisions: every branch that cannot find something out says no (INV-1, attack 117)."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.linux import caller, notify, unix_broker
from netsandbox.linux.repeats import Repeats
from netsandbox.linux.syscalls import abi_of
from netsandbox.linux.unix_broker import UnixBroker
from netsandbox.linux.unix_pins import Pin

CALLS = abi_of(os.uname().machine).calls


class FakeListener:
    """Keeps the answers; `valid` and `heard` say whether the caller still waits."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.valid = True
        self.heard = True

    def answer(self, call: Any, *, value: int = 0, error: int = 0) -> bool:
        assert value == 0
        self.answers.append(error)
        return self.heard

    def is_valid(self, call: Any) -> bool:
        return self.valid

    def exe_of(self, call: Any) -> str:
        return "/bin/probe"

    def answered(self, count: int = 1) -> list[int]:
        """The answers, once there are that many; the broker's threads give some of them."""
        deadline = time.monotonic() + 5
        while len(self.answers) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        return self.answers


class Scene:
    """This process is the caller as well: its own sockets, memory and paths are taken."""

    def __init__(self, log: Any, path: Path) -> None:
        self.listener = FakeListener()
        self.repeats = Repeats(log)
        self.log = log
        self.path = path
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen()
        self.pin = Pin(str(path))
        self.broker = UnixBroker(self.listener, self.repeats, (self.pin,))  # type: ignore[arg-type]

    def call(self, name: str, sock: socket.socket, address: bytes, length: int | None = None) -> notify.Call:
        self._memory = ctypes.create_string_buffer(address, max(len(address), 1))
        arguments = (sock.fileno(), ctypes.addressof(self._memory), len(address) if length is None else length, 0, 0, 0)
        return notify.Call(struct.pack("=QIIiIQ6Q", 1, os.getpid(), 0, CALLS[name], 0, 0, *arguments))

    def ask(self, name: str = "connect", *, path: str | None = None, length: int | None = None) -> int:
        """The answer to this call of a fresh Unix socket."""
        with socket.socket(socket.AF_UNIX) as sock:
            self.broker.serve(self.call(name, sock, unix(path or str(self.path)), length))
            return self.listener.answered()[-1]

    @property
    def denials(self) -> list[tuple[str, str | None]]:
        return [(r["reason"], r.get("detail")) for r in self.log.records if r["verdict"] == "deny"]


def unix(path: str) -> bytes:
    return (1).to_bytes(2, "little") + path.encode() + b"\0"


@pytest.fixture
def scene(log: Any, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    if os.geteuid():
        # The kernel tells a socket's network only to whoever rules it: the supervisor of its own session, or root of
        # this one. tests/integration/test_unix_sockets.py asks the real question as an ordinary user.
        monkeypatch.setattr(caller, "in_network_of", lambda pid, sock: True)
    made = Scene(log, short_tmp / "good.sock")
    yield made
    made.pin.close()
    made.server.close()


def test_it_takes_connect_and_bind_only(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        assert scene.broker.takes(scene.call("connect", sock, b""))
        assert scene.broker.takes(scene.call("bind", sock, b""))
        assert not scene.broker.takes(scene.call("socket", sock, b""))


def test_the_allowed_socket_is_connected_and_recorded_first(scene: Scene) -> None:
    assert scene.ask() == 0
    scene.server.accept()[0].close()
    (record,) = scene.log.records
    assert (record["verdict"], record["reason"], record["path"]) == ("allow", "rule", str(scene.path))


def test_no_record_no_call(scene: Scene) -> None:
    """INV-5: with a log that cannot be written even the allowed socket is refused, repeats too."""
    assert scene.ask() == 0
    scene.server.accept()[0].close()
    scene.log.failed = "disk full"
    scene.listener.answers.clear()
    assert scene.ask() == errno.EACCES
    scene.listener.answers.clear()
    (scene.path.parent / "link").symlink_to(scene.path)
    assert scene.ask(path=str(scene.path.parent / "link")) == errno.EACCES
    scene.server.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.server.accept()


@pytest.mark.attack(117)
@pytest.mark.parametrize("where", ["copy_socket", "memory", "open_path", "in_network_of"])
@pytest.mark.parametrize(
    "failure",
    [OSError(errno.EMFILE, "many"), OSError(errno.EPERM, "no"), OSError(errno.ESRCH, "gone"), ValueError("bug")],
    ids=["EMFILE", "EPERM", "ESRCH", "bug"],
)
def test_whatever_cannot_be_looked_at_is_refused_and_recorded(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, where: str, failure: Exception
) -> None:
    def fail(*_: object) -> None:
        raise failure

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(caller, where, fail)
    assert scene.ask() == errno.EACCES
    assert len(scene.denials) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_foreign_network_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "in_network_of", lambda *_: False)
    assert scene.ask() == errno.EPERM
    assert scene.denials == [("socket-family", "the socket belongs to another network")]


@pytest.mark.attack(118)
def test_a_caller_that_is_gone_gets_nothing_done(scene: Scene) -> None:
    scene.listener.valid = False
    assert scene.ask() == errno.EACCES
    assert scene.log.records == []  # nothing was attempted: an interrupted call comes again
    scene.server.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.server.accept()


def test_too_many_waiting_calls_are_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_broker, "MAX_WAITING", 0)
    assert scene.ask() == errno.EAGAIN
    assert scene.denials == [("limit", "too many calls wait at once")]


def test_no_thread_no_call(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(unix_broker._thread, "start_new_thread", fail)
    assert scene.ask() == errno.EACCES
    assert scene.denials[0][0] == "internal"


@pytest.mark.parametrize(
    ("path", "reason"), [("\0abstract", "unix-socket"), ("/etc/passwd", "unix-socket"), ("/", "unix-socket")]
)
def test_other_addresses_are_refused(scene: Scene, path: str, reason: str) -> None:
    assert scene.ask(path=path) == errno.EACCES
    assert scene.denials[0][0] == reason


def test_names_may_not_be_bound(scene: Scene) -> None:
    assert scene.ask("bind", path=str(scene.path.parent / "new.sock")) == errno.EACCES
    assert not (scene.path.parent / "new.sock").exists()


def test_lengths_that_the_kernel_refuses_are_refused_unread(scene: Scene) -> None:
    for length in (129, 1 << 31, (1 << 32) - 1):
        scene.listener.answers.clear()
        assert scene.ask(length=length) == errno.EINVAL


def test_the_hint_is_an_option_that_would_help(scene: Scene) -> None:
    other = scene.path.parent / "other.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(other))
        scene.ask(path=str(other))
    scene.ask(path="\0abstract")
    assert [record.get("hint") for record in scene.log.records] == [f"--allow-unix-socket {other}", None]


@pytest.mark.attack(120)
def test_a_success_that_the_caller_did_not_hear_of_is_told_when_it_asks_again(scene: Scene) -> None:
    """120: a signal took the caller away after the call was made; the restarted call must not fail."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sock:
        address = struct.pack("=H", 2) + server.getsockname()[1].to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
        scene.listener.heard = False
        scene.broker.serve(scene.call("connect", sock, address))
        scene.listener.answered(1)
        scene.listener.heard = True
        while scene.broker._waiting:
            time.sleep(0.002)
        for expected in (2, 3):
            scene.broker.serve(scene.call("connect", sock, address))
            scene.listener.answered(expected)
        assert scene.listener.answers == [0, 0, errno.EISCONN]


def test_ports_that_need_a_capability_stay_closed(scene: Scene) -> None:
    """We may bind them in the session's network; the workload may not."""
    for family, length in ((socket.AF_INET, 16), (socket.AF_INET6, 28)):
        with socket.socket(family) as sock:
            address = struct.pack("=H", family) + (80).to_bytes(2, "big") + bytes(length - 4)
            scene.listener.answers.clear()
            scene.broker.serve(scene.call("bind", sock, address))
            assert scene.listener.answered() == [errno.EACCES]


def test_repeats_are_counted_and_written_at_the_end(scene: Scene) -> None:
    for _ in range(5):
        scene.ask(path="\0x")
    scene.repeats.flush()
    assert [record["count"] for record in scene.log.records] == [1, 4]
