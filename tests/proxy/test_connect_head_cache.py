"""Remembered CONNECT heads save reading, never asking."""

from __future__ import annotations

from typing import Any

import pytest
from netsandbox_proxy.connect_head_cache import ENTRIES, LONGEST, ConnectHeadCache

CONNECT = b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n%s\r\n"


def test_the_gate_is_asked_for_every_repetition(rig: Any, speak: Any) -> None:
    """INV-3: a policy that changes in between changes the answer."""
    canary = rig.canary()
    port = rig.mixed()
    for _ in range(3):
        rig.tunnel(port)
    del rig.gate.routes["allowed.test"]
    client = rig.client(port)
    client.sendall(CONNECT % b"")
    assert speak.read_all(client).startswith(b"HTTP/1.1 403 ")
    assert len(rig.gate.named("admit")) == 4
    assert canary.accepts == 3


@pytest.mark.attack(53)
def test_a_remembered_head_is_of_no_use_without_its_token(rig: Any, speak: Any) -> None:
    rig.canary()
    port = rig.mixed(token=b"token")
    right = CONNECT % b"Proxy-Authorization: Basic c2Vzc2lvbjp0b2tlbg==\r\n"
    for _ in range(2):
        client = rig.client(port)
        client.sendall(right)
        assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    for wrong in (CONNECT % b"", right.replace(b"b2tlbg", b"b2tlbW")):
        for _ in range(2):
            client = rig.client(port)
            client.sendall(wrong)
            assert speak.read_all(client).startswith(b"HTTP/1.1 407 ")
    assert len(rig.gate.named("admit")) == 2


@pytest.mark.attack(31)
def test_a_remembered_head_with_bytes_behind_it_is_read_as_ever(rig: Any, speak: Any) -> None:
    canary = rig.canary()
    port = rig.mixed()
    rig.tunnel(port).close()
    client = rig.client(port)
    client.sendall(CONNECT % b"" + speak.client_hello("denied.test"))
    speak.read_all(client)
    assert canary.everything() == b""
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "sni-mismatch")]


@pytest.mark.attack(197)
def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    heads = ConnectHeadCache()
    for number in range(ENTRIES + 1):
        heads.learn(b"%d" % number, b"host", number)
    assert heads.recall(b"0") is None
    assert heads.recall(b"1") == (b"host", 1)
    heads.learn(b"x" * (LONGEST + 1), b"host", 1)
    assert heads.recall(b"x" * (LONGEST + 1)) is None
