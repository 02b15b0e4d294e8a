"""The supervisor's side of the engine, with a real engine behind it."""

from __future__ import annotations

import os
import select
import signal
import socket

import pytest
from netsandbox_proxy.inspect import channel
from netsandbox_proxy.inspect.client import EngineClient, WorkerSettings

from netsandbox.policy.inspection import HttpRequest
from netsandbox.policy.secret_rules import parse_secret
from netsandbox.runtime.loop import Loop
from netsandbox.runtime.session_secrets import SessionSecrets
from tests.rig.https_canary import HttpsCanary
from tests.rig.inspecting import HOST, EngineBench, ScriptedFlow, wait_for


def get(sock: socket.socket, path: str, port: int, method: str = "GET") -> bytes:
    sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while part := sock.recv(65536):
        answer += part
    return answer


def test_the_flow_decides_and_hears_the_end(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    assert b"answer /ok" in get(client, "/ok", server.port)
    assert wait_for(lambda: flow.end)
    assert flow.asks == [HttpRequest("https", "GET", "/ok")]
    assert flow.answers == [(200, 11)]
    assert flow.end is not None
    assert flow.end[2] == "http"


def test_a_denied_request_does_not_reach_the_server(bench: EngineBench, server: HttpsCanary) -> None:
    client, _ = bench.secured()
    answer = get(client, "/no", server.port)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"x-netsandbox-reason: request-denied\r\n" in answer
    assert server.requests == []


def test_a_worker_that_dies_resets_its_connections_and_is_replaced(bench: EngineBench, server: HttpsCanary) -> None:
    client, flow = bench.secured()
    client.sendall(f"GET /ok HTTP/1.1\r\nHost: {HOST}:{server.port}\r\n\r\n".encode())
    assert b"200" in client.recv(65536)
    os.kill(bench.worker(), signal.SIGKILL)
    assert wait_for(lambda: flow.is_lost)
    again, _ = bench.secured()  # by the same CA
    assert b"answer /ok" in get(again, "/ok", server.port)


def test_a_worker_that_hangs_is_replaced(bench: EngineBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox_proxy.inspect.client.PING", 0.5)
    _, first = bench.secured()
    with monkeypatch.context() as patched:
        patched.setattr("netsandbox_proxy.inspect.client.MAX_SILENCE", 1.0)
        os.kill(bench.worker(), signal.SIGSTOP)
        assert wait_for(lambda: first.is_lost)
    bench.secured()


def test_a_worker_that_sends_more_than_it_asked_for_is_ended(
    bench: EngineBench,
) -> None:
    """It is killed at once: a stopped one reads no end of its channel, and holds its sockets."""
    _, honest = bench.secured(budget="1MB")
    _, flow = bench.secured(budget="1MB")
    worker = os.pidfd_open(bench.worker())
    signal.pidfd_send_signal(worker, signal.SIGSTOP)
    flow.overdraws = True
    assert wait_for(lambda: flow.is_lost and honest.is_lost, 3)  # before the next ping
    assert select.select([worker], [], [], 10)[0]
    os.close(worker)


def test_without_an_engine_nothing_is_served(bench: EngineBench) -> None:
    os.kill(bench.process.pid, signal.SIGKILL)
    near, far = socket.socketpair()

    def opened() -> bool:
        flow = ScriptedFlow(bench)
        try:
            bench.client.open(flow, HOST, 443, b"", (near.fileno(), far.fileno()))
        except channel.ChannelError:
            return True
        return flow.is_lost

    assert wait_for(lambda: bench.call(opened))
    near.close()
    far.close()


def test_a_hello_that_is_too_long_is_refused_and_nothing_is_kept(bench: EngineBench, server: HttpsCanary) -> None:
    """Attack: a client that sends much behind its hello, again and again, would make the supervisor grow."""
    near, far = socket.socketpair()
    flow = ScriptedFlow(bench)

    def opened() -> str:
        try:
            bench.client.open(flow, HOST, 443, bytes(100 * 1024), (near.fileno(), far.fileno()))
        except channel.ChannelError as error:
            return str(error)
        return ""

    assert bench.call(opened).startswith("a message of ")
    client, _ = bench.secured()
    assert b"answer /ok" in get(client, "/ok", server.port)
    _, last = bench.secured()
    os.kill(bench.worker(), signal.SIGKILL)
    assert wait_for(lambda: last.is_lost)
    assert not flow.is_lost  # a connection that was never opened is not lost
    near.close()
    far.close()


FULL = 60  # more connections than the channel holds before it is read


class Pretender:
    """A worker that was taken over: it says what it likes."""

    def __init__(self) -> None:
        self.control, self._theirs = channel.pair()
        self.pid = 0

    def accept(self) -> socket.socket:
        received = channel.receive(self._theirs)
        assert received is not None
        return socket.socket(fileno=received[1][0])

    def close(self) -> None:
        self.control.close()
        self._theirs.close()


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{}",
        b"not json",
        b"[" * 2000,
        b'{"kind":"ask","id":1,"n":-1,"method":"GET","target":"/","unclear":false}',
        b'{"kind":"ask","id":1,"n":1,"method":"GET\\r\\n","target":"/","unclear":false}',
        b'{"kind":"ask","id":1,"n":1,"method":"GET","target":["/"],"unclear":false}',
        b'{"kind":"ask","id":1,"n":1,"method":"GET","target":"/","unclear":false,"secrets":["OTHER"]}',
        b'{"kind":"ask","id":1,"n":1,"method":"GET","target":"/","unclear":false,"secrets":"TOKEN"}',
        b'{"kind":"ask","id":1,"n":1,"method":"GET","target":"/","unclear":false,"secrets":[["TOKEN"]]}',
        b'{"kind":"ended","id":1,"up":1,"down":true,"outcome":"http"}',
        b'{"kind":"ended","id":1,"up":1,"down":1,"outcome":"tls"}',
        b'{"kind":"refused","id":1,"reason":"rule","detail":"x"}',
        b'{"kind":"request","id":1,"n":7,"status":"200","up":0,"down":0,"ms":0}',
        b'{"kind":"record","id":1,"event":"egress"}',
        b'{"kind":"spend","id":1,"up":-1,"down":0,"sent":0,"read":0}',
        b'{"kind":"spend","id":1,"up":1,"down":0}',
    ],
)
def test_a_worker_that_breaks_the_protocol_is_given_up(message: bytes) -> None:
    loop, pretender = Loop(), Pretender()
    secrets = SessionSecrets([("ghp_aValue0123456789", [parse_secret("TOKEN@elsewhere.test", "here")])])
    client = EngineClient(loop, pretender, WorkerSettings(b"", 0, 60, secrets=secrets))  # type: ignore[arg-type]
    near, far = socket.socketpair()

    class Lost(ScriptedFlow):
        def __init__(self) -> None:
            super().__init__(None)  # type: ignore[arg-type]

        def lost(self) -> None:
            self.is_lost = True
            loop.stop()

    flow = Lost()
    client.open(flow, HOST, 443, b"", (near.fileno(), far.fileno()))  # type: ignore[arg-type]
    worker = pretender.accept()
    worker.send(message)
    loop.call_later(5, loop.stop)
    loop.run()
    assert flow.is_lost
    client.close()
    loop.close()
    for sock in (near, far, worker):
        sock.close()


