"""The guard's broker: every branch that cannot find something out says no (INV-1, attack 117)."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest

from netsandbox.backends.namespaces import remote_process
from tests.rig.guarded import Scene, v4


def test_it_takes_bind_and_listen_only(guarded: Scene) -> None:
    sock = guarded.socket()
    for name, taken in (("bind", True), ("listen", True), ("connect", False), ("socket", False)):
        assert guarded.broker.takes(guarded.trapped.call(name, sock)) is taken


def ask(guarded: Scene, window: Any, length: int | None = None) -> int:
    """The answer to a bind that the guard allows."""
    return guarded._serve(guarded.trapped.call("bind", guarded.socket(), v4("127.0.0.1", window.base), length))


def test_a_bind_in_the_window_is_made(guarded: Scene, window: Any) -> None:
    """The twin of the refusals below."""
    assert ask(guarded, window) == 0


@pytest.mark.attack(117)
@pytest.mark.parametrize("where", ["copy_socket", "memory", "in_network_of"])
@pytest.mark.parametrize(
    "failure",
    [OSError(errno.EMFILE, "many"), OSError(errno.EPERM, "no"), OSError(errno.ESRCH, "gone"), ValueError("bug")],
    ids=["EMFILE", "EPERM", "ESRCH", "bug"],
)
def test_whatever_cannot_be_looked_at_is_refused_and_recorded(
    guarded: Scene, window: Any, monkeypatch: pytest.MonkeyPatch, where: str, failure: Exception
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(remote_process, where, fail)
    assert ask(guarded, window) == errno.EACCES
    assert len(guarded.trapped.denials) == 1


def test_a_foreign_network_is_refused(guarded: Scene, window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_process, "in_network_of", lambda *_: False)
    assert ask(guarded, window) == errno.EPERM
    assert guarded.trapped.denials == [("socket-family", "the socket belongs to another network")]


@pytest.mark.attack(118)
def test_a_caller_that_is_gone_gets_nothing_done(guarded: Scene, window: Any) -> None:
    guarded.listener.valid = False
    assert ask(guarded, window) == errno.EACCES
    assert guarded.log.records == []  # nothing was attempted: an interrupted call comes again


@pytest.mark.attack(116)
def test_a_socket_that_was_put_in_place_of_an_internet_one_is_refused(guarded: Scene, short_tmp: Any) -> None:
    """The native broker passes on internet sockets only."""
    address = (1).to_bytes(2, "little") + os.fsencode(short_tmp / "x.sock") + b"\0"
    with socket.socket(socket.AF_UNIX) as sock:
        assert guarded._serve(guarded.trapped.call("bind", sock, address)) == errno.EACCES
    assert not (short_tmp / "x.sock").exists()


def test_a_unix_socket_listens_as_it_does_without_a_guard(guarded: Scene, short_tmp: Any) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(short_tmp / "x.sock"))
        assert guarded.listen(sock) == 0
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(short_tmp / "x.sock"))


def test_lengths_that_the_kernel_refuses_are_refused_unread(guarded: Scene, window: Any) -> None:
    for length in (129, 1 << 31, (1 << 32) - 1):
        assert ask(guarded, window, length) == errno.EINVAL


@pytest.mark.attack(120)
def test_a_success_that_the_caller_did_not_hear_of_is_told_when_it_asks_again(guarded: Scene, window: Any) -> None:
    """120: a signal took the caller away after the call was made; the restarted call must not fail."""
    sock, address = guarded.socket(), v4("127.0.0.1", window.base)
    guarded.listener.heard = False
    assert guarded.bind(sock, address) == 0
    guarded.listener.heard = True
    assert [guarded.bind(sock, address) for _ in range(2)] == [0, errno.EINVAL]
