"""The end of a grant is recorded exactly once."""

from __future__ import annotations

from typing import Any

import pytest
from netsandbox_proxy.contract import Attempt, Grant
from netsandbox_proxy.flow import MAX_CACHED_HEAD, MAX_CACHED_HEADS, ActiveGrant, ConnectHeadCache


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


class FoldedQueries:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def ended(self, *call: Any) -> None:
        self.calls.append(call)


def test_the_first_end_counts_and_carries_bytes_and_milliseconds() -> None:
    clock, ledger = Clock(), FoldedQueries()
    grant = Grant(Attempt("connect", b"a.test", 443, ("127.0.0.1", 1)), "a.test", 443, [], named=True)
    active = ActiveGrant(clock, ledger, grant)  # type: ignore[arg-type]
    active.address = "192.0.2.1"
    clock.time += 1.5
    active.end(1, 2, "tls")
    active.end(3, 4, "reset")
    assert ledger.calls == [(grant, "192.0.2.1", 1, 2, 1500, "tls")]


# Remembered CONNECT heads save reading, never asking.

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
    for number in range(MAX_CACHED_HEADS + 1):
        heads.add(b"%d" % number, b"host", number)
    assert heads.get(b"0") is None
    assert heads.get(b"1") == (b"host", 1)
    heads.add(b"x" * (MAX_CACHED_HEAD + 1), b"host", 1)
    assert heads.get(b"x" * (MAX_CACHED_HEAD + 1)) is None
