"""A budget for HTTP: a request that does not fit gets 403, and neither side gets a byte beyond the budget."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from netsandbox.policy.budgets import Budgets, parse_budgets
from netsandbox.runtime import pump
from tests.rig.waiting import wait_for

GET = b"GET /a HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
FORWARD = b"GET http://allowed.test/a HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
BODY = b"b" * 500_000


def give(rig: Any, text: str) -> Any:
    rig.gate.budgets = Budgets(parse_budgets([(text, "--budget")]))
    return rig.gate.budgets.accounts[0]


def rest(client: socket.socket) -> bytes:
    found = b""
    try:
        while data := client.recv(1 << 16):
            found += data
    except ConnectionResetError:
        found += b"[reset]"
    client.close()
    return found


def post(url: bytes, body: bytes = BODY) -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: %d\r\n\r\n%s" % (url, len(body), body)


def swallow(canary: Any, peer: socket.socket) -> None:
    try:
        while canary.hear(peer):
            pass
    except ConnectionResetError:
        pass


def answering(size: int) -> Any:
    def serve(canary: Any, peer: socket.socket) -> None:
        try:
            while canary.hear(peer):
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        except OSError:
            pass

    return serve


@pytest.mark.parametrize("url", [b"http://allowed.test/up", b"/up"], ids=["forward", "tunnel"])
def test_a_body_that_does_not_fit_gets_403_with_the_reason(rig: Any, url: bytes) -> None:
    account = give(rig, "up=100kB")
    canary = rig.canary(swallow)
    door = rig.mixed()
    client = rig.client(door) if url.startswith(b"http") else rig.tunnel(door, "allowed.test:80")
    client.sendall(post(url))
    answer = rest(client)
    rig.settle()
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"x-netsandbox-reason: budget\r\n" in answer
    assert b"--budget up=100kB is used up (100 kB up and 0 B down)" in answer
    assert len(canary.everything()) <= 100_000 == account.up
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "budget")]
    assert rig.gate.named("ended")[0][3:] == (100_000, 0, "refused")


@pytest.mark.parametrize("text", ["up=600kB", "other.test=1B"])
def test_a_body_that_fits_passes(rig: Any, text: str, speak: Any) -> None:
    give(rig, text)

    def serve(canary: Any, peer: socket.socket) -> None:
        while len(canary.heard) < len(BODY):
            canary.hear(peer)
        peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    canary = rig.canary(serve)
    client = rig.client(rig.mixed())
    client.sendall(post(b"http://allowed.test/up"))
    assert speak.read_head(client).startswith(b"HTTP/1.1 204 ")
    assert canary.heard.endswith(BODY)


def test_requests_of_one_connection_share_a_budget_and_the_one_that_does_not_fit_is_not_begun(
    rig: Any, speak: Any
) -> None:
    give(rig, "up=120B")
    canary = rig.canary(speak.answer_http)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    for _ in range(2):  # of some 45 bytes each
        client.sendall(GET)
        assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
        client.recv(len(b"GET /a HTTP/1.1"))
    client.sendall(GET)
    assert b"x-netsandbox-reason: budget" in rest(client)
    rig.settle()
    assert canary.everything().count(b"GET") == 2
    assert rig.gate.named("ended")[0][3] == len(canary.everything()) <= 120


def test_a_request_is_not_begun_when_nothing_may_come_down(rig: Any, speak: Any) -> None:
    account = give(rig, "down=1kB")
    canary = rig.canary(speak.answer_http)
    account.down = 1000
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(GET)
    assert rest(client).startswith(b"HTTP/1.1 403 ")
    rig.settle()
    assert canary.everything() == b""


@pytest.mark.parametrize("spliced", [True, False])
@pytest.mark.parametrize("limit", [10, 1000, 70_000, 1_000_000, 1_900_000])
def test_a_response_ends_with_the_last_byte_of_the_budget(
    rig: Any, monkeypatch: pytest.MonkeyPatch, limit: int, *, spliced: bool
) -> None:
    if not spliced:
        monkeypatch.setattr(pump, "_splice", None)
    account = give(rig, f"allowed.test=down={limit}B")
    rig.canary(answering(2_000_000))
    client = rig.client(rig.mixed())
    client.sendall(FORWARD)
    answer = rest(client)
    rig.settle()
    assert answer.endswith(b"[reset]")
    assert len(answer) - len(b"[reset]") <= limit == account.down
    assert rig.gate.named("ended")[0][4:] == (limit, "refused")


def test_a_response_that_fits_passes_to_its_last_byte(rig: Any, speak: Any) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n"
    account = give(rig, f"down={2_000_000 + len(head)}B")
    rig.canary(answering(2_000_000))
    client = rig.client(rig.mixed())
    client.sendall(FORWARD)
    count = 0
    while count < 2_000_000 + len(head):
        count += len(client.recv(1 << 16)) or pytest.fail(f"ended after {count}")
    wait_for(lambda: account.left_down == 0)  # the last bytes are charged after they were sent


def test_a_websocket_goes_on_with_the_same_budget(rig: Any, speak: Any) -> None:
    account = give(rig, "up=1kB")

    def serve(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        swallow(canary, peer)

    canary = rig.canary(serve)
    client = rig.tunnel(rig.mixed(), "allowed.test:80")
    client.sendall(
        b"GET / HTTP/1.1\r\nHost: allowed.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert speak.read_head(client).startswith(b"HTTP/1.1 101 ")
    client.sendall(b"w" * 5000)
    assert rest(client).endswith(b"[reset]")
    rig.settle()
    assert len(canary.everything()) <= 1000 == account.up
    assert rig.gate.named("ended")[0][3] == 1000
