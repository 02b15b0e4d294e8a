"""CONNECT, SOCKS5 and transparent connections, end to end on loopback."""

from __future__ import annotations

from typing import Any


def test_a_connect_tunnel_carries_bytes_both_ways_and_is_recorded_once(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    client = rig.tunnel(rig.mixed())
    client.sendall(b"\x00\x01hello")
    assert client.recv(100) == b"\x00\x01hello"
    client.close()
    rig.settle()
    assert canary.accepts == 1
    assert rig.gate.named("admit") == [("admit", "connect", b"allowed.test", 443, None)]
    assert rig.gate.named("ended") == [("ended", "allowed.test", "127.0.0.1", 7, 7, "opaque")]
    assert [call[0] for call in rig.gate.calls] == ["admit", "dialling", "ended"]


def test_a_transparent_connection_goes_where_the_kernel_says_it_was_going(rig: Any) -> None:
    rig.canary(name="198.18.0.7")
    client = rig.client(rig.transparent("198.18.0.7", 22))
    client.sendall(b"\x00\x01hello")
    assert client.recv(100) == b"\x00\x01hello"
    client.close()
    rig.settle()
    assert rig.gate.named("admit") == [("admit", "transparent", b"198.18.0.7", 22, "198.18.0.7")]
