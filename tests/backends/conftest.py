"""Support for the backend's tests: a second opinion on BPF, a log that remembers, trapped calls of this process, the
native helper driven by hand."""

from __future__ import annotations

import _socket
import ctypes
import functools
import gc
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.bind_rule import BindRule
from netsandbox_portmap.window import Window

from netsandbox.audit.folding import FoldedRecords
from netsandbox.backends.linux import seccomp_notify
from netsandbox.backends.linux.helper_process import Message
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.namespaces import launch, plan, remote_process
from netsandbox.backends.namespaces.close_later import CloseLater
from tests.rig import ports
from tests.rig.fake_log import FakeLog
from tests.rig.guarded import ANY, COUNT, DEVICE, Scene
from tests.rig.planned import Start, planned

NO_ROWS = bytes(8)
CALLS = syscall_table(os.uname().machine).calls


def run_bpf(program: bytes, number: int, architecture: int, arguments: tuple[int, ...] = ()) -> int:
    """What the filter returns for a call: the classic BPF machine of the kernel's documentation, written anew."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(value & (1 << 64) - 1 for value in padded))
    steps = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        if code == 0x06:
            return int(constant)
        if code == 0x20:
            assert constant % 4 == 0
            (accumulator,) = struct.unpack_from("<I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code in (0x15, 0x35, 0x45):
            holds = {0x15: accumulator == constant, 0x35: accumulator >= constant, 0x45: bool(accumulator & constant)}
            at += if_true if holds[code] else if_false
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(scope="session")
def bpf() -> Any:
    """bpf(program, number, architecture, arguments) -> the filter's answer."""
    return run_bpf


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


class FakeListener:
    """Keeps the answers; `valid` and `heard` say whether the caller still waits."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.passed: list[seccomp_notify.TrappedCall] = []  # those for which the kernel heard CONTINUE
        self.valid = True
        self.heard = True

    def answer(self, call: Any, *, value: int = 0, error: int = 0) -> bool:
        assert value == 0
        self.answers.append(error)
        return self.heard

    def let_go_on(self, call: Any) -> None:
        self.passed.append(call)

    def is_valid(self, call: Any) -> bool:
        return self.valid

    def exe_of(self, call: Any) -> str:
        return "/bin/probe"

    def answered(self, count: int = 1) -> list[int]:
        """The answers, once there are that many; the broker's threads give some of them."""
        deadline = time.monotonic() + 20
        while len(self.answers) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        return self.answers


class Trapped:
    """System calls of this process, as if the filter had stopped them: its own sockets, memory and paths are taken."""

    def __init__(self, log: FakeLog) -> None:
        self.listener: Any = FakeListener()
        self.repeats = FoldedRecords(log)  # type: ignore[arg-type]
        self.log = log

    def call(
        self, name: str, sock: socket.socket | int, address: bytes = b"", length: int | None = None, pid: int = 0
    ) -> seccomp_notify.TrappedCall:
        self._memory = ctypes.create_string_buffer(address, max(len(address), 1))
        number = sock if isinstance(sock, int) else sock.fileno()
        second, third = ctypes.addressof(self._memory), len(address) if length is None else length
        if name == "listen":
            second, third = third, 0
        arguments = (number, second, third, 0, 0, 0)
        return seccomp_notify.TrappedCall(
            struct.pack("=QIIiIQ6Q", 1, pid or os.getpid(), 0, CALLS[name], 0, 0, *arguments)
        )

    @property
    def denials(self) -> list[tuple[str, str | None]]:
        return [(r["reason"], r.get("detail")) for r in self.log.records if r["verdict"] == "deny"]


@pytest.fixture
def trapped(log: FakeLog, monkeypatch: pytest.MonkeyPatch) -> Trapped:
    if os.geteuid():
        # The kernel tells a socket's network only to whoever rules it: the supervisor of its own session, or root of
        # this one. tests/integration/test_unix_sockets.py asks the real question as an ordinary user.
        monkeypatch.setattr(remote_process, "in_network_of", lambda pid, sock: True)
    return Trapped(log)


@pytest.fixture
def listen() -> Iterator[Callable[..., socket.socket]]:
    """listen(path, kind) -> a Unix server there."""
    opened: list[socket.socket] = []

    def start(path: Path | str, kind: int = socket.SOCK_STREAM) -> socket.socket:
        server = socket.socket(socket.AF_UNIX, kind)
        opened.append(server)
        server.bind(str(path))
        server.listen()
        return server

    yield start
    for server in opened:
        server.close()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Copies are closed where they are let go of, so that descriptors can be counted; the reaper has its own tests."""

    def end(_: CloseLater, dead: Any, then: Any) -> None:
        dead.close()
        then()

    if request.module.__name__.rpartition(".")[2] != "test_close_later":
        monkeypatch.setattr(CloseLater, "queue", end)


@pytest.fixture
def window() -> Window:
    """Neighbouring ports that nobody on this host has."""
    return Window(ports.free_window(COUNT), COUNT, DEVICE)


@pytest.fixture
def make(trapped: Any) -> Iterator[Callable[[BindRule], Scene]]:
    scenes: list[Scene] = []
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))

    def begin(rule: BindRule) -> Scene:
        scenes.append(Scene(trapped, rule))
        return scenes[-1]

    yield begin
    for scene in scenes:
        scene.close()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def guarded(make: Callable[[BindRule], Scene], window: Window) -> Scene:
    """A guard for strategy `fail`."""
    return make(BindRule(window, ("127.0.0.1", ANY)))


def _children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


@pytest.fixture
def start() -> Iterator[Start]:
    """start(*command) -> a helper; afterwards no child of ours may be left."""
    before, helpers = _children(), []
    null = os.open(os.devnull, os.O_RDWR)

    def begin(*command: str) -> launch.Helper:
        helpers.append(launch.Helper(command or ("true",), dict(os.environb), (null, null, null), NO_ROWS))
        helpers[-1].hide(())
        return helpers[-1]

    yield begin
    for helper in helpers:
        helper.close()
    os.close(null)
    assert _children() <= before


def _receive_but_spawner(receive: Callable[[], Message]) -> Message:
    """The spawner's message comes at any time, or never if the command ends first."""
    while (message := receive()).kind == "R":
        os.close(message.descriptors[0])
    return message


@pytest.fixture
def standing(start: Start) -> Iterator[Start]:
    """standing(*command) -> a helper whose command runs, with these further doors; its descriptors are closed."""
    opened: list[socket.socket | _socket.socket] = []

    def begin(
        *command: str, extra: tuple[plan.Door, ...] = (), view: plan.View | None = None, more: bytes = b""
    ) -> launch.Helper:
        helper = start(*command)
        helper.send_plan(planned(view, extra, more))
        doors = helper.doors(plan.doors() + extra)
        opened.extend(doors.values())
        helper.go()
        message = helper.receive()
        assert message.kind == "L"
        for descriptor in message.descriptors:
            os.close(descriptor)
        helper.receive = functools.partial(_receive_but_spawner, helper.receive)  # type: ignore[method-assign]
        helper.channel.settimeout(20)  # a helper that says nothing is a red test, not one that hangs
        return helper

    yield begin
    for sock in opened:
        sock.close()
