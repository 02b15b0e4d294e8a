"""The guard against callers that race it, die or cannot be looked at, and against faults of ours (INV-1, INV-7)."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netsandbox_portmap.bind_rule import BindRule
from netsandbox_portmap.window import Window

from netsandbox.backends.linux import procfs, sockaddr
from netsandbox.backends.namespaces import remote_process
from tests.rig.guarded import ANY, COUNT, V4, V6, Scene, port_of, v4


@pytest.mark.attack(117)
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ESRCH, errno.EPERM, errno.EACCES])
@pytest.mark.parametrize("where", ["copy_socket", "memory", "in_network_of"])
def test_whatever_cannot_be_looked_at_is_not_bound(
    guarded: Scene, window: Window, monkeypatch: pytest.MonkeyPatch, where: str, number: int
) -> None:
    monkeypatch.setattr(remote_process, where, _raises(OSError(number, "x")))
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == errno.EACCES
    assert port_of(sock) == 0
    assert [record["verdict"] for record in guarded.log.records] == ["deny"]


@pytest.mark.attack(117)
@pytest.mark.parametrize("error", [OSError(errno.ESRCH, "gone"), ValueError("bug"), OSError(errno.EMFILE, "many")])
def test_a_caller_whose_process_cannot_be_told_does_not_listen(
    guarded: Scene, window: Window, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    monkeypatch.setattr(procfs, "process_of", _raises(error))
    assert guarded.listen(sock) == errno.EACCES
    assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    assert guarded.records("socket")[-1]["verdict"] == "deny"


@pytest.mark.attack(117)
@pytest.mark.parametrize("name", ["read_endpoint", "with_port"])
def test_a_bug_of_ours_binds_nothing(guarded: Scene, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sockaddr, name, _raises(ValueError("bug")))
    sock = guarded.socket()
    before = len(guarded.listener.answers)
    guarded.broker.serve(guarded.trapped.call("bind", sock, v4("127.0.0.1", 0)))
    assert set(guarded.listener.answers[before:]) == {errno.EACCES}
    assert port_of(sock) == 0


@pytest.mark.attack(118)
def test_a_caller_that_is_gone_gets_nothing_done(guarded: Scene, window: Window) -> None:
    guarded.listener.valid = False
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == errno.EACCES
    assert guarded.listen(sock) == errno.EACCES
    assert port_of(sock) == 0
    assert guarded.log.records == []


@pytest.mark.attack(118)
def test_a_dead_process_is_refused(guarded: Scene) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    guarded.broker.serve(guarded.trapped.call("listen", 0, pid=child.pid))
    assert guarded.listener.answers == [errno.EACCES]


@pytest.mark.attack(116)
def test_a_descriptor_that_is_swapped_meanwhile_stays_as_it_is(
    guarded: Scene, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """116: another thread puts a second socket at the number after the first was taken: the first one is bound."""
    first, second = guarded.socket(), guarded.socket(V6)
    copy = os.dup(first.fileno())
    memory = remote_process.memory

    def swap(pid: int, address: int, length: int) -> bytes:
        os.dup2(second.fileno(), first.fileno())
        return memory(pid, address, length)

    monkeypatch.setattr(remote_process, "memory", swap)
    assert guarded.bind(first, v4("127.0.0.1", window.base)) == 0
    assert port_of(second) == 0
    with socket.socket(fileno=copy) as taken:
        assert port_of(taken) == window.base


@pytest.mark.attack(115)
def test_an_address_that_changes_after_the_look_changes_nothing(
    guarded: Scene, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """115: the bytes that were judged are the bytes that are bound."""
    sock = guarded.socket()
    call = guarded.trapped.call("bind", sock, v4("127.0.0.1", window.base))
    check = BindRule.check

    def change(rule: BindRule, address: str, port: int) -> Any:
        guarded.trapped._memory[: len(v4(ANY, 9))] = v4("127.0.0.1", window.base - 1)
        return check(rule, address, port)

    monkeypatch.setattr(BindRule, "check", change)
    guarded.broker.serve(call)
    assert guarded.listener.answers == [0]
    assert port_of(sock) == window.base


@given(
    family=st.sampled_from([V4, V6]),
    kind=st.sampled_from([socket.SOCK_STREAM, socket.SOCK_DGRAM]),
    head=st.sampled_from([b"\2\0", b"\n\0", b"\0\0", b"\1\0", b"\0\2"]),
    port=st.integers(0, 65535),
    near=st.none() | st.integers(-COUNT, 2 * COUNT),
    tail=st.one_of(
        st.binary(max_size=30),
        st.sampled_from([bytes([127, 0, 0, 1]) + bytes(8), bytes(12), bytes(24), bytes(19) + b"\1" + bytes(4)]),
        st.sampled_from([bytes(14) + b"\xff\xff" + bytes([127, 0, 0, n]) + bytes(4) for n in (1, 2)]),
    ),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_bytes_bind_outside_the_window(
    guarded: Scene, window: Window, family: int, kind: int, head: bytes, port: int, near: int | None, tail: bytes
) -> None:
    """INV-7: whatever is asked for, the socket ends up in the window, on localhost, or unbound."""
    sock = socket.socket(family, kind)
    asked = port if near is None else window.base + near
    try:
        answer = guarded.bind(sock, head + asked.to_bytes(2, "big") + tail)
        address, bound = sock.getsockname()[:2]
        assert (bound in window) if answer == 0 else (bound == 0)
        assert address in ("127.0.0.1", ANY, "::", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0")
    finally:
        sock.close()


def _raises(error: Exception) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail
