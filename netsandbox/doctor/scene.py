"""Everything outside the session while the probes run: canaries, controls, name servers, a state directory."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from netsandbox.backends import own_addresses
from netsandbox.doctor.servers import Canary, Control, NameServer, ProbeResponder
from netsandbox.system import IS_MACOS

CONTROL_NAME = "control.doctor.test"
REBOUND_NAME = "rebound.doctor.test"
MARK = "netsandbox-doctor-was-here"
STATE = "XDG_STATE_HOME"
_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None
PREFIX = "netsandbox-doctor-"
SOCKETS = "s"  # a folder apart from the state directory: a session may be forbidden to make files beside that
MAX_SOCKET_PATH = 103 if IS_MACOS else 107  # of a Unix socket, without its NUL


class Scene:
    """A context manager. While it is open, sessions of this process keep their state in the scene's directory."""

    def __init__(self) -> None:
        self._closers: list[Callable[[], None]] = []
        self.directory = make_directory(tempfile.gettempdir())
        os.mkdir(os.path.join(self.directory, SOCKETS))
        self._closers.append(lambda: shutil.rmtree(self.directory, ignore_errors=True))
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        self.host4, self.host6 = own_address(4), own_address(6)
        self.by_name, self.by_door = self._control(), self._control()
        self.upstream = self._name_server("127.0.0.1")
        self.other_server = self._name_server(self.host4 or "127.0.0.1")
        self._late: Canary | None = None
        self.served_reached: int | None = None  # how often the probe's own server was reached from here
        self._responder = ProbeResponder()
        self._register_servers()
        self._descriptor = os.open(self.directory, os.O_RDONLY)
        os.set_inheritable(self._descriptor, True)  # noqa: FBT003 (the library's signature)
        self._closers.append(lambda: os.close(self._descriptor))
        self._keep_state_here()
        self.signals = 0
        self._count_signals()

    def __enter__(self) -> Scene:
        self._closers.append(self._responder.close)
        self._responder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def state(self) -> str:
        return os.path.join(self.directory, "state", "netsandbox")

    @property
    def work(self) -> str:
        """A working folder for the session, if it must not be the doctor's."""
        path = os.path.join(self.directory, "work")
        os.makedirs(path, exist_ok=True)
        return path

    @property
    def ready(self) -> str:
        """The file by which the probe requests the late socket."""
        return os.path.join(self.directory, SOCKETS, "ready")

    @property
    def late_path(self) -> str:
        return os.path.join(self.directory, SOCKETS, "late.sock")

    @property
    def served_path(self) -> str:
        """Where the probe makes a server, which nobody outside may reach."""
        return os.path.join(self.directory, SOCKETS, "own.sock")

    @property
    def forged(self) -> str:
        """A file that the probe tries to create in the state directory."""
        return os.path.join(self.state, "forged")

    def tcp(self, address: str) -> Canary:
        return self._canary(_family(address), socket.SOCK_STREAM, address)

    def udp(self, address: str) -> Canary:
        return self._canary(_family(address), socket.SOCK_DGRAM, address)

    def unix(self, name: str, kind: int = socket.SOCK_STREAM) -> Canary:
        """A socket in a folder of the scene; a name that begins with NUL is abstract."""
        path = name if name.startswith("\0") else os.path.join(self.directory, SOCKETS, name)
        return self._canary(socket.AF_UNIX, kind, path)

    def other_process(self) -> OtherProcess:
        other_process = OtherProcess()
        self._closers.append(other_process.close)
        return other_process

    def late_received(self) -> int | None:
        """None if the socket was not requested, or could not be created."""
        return None if self._late is None else self._late.received()

    def close(self) -> None:
        while self._closers:
            self._closers.pop()()

    def _canary(self, family: int, kind: int, address: str) -> Canary:
        canary = Canary(family, kind, address)
        self._closers.append(canary.close)
        return canary

    def _control(self) -> Control:
        control = Control()
        self._closers.append(control.close)
        return control

    def _name_server(self, address: str) -> NameServer:
        server = NameServer((CONTROL_NAME, REBOUND_NAME), address)
        self._closers.append(server.close)
        return server

    def _register_servers(self) -> None:
        for control in (self.by_name, self.by_door):
            self._responder.watch(control, control.serve)
        for server in (self.upstream, self.other_server):
            self._responder.watch(server.datagrams, server.serve_datagram)
            self._responder.watch(server.stream, server.serve_stream)
        self._responder.each_tick(self._make_late_socket)
        self._responder.each_tick(self._visit_served)

    def _make_late_socket(self) -> None:
        """The late socket is created when the probe, already inside, requests it."""
        if self._late is None and os.path.exists(self.ready):
            self._late = self.unix("late.sock")

    def _visit_served(self) -> None:
        """A program of the host tries the socket of the session, once it is there."""
        if self.served_reached is None and os.path.exists(f"{self.served_path}.ready"):
            with socket.socket(socket.AF_UNIX) as client:
                self.served_reached = int(client.connect_ex(self.served_path) == 0)
            os.close(os.open(f"{self.served_path}.tried", os.O_CREAT | os.O_WRONLY, 0o600))

    def _count_signals(self) -> None:
        """Count the signals that the session sends to its process group, which it shares with this process."""

        def count(_number: int, _frame: object) -> None:
            self.signals += 1

        before = signal.signal(signal.SIGURG, count)
        self._closers.append(lambda: _restore_handler(before))

    def _keep_state_here(self) -> None:
        before = os.environ.get(STATE)
        os.environ[STATE] = os.path.dirname(self.state)

        def restore() -> None:
            if before is None:
                os.environ.pop(STATE, None)
            else:
                os.environ[STATE] = before

        self._closers.append(restore)


class OtherProcess:
    """A process of the user outside the session, which waits and must not be reached."""

    def __init__(self) -> None:
        waits = [sys.executable, "-I", "-S", "-c", "input()"]
        self._process = subprocess.Popen(waits, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def was_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _restore_handler(before: _Handler) -> None:
    signal.signal(signal.SIGURG, before)


def make_directory(parent: str) -> str:
    """A private directory in *parent*, or in /tmp where the path of a unix socket would get too long (unix(7))."""
    room = MAX_SOCKET_PATH - len(os.fsencode(os.path.join(parent, PREFIX + 8 * "x", SOCKETS, "datagrams.sock")))
    return tempfile.mkdtemp(prefix=PREFIX, dir=parent if room >= 0 else "/tmp")  # noqa: S108 (mkdtemp makes it private)


def own_address(version: int) -> str | None:
    """An address of this host that is neither loopback nor link-local and on which a server can listen."""
    for address in sorted(own_addresses(), key=lambda each: each.value):
        text = address.text
        if address.version != version or text.startswith(("127.", "169.254.", "fe8", "fe9", "fea", "feb")):
            continue
        if text == "::1" or not _bindable(text):
            continue
        return text
    return None


def has_loopback6() -> bool:
    return _bindable("::1")


def _bindable(address: str) -> bool:
    try:
        Canary(_family(address), socket.SOCK_STREAM, address).close()
    except OSError:
        return False
    return True


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