def test_sockets_that_wait_for_a_worker_are_closed_with_it() -> None:
    """A copy that stayed open would keep the connection of a refused client, and of its server."""
    loop, pretender = Loop(), Pretender()
    client = EngineClient(loop, pretender, WorkerSettings(b"", 0, 60))  # type: ignore[arg-type]
    pairs = []
    for _ in range(2 * FULL):
        near, far = socket.socketpair()
        client.open(ScriptedFlow(None), HOST, 443, b"x" * 2048, (near.fileno(), near.fileno()))  # type: ignore[arg-type]
        near.close()
        pairs.append(far)
    worker = pretender.accept()  # with the sockets that were sent; those in the queue are with the client alone
    client.close()
    worker.close()
    loop.close()
    for far in pairs:
        far.settimeout(5)
        assert far.recv(1) == b""
        far.close()


def test_a_worker_that_never_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox_proxy.inspect.client.MAX_QUEUED", 3)
    loop, pretender = Loop(), Pretender()
    client = EngineClient(loop, pretender, WorkerSettings(b"", 0, 60))  # type: ignore[arg-type]
    near, far = socket.socketpair()
    flows = []
    for _ in range(2 * FULL):
        flows.append(ScriptedFlow(None))  # type: ignore[arg-type]
        client.open(flows[-1], HOST, 443, b"x" * 2048, (near.fileno(), far.fileno()))
        if flows[-1].is_lost:
            break
    assert all(flow.is_lost for flow in flows)
    client.close()
    pretender.close()
    loop.close()
    near.close()
    far.close()
