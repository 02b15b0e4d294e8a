"""An inspected connection with a budget, in a real engine: what the server gets is counted before."""

from __future__ import annotations

import socket
import ssl
import time

import pytest

from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import HOST, EngineBench, ScriptedFlow, wait_for


def head(port: int, path: str, method: str = "GET", more: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{more}\r\n".encode()


def exchange(client: ssl.SSLSocket, request: bytes) -> int:
    """Send *request*; how many bytes of the answer came until it was whole, or the connection was cut."""
    count = 0
    try:
        client.sendall(request)
        while part := client.recv(65536):
            count += len(part)
    except OSError:
        pass
    return count


CLOSE = "Connection: close\r\n"


@pytest.mark.parametrize("budget", [None, "50MB", "up=2MB,down=3MB"])
def test_what_fits_passes_in_both_directions(bench: EngineBench, server: HttpsCanary, budget: str | None) -> None:
    client, flow = bench.secured(budget=budget)
    size = 1_500_000
    body = b"b" * size
    request = head(server.port, f"/ok/big/{size}", "POST", f"{CLOSE}Content-Length: {size}\r\n") + body
    assert exchange(client, request) > size
    assert server.bodies == [body]
    assert wait_for(lambda: flow.end)
    assert flow.end is not None
    up, down, outcome = flow.end
    assert outcome == "http"
    assert size < up < size * 1.1
    assert size < down < size * 1.1
    if flow.meter is not None:
        account = flow.meter.accounts[0]
        assert up <= account.up <= up * 1.3  # some was asked for ahead
        assert down <= account.down <= down * 1.3


def received(server: HttpsCanary) -> int:
    return sum(map(len, server.bodies))


@pytest.mark.parametrize("limit", [200, 100_000, 900_000])
def test_an_upload_is_cut_before_a_byte_too_many(bench: EngineBench, server: HttpsCanary, limit: int) -> None:
    if limit < 1000:  # not even a handshake fits
        near, flow = bench.connect(f"up={limit}B")
        context = ssl.create_default_context(cadata=bench.pem)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(near, server_hostname=HOST)
    else:
        client, flow = bench.secured(budget=f"up={limit}B")
        request = head(server.port, "/ok", "POST", "Content-Length: 5000000\r\n") + b"b" * 5_000_000
        assert exchange(client, request) == 0
    assert wait_for(lambda: flow.is_cut)
    assert flow.meter is not None
    assert flow.meter.accounts[0].up == limit
    assert received(server) <= limit


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_a_download_is_cut(bench: EngineBench, server: HttpsCanary, protocol: str) -> None:
    if protocol == "h2":
        return h2_download(bench, server)
    client, flow = bench.secured(budget="down=200kB")
    assert exchange(client, head(server.port, "/ok/big/5000000")) <= 200_000
    assert cut(flow) == 200_000
    return None


def cut(flow: ScriptedFlow) -> int:
    assert wait_for(lambda: flow.is_cut)
    assert flow.meter is not None
    return flow.meter.accounts[0].down


def h2_download(bench: EngineBench, server: HttpsCanary) -> None:
    """The client's HTTP/2 becomes HTTP/1 to this server; the budget is counted at the server."""
    import h2.config
    import h2.connection

    client, flow = bench.secured(("h2",), "down=200kB")
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    fields = [(":method", "GET"), (":path", "/ok/big/5000000"), (":scheme", "https")]
    connection.send_headers(1, [*fields, (":authority", f"{HOST}:{server.port}")], end_stream=True)
    connection.increment_flow_control_window(10_000_000)
    connection.increment_flow_control_window(10_000_000, 1)
    assert exchange(client, connection.data_to_send()) <= 250_000
    assert cut(flow) == 200_000


def test_a_server_that_is_dialled_again_has_the_same_budget(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured(budget="1MB")
    for number in range(3):
        client.sendall(head(server.port, f"/ok/{number}"))
        answer = b""
        while not answer.endswith(b"\n") or b"answer" not in answer:
            answer += client.recv(65536)
        for sock in flow.sockets[1:]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        time.sleep(0.1)
    client.close()
    assert wait_for(lambda: flow.end)
    assert len(flow.sockets) > 2
    assert flow.end is not None
    assert flow.meter is not None
    assert flow.end[0] <= flow.meter.accounts[0].up  # a request that met a closed connection was counted too
    assert flow.end[1] <= flow.meter.accounts[0].down


def test_without_a_budget_the_worker_asks_nothing(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    exchange(client, head(server.port, "/ok", more=CLOSE))
    assert flow.spends == []
