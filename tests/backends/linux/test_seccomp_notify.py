"""Notifications: what is read from the kernel's record, what is answered, what is written down."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.folding import FoldedRecords
from netsandbox.backends.linux import seccomp_notify
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.linux.syscall_outcome import Refusal
from netsandbox.backends.namespaces.listen_watch import ListenWatch
from netsandbox.backends.namespaces.syscall_broker import Broker

SEND, RECEIVE, VALID = 0xC0182101, 0xC0502100, 0x40082102


def notification(number: int = 41, arguments: tuple[int, ...] = (0, 0, 0), pid: int | None = None) -> bytes:
    six = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    who = os.getpid() if pid is None else pid
    return struct.pack("=QIIiIQ6Q", 7, who, 0, number, 0xC000003E, 0x400000, *six)


class Kernel:
    """Stands behind the ioctl: hands out notifications, keeps the answers."""

    def __init__(self, *waiting: bytes | int) -> None:
        self.waiting = list(waiting)
        self.answers: list[tuple[int, int, int, int]] = []
        self.valid = True
        self.gone = False

    def ioctl(self, fd: int, request: int, argument: Any) -> int:
        if fd < 0:
            raise ValueError("negative descriptor")
        if request == RECEIVE:
            next_one = self.waiting.pop(0)
            if isinstance(next_one, int):
                raise OSError(next_one, os.strerror(next_one))
            argument[:] = next_one
        elif request == SEND:
            if self.gone:
                raise OSError(errno.ENOENT, "gone")
            self.answers.append(struct.unpack("=QqiI", argument))
        elif request == VALID and not self.valid:
            raise OSError(errno.ENOENT, "gone")
        return 0


class FakeLoop:
    def __init__(self) -> None:
        self.watched: set[int] = set()

    def watch(self, fd: int, events: int, handler: Any) -> None:
        self.watched.add(fd)

    def unwatch(self, fd: int) -> None:
        self.watched.discard(fd)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, log: Any) -> Any:
    """serve(*notifications) -> (kernel, listener) after each was served."""

    def run(*waiting: bytes | int) -> tuple[Kernel, seccomp_notify.Listener]:
        kernel = Kernel(*waiting)
        monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
        listener = seccomp_notify.Listener(FakeLoop(), os.open(os.devnull, os.O_RDONLY), FoldedRecords(log))  # type: ignore[arg-type]
        for _ in waiting:
            listener.serve(select.EPOLLIN)
        return kernel, listener

    return run


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**31),
    st.integers(0, 600),
    st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6),
)
def test_a_notification_is_read_as_the_kernel_wrote_it(number: int, pid: int, call: int, arguments: list[int]) -> None:
    read = seccomp_notify.TrappedCall(struct.pack("=QIIiIQ6Q", number, pid, 0, call, 0xC000003E, 0, *arguments))
    assert (read.id, read.pid, read.number, read.arguments) == (number, pid, call, arguments)


def test_the_record_has_the_kernels_size() -> None:
    assert (seccomp_notify.NOTIFICATION.size, seccomp_notify.RESPONSE.size) == (
        RECEIVE >> 16 & 0x3FFF,
        SEND >> 16 & 0x3FFF,
    )


@pytest.mark.attack(125)
@pytest.mark.parametrize(
    ("arguments", "number", "reason", "family", "kind"),
    [
        ((1, 1, 0), errno.ESOCKTNOSUPPORT, "unix-socket", "unix", "stream"),
        ((1, 2 | 0o2000000, 0), errno.ESOCKTNOSUPPORT, "unix-socket", "unix", "dgram"),
        ((17, 3, 0x300), errno.EPERM, "socket-family", "packet", "raw"),
        ((2, 3, 1), errno.EPERM, "socket-family", "inet", "raw"),
        ((40, 1, 0), errno.EPERM, "socket-family", "vsock", "stream"),
        ((63, 15, 0), errno.EPERM, "socket-family", "63", "15"),
        ((0xDEAD << 32 | 38, 5, 0), errno.EPERM, "socket-family", "alg", "seqpacket"),
    ],
)
def test_a_socket_outside_the_list_is_denied_and_recorded(
    serve: Any, log: Any, arguments: tuple[int, ...], number: int, reason: str, family: str, kind: str
) -> None:
    kernel, _ = serve(notification(arguments=arguments))
    assert kernel.answers == [(7, 0, -number, 0)]
    (record,) = log.records
    assert (record["verdict"], record["reason"], record["family"], record["type"]) == ("deny", reason, family, kind)
    assert record["pid"] == os.getpid()
    assert record["exe"] == os.readlink("/proc/self/exe")


def test_the_same_wish_is_recorded_once_and_then_counted(serve: Any, log: Any) -> None:
    _, listener = serve(*[notification(arguments=(17, 3, 0))] * 5, notification(arguments=(17, 2, 0)))
    assert [record["count"] for record in log.records] == [1, 1]
    listener.close()
    assert [record["count"] for record in log.records] == [1, 1, 4]


@pytest.mark.attack(117)
def test_a_log_that_fails_or_raises_does_not_turn_no_into_yes(serve: Any, log: Any, monkeypatch: Any) -> None:
    """INV-1: an error in our own code answers EPERM, never CONTINUE."""
    log.failed = "disk full"
    kernel, _ = serve(notification(arguments=(1, 1, 0)))
    monkeypatch.setattr(seccomp_notify.Listener, "_refuse_socket", lambda *_: 1 // 0)
    other, _ = serve(notification(arguments=(1, 1, 0)))
    assert kernel.answers == [(7, 0, -errno.ESOCKTNOSUPPORT, 0)]
    assert other.answers == [(7, 0, -errno.EPERM, 0)]


@pytest.mark.attack(118)
def test_what_was_read_from_a_dead_caller_is_not_believed(serve: Any, log: Any) -> None:
    kernel, listener = serve()
    kernel.waiting, kernel.valid, kernel.gone = [notification(arguments=(17, 3, 0))], False, True
    listener.serve(select.EPOLLIN)
    assert log.records[0]["exe"] == "?"
    assert kernel.answers == []


def test_a_caller_that_vanished_before_we_looked_costs_nothing(serve: Any, log: Any) -> None:
    kernel, _ = serve(errno.ENOENT, notification(arguments=(17, 3, 0)))
    assert len(kernel.answers) == len(log.records) == 1


@pytest.mark.parametrize("events", [select.EPOLLHUP, select.EPOLLERR])
def test_when_the_last_process_is_gone_nobody_waits_for_its_calls(serve: Any, events: int) -> None:
    kernel, listener = serve()
    kernel.waiting = []  # asking would raise here and block for ever in the kernel
    listener.serve(events)
    assert listener._loop.watched == set()


def test_an_answer_after_the_end_is_lost_quietly(serve: Any) -> None:
    _, listener = serve()
    listener.close()
    assert not listener.answer(seccomp_notify.TrappedCall(notification()))


class Taker:
    """Takes one number; `work` is what it does with the call."""

    def __init__(self, number: int, work: Any) -> None:
        self.number = number
        self.serve = work

    def takes(self, call: seccomp_notify.TrappedCall) -> bool:
        return call.number == self.number


def test_takers_are_asked_in_turn_and_the_first_answers(serve: Any, log: Any) -> None:
    kernel, listener = serve()
    said: list[str] = []
    for name, number in (("other", 49), ("first", 50), ("second", 50)):
        listener.takers.append(Taker(number, lambda call, name=name: said.append(name)))
    kernel.waiting = [notification(50)]
    listener.serve(select.EPOLLIN)
    assert said == ["first"]
    assert (kernel.answers, log.records) == ([], [])  # the taker answers, nobody else


def test_what_nobody_takes_is_a_wish_for_a_socket(serve: Any, log: Any) -> None:
    kernel, listener = serve()
    listener.takers.append(Taker(50, lambda call: 1 // 0))
    kernel.waiting = [notification(41, (17, 3, 0))]
    listener.serve(select.EPOLLIN)
    assert kernel.answers == [(7, 0, -errno.EPERM, 0)]
    assert len(log.records) == 1


@pytest.mark.attack(117)
@pytest.mark.parametrize("where", ["takes", "serve"])
def test_a_taker_that_raises_is_a_no(serve: Any, log: Any, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """INV-1."""
    kernel, listener = serve()
    taker = Taker(50, lambda call: None)
    monkeypatch.setattr(taker, where, lambda call: 1 // 0)
    listener.takers.append(taker)
    kernel.waiting = [notification(50)]
    listener.serve(select.EPOLLIN)
    assert kernel.answers == [(7, 0, -errno.EPERM, 0)]
    assert [record["reason"] for record in log.records] == ["internal"]


def test_going_on_is_said_with_the_flag_and_nothing_else(serve: Any) -> None:
    kernel, listener = serve()
    listener.let_go_on(seccomp_notify.TrappedCall(notification(50)))
    assert kernel.answers == [(7, 0, 0, 1)]


def test_going_on_for_a_caller_that_is_gone_is_no_error(serve: Any) -> None:
    kernel, listener = serve()
    kernel.gone = True
    listener.let_go_on(seccomp_notify.TrappedCall(notification(50)))
    assert kernel.answers == []


@pytest.mark.attack(115)
def test_only_listen_ever_goes_on(serve: Any) -> None:
    """115: with every taker of an unguarded session, no other number of a trapped call hears CONTINUE."""
    kernel, listener = serve()
    calls = syscall_table(os.uname().machine).calls
    sockets = SimpleNamespace(listening=list)
    listener.takers.append(ListenWatch(listener._loop, listener, sockets, lambda *_: None))  # type: ignore[arg-type]
    for number in sorted(calls.values()):
        kernel.waiting = [notification(number, (0xFFFFFFFF, 1, 0))]
        listener.serve(select.EPOLLIN)
        *_, flags = kernel.answers[-1]
        assert flags == (1 if number == calls["listen"] else 0), number
    assert len(kernel.answers) == len(calls)


def test_a_guard_hears_listen_before_it_could_go_on(serve: Any) -> None:
    """INV-7: the broker of a guarded session takes listen itself."""
    kernel, listener = serve()
    calls = syscall_table(os.uname().machine).calls
    listener.takers.append(Broker(listener, listener._repeats, lambda *_: Refusal(errno.EACCES)))
    for name in ("bind", "listen"):
        kernel.waiting = [notification(calls[name], (0xFFFFFFFF, 1, 0))]
        listener.serve(select.EPOLLIN)
    assert [answer[2:] for answer in kernel.answers] == [(-errno.EBADF, 0)] * 2
