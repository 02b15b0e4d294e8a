"""A budget at a tunnel: the server never gets a byte beyond it, the client neither, and what fits passes whole."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from netsandbox_proxy.contract import Parent

from netsandbox.policy.budgets import Budgets, parse_budgets
from netsandbox.runtime import pump

SIZE = 3_000_000


@pytest.fixture(params=["spliced", "copied"])
def budget(rig: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the rig's gate budgets; the account of the first one."""
    if request.param == "copied":
        monkeypatch.setattr(pump, "_splice", None)

    def give(*texts: str) -> Any:
        rig.gate.budgets = Budgets(parse_budgets((text, "--budget") for text in texts))
        return rig.gate.budgets.accounts[0]

    return give


def send(client: socket.socket, count: int) -> None:
    """Bytes that are neither TLS nor HTTP, as many as the door takes."""
    try:
        client.sendall(b"\0" * count)
        client.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def sink(canary: Any, peer: socket.socket) -> None:
    try:
        while canary.hear(peer):
            pass
    except ConnectionResetError:
        pass


def pour(count: int) -> Any:
    def serve(canary: Any, peer: socket.socket) -> None:
        try:
            peer.sendall(b"\0" * count)
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    return serve


def received(client: socket.socket) -> tuple[int, bool]:
    """How many bytes came, and whether they ended with a reset."""
    count = 0
    try:
        while data := client.recv(1 << 16):
            count += len(data)
    except ConnectionResetError:
        return count, True
    return count, False


@pytest.mark.parametrize("limit", [1, 1000, 65536, 100_000, 1_234_567, SIZE - 1])
def test_an_upload_ends_with_the_last_byte_of_the_budget(rig: Any, budget: Any, limit: int) -> None:
    account = budget(f"up={limit}B")
    canary = rig.canary(sink)
    client = rig.tunnel(rig.mixed())
    send(client, SIZE)
    received(client)
    rig.settle()
    assert 0 < len(canary.everything()) <= limit  # the reset overtakes what is under way
    assert (account.up, account.down) == (limit, 0)
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "budget")]
    assert rig.gate.named("ended")[0][3:] == (limit, 0, "refused")


@pytest.mark.parametrize("texts", [(f"up={SIZE}B",), (f"{SIZE}B",), ("other.test=1B", f"allowed.test={SIZE}B"), ()])
def test_an_upload_that_fits_ends_normally(rig: Any, budget: Any, texts: tuple[str, ...]) -> None:
    if texts:
        budget(*texts)
    canary = rig.canary(sink)
    client = rig.tunnel(rig.mixed())
    send(client, SIZE)
    assert received(client) == (0, False)
    rig.settle()
    assert len(canary.everything()) == SIZE
    assert rig.gate.named("refuse") == []
    assert rig.gate.named("ended")[0][3:] == (SIZE, 0, "opaque")


@pytest.mark.parametrize("limit", [1, 70_000, SIZE - 1])
def test_a_download_ends_with_the_last_byte_of_the_budget(rig: Any, budget: Any, limit: int) -> None:
    account = budget(f"allowed.test=down={limit}B")
    rig.canary(pour(SIZE))
    client = rig.tunnel(rig.mixed())
    count, was_reset = received(client)
    rig.settle()
    assert was_reset
    assert count <= limit
    assert account.down == limit
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "budget")]


def test_a_download_that_fits_ends_normally(rig: Any, budget: Any) -> None:
    budget(f"down={SIZE}B")
    rig.canary(pour(SIZE))
    assert received(rig.tunnel(rig.mixed())) == (SIZE, False)


def test_connections_to_hosts_of_a_pattern_share_a_budget(rig: Any, budget: Any) -> None:
    limit = 2_000_000
    account = budget(f"*.test={limit}B")
    canaries = [rig.canary(sink, name) for name in ("one.test", "two.test")]
    door = rig.mixed()
    clients = [rig.tunnel(door, f"{name}.test:443") for name in ("one", "two", "one")]
    threads = [threading.Thread(target=send, args=(client, SIZE)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        received(client)
    rig.settle()
    assert sum(len(canary.everything()) for canary in canaries) <= limit == account.up
    assert len(rig.gate.named("refuse")) == 3
    assert sum(call[3] for call in rig.gate.named("ended")) == limit


def test_both_directions_count_together(rig: Any, budget: Any, speak: Any) -> None:
    """What is sent comes back: half of the budget goes up."""
    account = budget("100kB")
    canary = rig.canary(speak.echo)
    client = rig.tunnel(rig.mixed())
    for _ in range(49):
        client.sendall(b"\0" * 1000)
        left = 1000
        while left:
            left -= len(client.recv(left)) or pytest.fail("it ended")
    client.sendall(b"\0" * 3000)
    received(client)
    rig.settle()
    assert len(canary.everything()) <= account.up
    assert account.up + account.down == 100_000


def test_a_server_that_speaks_first_is_counted_before_the_client_is_known(rig: Any, budget: Any) -> None:
    budget("down=1kB")
    canary = rig.canary(pour(5000))
    count, was_reset = received(rig.tunnel(rig.mixed()))
    rig.settle()
    assert (count <= 1000, was_reset) == (True, True)
    assert canary.everything() == b""


def test_a_transparent_connection_has_the_same_budget(rig: Any, budget: Any) -> None:
    budget("up=5kB")
    canary = rig.canary(sink, "127.0.0.1")
    client = rig.client(rig.transparent("127.0.0.1", canary.port))
    send(client, SIZE)
    received(client)
    rig.settle()
    assert len(canary.everything()) <= 5000


def test_a_server_that_does_not_read_gets_no_more_later(rig: Any, budget: Any) -> None:
    """Bytes wait for the server; meanwhile another connection uses the rest of the budget."""
    limit = 8_000_000
    go = threading.Event()

    def late(canary: Any, peer: socket.socket) -> None:
        go.wait(30)
        sink(canary, peer)

    account = budget(f"up={limit}B")
    slow, fast = rig.canary(late, "slow.test"), rig.canary(sink, "fast.test")
    door = rig.mixed()
    waiting, quick = rig.tunnel(door, "slow.test:443"), rig.tunnel(door, "fast.test:443")
    thread = threading.Thread(target=send, args=(waiting, 2 * limit), daemon=True)
    thread.start()
    send(quick, 2 * limit)
    received(quick)
    go.set()
    thread.join()
    received(waiting)
    rig.settle()
    assert len(slow.everything()) + len(fast.everything()) <= limit == account.up


def test_early_bytes_of_both_sides_are_counted_too(rig: Any, budget: Any, speak: Any) -> None:
    """A parent proxy passes on more than the budget with its own answer; the client has sent its first bytes."""

    def parent(canary: Any, peer: socket.socket) -> None:
        while b"\r\n\r\n" not in canary.heard:
            canary.hear(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"\0" * 5000)
        sink(canary, peer)

    canary = rig.canary(parent)
    rig.gate.parent = Parent([(2, "127.0.0.1")], canary.port, None)
    budget("down=1kB")
    client = rig.client(rig.mixed())
    client.sendall(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n\0\0\0\0")
    speak.read_head(client)
    count, was_reset = received(client)
    rig.settle()
    assert (count <= 1000, was_reset) == (True, True)
    assert canary.everything().endswith(b"\r\n\r\n")
    assert [call[2] for call in rig.gate.named("refuse")] == ["budget"]
