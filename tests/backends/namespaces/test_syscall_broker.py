"""The broker's own decisions: every branch that cannot find something out says no (INV-1, attack 117)."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import time
from typing import Any

import pytest

from netsandbox.backends.namespaces import remote_process, syscall_broker


def test_it_takes_connect_and_bind_only(scene: Any) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        assert scene.broker.takes(scene.call("connect", sock, b""))
        assert scene.broker.takes(scene.call("bind", sock, b""))
        assert not scene.broker.takes(scene.call("socket", sock, b""))


@pytest.mark.attack(117)
@pytest.mark.parametrize("where", ["copy_socket", "memory", "open_path", "in_network_of"])
@pytest.mark.parametrize(
    "failure",
    [OSError(errno.EMFILE, "many"), OSError(errno.EPERM, "no"), OSError(errno.ESRCH, "gone"), ValueError("bug")],
    ids=["EMFILE", "EPERM", "ESRCH", "bug"],
)
def test_whatever_cannot_be_looked_at_is_refused_and_recorded(
    scene: Any, monkeypatch: pytest.MonkeyPatch, where: str, failure: Exception
) -> None:
    def fail(*_: object) -> None:
        raise failure

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(remote_process, where, fail)
    assert scene.ask() == errno.EACCES
    assert len(scene.denials) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_foreign_network_is_refused(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_process, "in_network_of", lambda *_: False)
    assert scene.ask() == errno.EPERM
    assert scene.denials == [("socket-family", "the socket belongs to another network")]


@pytest.mark.attack(118)
def test_a_caller_that_is_gone_gets_nothing_done(scene: Any) -> None:
    scene.listener.valid = False
    assert scene.ask() == errno.EACCES
    assert scene.log.records == []  # nothing was attempted: an interrupted call comes again
    scene.server.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.server.accept()


def test_too_many_waiting_calls_are_refused(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscall_broker, "MAX_WAITING", 0)
    assert scene.ask() == errno.EAGAIN
    assert scene.denials == [("limit", "too many calls wait at once")]


def test_no_thread_no_call(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(syscall_broker._thread, "start_new_thread", fail)
    assert scene.ask() == errno.EACCES
    assert scene.denials[0][0] == "internal"


def test_only_the_loop_s_thread_writes_the_log(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connect is made in a thread. If that fails, the caller is refused at once, and the record follows."""
    writers: list[int] = []
    note = scene.broker._repeats.note

    def fail(*_: object) -> int:
        raise ValueError("bug")

    def noted(*arguments: Any, **fields: Any) -> Any:
        writers.append(threading.get_ident())
        return note(*arguments, **fields)

    monkeypatch.setattr(syscall_broker, "_act", fail)
    monkeypatch.setattr(scene.broker._repeats, "note", noted)
    assert scene.ask() == errno.EACCES
    scene.listener.answers.clear()
    assert scene.ask() == errno.EACCES
    assert scene.denials == [("internal", "ValueError('bug')")]
    scene.broker.close()
    assert set(writers) == {threading.get_ident()}
    assert len(writers) == 4  # two records that allow, two of the errors


def test_lengths_that_the_kernel_refuses_are_refused_unread(scene: Any) -> None:
    for length in (129, 1 << 31, (1 << 32) - 1):
        scene.listener.answers.clear()
        assert scene.ask(length=length) == errno.EINVAL


@pytest.mark.attack(120)
def test_a_success_that_the_caller_did_not_hear_of_is_told_when_it_asks_again(scene: Any) -> None:
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


def test_ports_that_need_a_capability_stay_closed(scene: Any) -> None:
    """We may bind them in the session's network; the workload may not."""
    for family, length in ((socket.AF_INET, 16), (socket.AF_INET6, 28)):
        with socket.socket(family) as sock:
            address = struct.pack("=H", family) + (80).to_bytes(2, "big") + bytes(length - 4)
            scene.listener.answers.clear()
            scene.broker.serve(scene.call("bind", sock, address))
            assert scene.listener.answered() == [errno.EACCES]
