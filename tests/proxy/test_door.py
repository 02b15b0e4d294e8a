"""The listening side: who may come in, how many, for how long, and what happens when the kernel runs out."""

from __future__ import annotations

import resource
import select
import socket
from typing import Any

import pytest

CONNECT = b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"


@pytest.mark.attack(49)
@pytest.mark.attack(51)
@pytest.mark.parametrize("first", [b"\x04\x01\x01\xbb\x7f\0\0\1\0", b"\x16\x03\x01", b"\x00", b"\xff", b"\r\n"])
def test_a_protocol_that_is_not_spoken_is_recorded_and_reset(rig: Any, speak: Any, first: bytes) -> None:
    client = rig.client(rig.mixed())
    client.sendall(first + CONNECT)
    assert speak.read_all(client) == b""
    rig.settle()
    assert [call[:3] for call in rig.gate.calls] == [("reject", "mixed", "unsupported")]


@pytest.mark.attack(51)
def test_a_connection_that_began_as_socks_stays_socks(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed())
    client.sendall(b"\x05\x01\x00")
    assert client.recv(2) == b"\x05\x00"
    client.sendall(CONNECT)
    assert not speak.read_all(client).startswith(b"HTTP")
    assert rig.gate.named("admit") == []


@pytest.mark.attack(192)
def test_a_thousand_slow_clients_do_not_slow_a_good_one_and_are_gone_at_the_deadline(rig: Any, speak: Any) -> None:
    rig.canary()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    port = rig.mixed(head=600.0)
    rig.freeze()
    slow = [rig.client(port) for _ in range(1000)]
    try:
        for client in slow:
            client.send(b"G")
        good = rig.tunnel(port)
        good.sendall(b"\0x")
        assert good.recv(9) == b"\0x"
        waiting = select.poll()
        for client in slow:
            waiting.register(client, select.POLLIN)
        assert waiting.poll(0) == []  # served while all thousand were still held, not after they were given up
        good.close()
        rig.skip(601.0)
        for client in slow:
            assert client.recv(12) == b"HTTP/1.1 408"
    finally:
        for client in slow:
            client.close()
        rig.settle()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.attack(193)
def test_past_the_limit_newcomers_hear_503_and_the_record_is_not_flooded(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    port = rig.mixed(flows=2)
    held = [rig.tunnel(port), rig.tunnel(port)]
    rig.freeze()
    for _ in range(20):
        assert speak.read_all(rig.client(port)).startswith(b"HTTP/1.1 503 ")
    assert canary.accepts == 2
    rig.skip(1.1)
    first, *rest = rig.gate.named("reject")
    assert first[2:4] == ("limit", "more than 2 connections at once")
    assert [call[2:4] for call in rest] == [("limit", "20 connections turned away in a second")]
    for client in held:
        client.close()
    rig.settle()
    rig.tunnel(port)


@pytest.mark.attack(193)
def test_past_the_limit_a_transparent_newcomer_is_hung_up_on(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.transparent("allowed.test", 22, flows=1)
    rig.client(port)
    speak.wait_for(lambda: rig.flows == 1)
    assert speak.read_all(rig.client(port)) == b""


@pytest.mark.attack(195)
def test_without_descriptors_the_door_pauses_goes_on_with_what_it_has_and_recovers(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.mixed()
    old = rig.tunnel(port)
    old.sendall(b"\0here")
    assert old.recv(99) == b"\0here"  # by a server that has accepted, for which it needs a descriptor too
    late = socket.socket()
    late.settimeout(20)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (late.fileno() + 1, hard))
        late.connect(("127.0.0.1", port))
        late.sendall(CONNECT)
        old.sendall(b"\0still here")
        assert old.recv(99) == b"\0still here"
        rig.come_to_rest()
        assert rig.flows == 1
        assert len(rig.gate.named("admit")) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert speak.read_head(late).startswith(b"HTTP/1.1 200 ")
    late.close()


@pytest.mark.attack(195)
def test_no_descriptor_for_the_way_out_is_an_answer_and_not_a_way_through(
    rig: Any, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from netsandbox_proxy import dial

    class Exhausted:
        def __getattr__(self, name: str) -> Any:
            return getattr(socket, name)

        def socket(self, *args: Any) -> Any:
            raise OSError(24, "Too many open files")

    canary = rig.canary()
    monkeypatch.setattr(dial, "_socket", Exhausted())
    client = rig.client(rig.mixed())
    client.sendall(CONNECT)
    assert speak.read_all(client).startswith(b"HTTP/1.1 502 ")
    assert canary.accepts == 0


def test_closing_the_door_hangs_up_on_everybody_and_ends_every_grant(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.mixed()
    client = rig.tunnel(port)
    idle = rig.client(port)
    speak.wait_for(lambda: rig.flows == 2)
    rig.run(rig.doors[0].close)
    assert speak.read_all(client) == speak.read_all(idle) == b""
    assert rig.gate.named("ended")[0][5] == "closed"
    with pytest.raises(ConnectionRefusedError):
        rig.client(port)


def test_a_gate_that_raises_closes_the_flow_and_is_reported(rig: Any, speak: Any) -> None:
    """INV-1: a fault of ours never lets anything through."""
    canary = rig.canary()

    def broken(*_: Any) -> None:
        raise RuntimeError("gate")

    rig.gate.decide = broken
    client = rig.client(rig.mixed())
    client.sendall(CONNECT)
    assert speak.read_all(client) == b""
    rig.settle()
    assert canary.accepts == 0
    speak.wait_for(lambda: rig.errors)
    assert [str(error) for error in rig.errors] == ["gate"]
    rig.errors.clear()


def test_an_idle_door_keeps_no_timer(rig: Any, speak: Any) -> None:
    port = rig.mixed()
    client = rig.client(port)
    speak.wait_for(lambda: rig.flows == 1)
    assert rig.run(lambda: rig.doors[0]._sweeper) is not None
    client.close()
    rig.settle()
    rig.skip(1.1)
    assert rig.run(lambda: rig.doors[0]._sweeper) is None
