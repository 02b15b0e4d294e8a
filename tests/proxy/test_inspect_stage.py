"""The stage of an inspected connection, with an engine that follows a script."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import ssl
import sys
import termios
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from netsandbox_proxy.inspect.channel import ChannelError
from netsandbox_proxy.inspect_stage import InspectStage

from netsandbox.policy.budgets import Budgets, parse_budgets
from netsandbox.policy.inspection import HttpRequest
from tests.rig.scripted_har import ScriptedHar
from tests.rig.waiting import wait_for

OK, NO = HttpRequest("https", "GET", "/ok"), HttpRequest("https", "POST", "/no")


class ScriptedEngine:
    """Keeps what the stage says; the test plays the engine."""

    def __init__(self) -> None:
        self.opened: list[tuple[Any, str, int, bytes]] = []
        self.dials: list[tuple[int, int, bool]] = []
        self.forgotten: list[int] = []
        self.sockets: list[socket.socket] = []
        self.given: list[socket.socket] = []  # by later dials
        self.is_gone = False
        self.metered = False

    def open(
        self, flow: Any, host: str, port: int, hello: bytes, descriptors: tuple[int, int], *, metered: bool
    ) -> int:
        if self.is_gone:
            raise ChannelError("gone")
        self.metered = metered
        self.opened.append((flow, host, port, hello))
        self.sockets += [socket.socket(fileno=os.dup(each)) for each in descriptors]
        return len(self.opened)

    def dialled(self, identity: int, n: int, descriptor: int | None) -> None:
        self.dials.append((identity, n, descriptor is not None))
        if descriptor is not None:
            self.given.append(socket.socket(fileno=os.dup(descriptor)))

    def forget(self, identity: int) -> None:
        self.forgotten.append(identity)

    def close(self) -> None:
        for sock in (*self.sockets, *self.given):
            sock.close()


@pytest.fixture
def engine(rig: Any) -> Any:
    made = ScriptedEngine()
    rig.gate.inspected.add("allowed.test")
    yield made
    made.close()


def hello(name: str = "allowed.test") -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def begun(rig: Any, engine: ScriptedEngine) -> tuple[socket.socket, Any]:
    """A client whose connection is with the engine, and the stage."""
    port = rig.mixed()
    rig.doors[-1].engine = engine
    client = rig.tunnel(port)
    client.sendall(hello())
    wait_for(lambda: bool(engine.opened))
    return client, engine.opened[0][0]


def test_the_engine_gets_the_hello_and_nothing_has_gone_on(rig: Any, engine: ScriptedEngine) -> None:
    canary = rig.canary()
    _, stage = begun(rig, engine)
    assert engine.opened[0][1] == "allowed.test"
    assert engine.opened[0][3][:1] == b"\x16"
    assert canary.heard == b""
    rig.run(lambda: stage.ended(1, 2, "http"))
    rig.settle()
    assert rig.gate.named("ended") == [("ended", "allowed.test", "127.0.0.1", 1, 2, "http")]


def test_each_request_is_judged_and_its_end_recorded(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage = begun(rig, engine)
    assert rig.run(lambda: stage.asked(1, OK)) == {"allow": True}
    refused = rig.run(lambda: stage.asked(2, NO))
    assert (refused["allow"], refused["status"], refused["reason"]) == (False, 403, "request-denied")
    assert "retrying will not help" in refused["text"]
    rig.run(lambda: stage.answered(1, 200, (0, 5), 3))
    assert rig.gate.named("judge") == [
        ("judge", 1, OK),
        ("judge", 2, NO),
    ]
    assert rig.gate.named("answered") == [("answered", 1, "GET", "/ok", 200)]
    rig.run(lambda: stage.ended(0, 0, "reset"))


def test_an_engine_that_invents_requests_breaks_the_protocol(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage = begun(rig, engine)

    def invented() -> int:
        count = 0
        stage.asked(1, OK)
        for call in (lambda: stage.asked(1, OK), lambda: stage.answered(9, 200, (0, 0), 0)):
            try:
                call()
            except ChannelError:
                count += 1
        return count

    assert rig.run(invented) == 2
    rig.run(stage.lost)


def test_a_lost_engine_resets_both_sides_and_is_recorded(rig: Any, engine: ScriptedEngine) -> None:
    """INV-1: nothing is passed on without inspection instead."""
    rig.canary()
    client, stage = begun(rig, engine)
    engine.close()
    rig.run(stage.lost)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert [call[2] for call in rig.gate.named("refuse")] == ["inspection"]


def test_without_an_engine_tls_is_refused(rig: Any, engine: ScriptedEngine) -> None:
    canary = rig.canary()
    for gone in (True, False):
        port = rig.mixed()
        engine.is_gone = gone
        rig.doors[-1].engine = engine if gone else None
        client = rig.tunnel(port)
        client.sendall(hello())
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    rig.settle()
    assert canary.heard == b""
    assert [call[2] for call in rig.gate.named("refuse")] == ["inspection", "inspection"]


def test_a_client_on_a_unix_socket_is_refused() -> None:
    """An engine that is taken over could give the server's socket to it."""
    (near, far), tcp = socket.socketpair(), socket.socket()
    calls: list[str] = []
    still, server = (SimpleNamespace(sock=each, fd=each.fileno(), want=lambda events: None) for each in (far, tcp))
    gate = SimpleNamespace(refuse=lambda grant, reason, *more: calls.append(reason))
    flow: Any = SimpleNamespace(client=still, door=SimpleNamespace(gate=gate), fail=calls.append)
    engine: Any = ScriptedEngine()
    active: Any = SimpleNamespace(grant=SimpleNamespace(host="allowed.test", port=443, parent=None))
    InspectStage(flow, active, server, engine).begin(b"")  # type: ignore[arg-type]
    assert calls == ["inspection", "refused"]
    assert engine.opened == []
    for sock in (near, far, tcp):
        sock.close()


def test_what_is_neither_tls_nor_http_is_refused(rig: Any, engine: ScriptedEngine) -> None:
    canary = rig.canary()
    port = rig.mixed()
    rig.doors[-1].engine = engine
    client = rig.tunnel(port)
    client.sendall(b"\x00\x01binary")
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert canary.heard == b""
    assert [call[2] for call in rig.gate.named("refuse")] == ["not-http"]


@pytest.mark.parametrize("first", [b"", b"220 hello\r\n"], ids=["silent", "speaks first"])
def test_a_server_that_speaks_first_does_not_turn_inspection_off(
    rig: Any, engine: ScriptedEngine, speak: Any, first: bytes
) -> None:
    """A request in the clear behind its greeting would be relayed without a decision."""

    def greet(canary: Any, peer: socket.socket) -> None:
        peer.sendall(first)
        speak.answer_http(canary, peer)

    canary = rig.canary(greet)
    authority = f"allowed.test:{canary.port}"
    client = rig.tunnel(rig.mixed(), authority)
    if first:
        assert client.recv(64) == first
    with contextlib.suppress(OSError):
        client.sendall(f"GET /no HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        speak.read_all(client)
    rig.settle()
    assert canary.everything() == b""
    assert [call[2] for call in rig.gate.named("refuse")] == (["not-http"] if first else [])
    assert len(rig.gate.named("judge")) == (0 if first else 1)


def test_another_dial_is_recorded_first(rig: Any, engine: ScriptedEngine) -> None:
    """INV-4, INV-5."""
    canary = rig.canary()
    _, stage = begun(rig, engine)
    rig.run(lambda: stage.dial(5))
    wait_for(lambda: bool(engine.dials))
    assert engine.dials == [(1, 5, True)]
    assert canary.accepts == 2
    assert [call[0] for call in rig.gate.calls] == ["admit", "dialling", "dialling"]
    rig.gate.recorded = False
    rig.run(lambda: stage.dial(6))
    assert engine.dials[-1] == (1, 6, False)
    rig.run(lambda: stage.ended(0, 0, "http"))


def test_an_engine_that_dials_on_and_on_is_given_up(rig: Any, engine: ScriptedEngine, monkeypatch: Any) -> None:
    """The server sees no more connections than the limit, the first one included."""
    monkeypatch.setattr("netsandbox_proxy.inspect_stage.MAX_DIALS", 4)
    canary = rig.canary()
    _, stage = begun(rig, engine)

    def dialled() -> int:
        """How many dials were taken before one broke the protocol."""
        for n in range(10, 20):
            try:
                stage.dial(n)
            except ChannelError:
                return n - 10
        return 10

    assert rig.run(dialled) == 3
    wait_for(lambda: len(engine.dials) == 3)
    assert rig.run(dialled) == 0
    assert canary.accepts == 4
    rig.run(stage.lost)


def test_plain_http_is_judged_without_an_engine(rig: Any, engine: ScriptedEngine, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    authority = f"allowed.test:{canary.port}"
    rig.gate.inspected.add("allowed.test")
    client = rig.tunnel(rig.mixed(), authority)
    for _ in range(2):  # also a head that was seen before
        client.sendall(f"GET /ok HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    client.sendall(f"GET /no HTTP/1.1\r\nHost: {authority}\r\nX-HTTP-Method: PUT\r\n\r\n".encode())
    answer = speak.read_all(client)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"x-netsandbox-reason: request-denied\r\n" in answer
    client.close()
    rig.settle()
    assert b"/no" not in canary.everything()
    assert [call[2:] for call in rig.gate.named("judge")] == [
        (HttpRequest("http", "GET", "/ok"),),
        (HttpRequest("http", "GET", "/ok"),),
        (HttpRequest("http", "GET", "/no", is_unclear=True),),
    ]


@pytest.mark.attack(302)
def test_a_plain_get_with_a_body_is_judged_as_unclear(rig: Any, engine: ScriptedEngine, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    authority = f"allowed.test:{canary.port}"
    client = rig.tunnel(rig.mixed(), authority)
    client.sendall(f"GET /no HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 5\r\n\r\nhello".encode())
    assert speak.read_all(client).startswith(b"HTTP/1.1 403 ")
    rig.settle()
    assert [call[2] for call in rig.gate.named("judge")] == [HttpRequest("http", "GET", "/no", is_unclear=True)]


@pytest.mark.attack(300)
@pytest.mark.parametrize("end", ["ended", "lost", "cut"])
def test_an_engine_that_keeps_its_sockets_passes_nothing_after_the_end(
    rig: Any, engine: ScriptedEngine, end: str
) -> None:
    """INV-1: an engine that was taken over says that a connection has ended, or is given up, and goes on."""
    canary = rig.canary()
    client, stage = begun(rig, engine)
    near, far = engine.sockets
    far.sendall(b"before")
    wait_for(lambda: canary.heard == b"before")
    ends = {"ended": lambda: stage.ended(6, 0, "http"), "lost": stage.lost, "cut": lambda: stage.ended(6, 0, "reset")}
    rig.run(ends[end])
    for sock in (near, far):
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            sock.sendall(b"after")
    if end == "ended":
        assert client.recv(8) == b""  # an end in order is no reset
    else:
        with pytest.raises(ConnectionResetError):
            client.recv(8)
    rig.settle()
    assert canary.heard == b"before"


@pytest.mark.attack(300)
def test_a_server_that_has_ended_gets_nothing_more_and_what_it_got_stays_counted(
    rig: Any, engine: ScriptedEngine
) -> None:
    """It sends its end and reads on: the next dial takes it for closed."""
    ended = threading.Event()

    def half_close(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        if not ended.is_set():
            ended.set()
            peer.shutdown(socket.SHUT_WR)
        while canary.hear(peer):
            pass

    canary = rig.canary(half_close)
    _, stage, _ = budgeted(rig, engine, "1MB")
    rig.run(lambda: stage.spend((6, 0), (0, 0)))
    server = engine.sockets[1]
    server.sendall(b"before")
    assert ended.wait(10)
    server.setblocking(True)
    assert server.recv(1) == b""
    server.setblocking(False)
    rig.run(lambda: stage.dial(5))
    wait_for(lambda: bool(engine.dials))
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        server.sendall(b"after")
    assert canary.heard == b"before"
    assert not rig.run(stage.is_overdrawn)
    engine.given[0].sendall(b"more than was asked for")
    wait_for(lambda: rig.run(stage.is_overdrawn))
    rig.run(stage.lost)


def budgeted(rig: Any, engine: ScriptedEngine, text: str) -> tuple[socket.socket, Any, Any]:
    """A client, its stage, and the account of the one budget."""
    rig.gate.budgets = Budgets(parse_budgets([(text, "--budget")]))
    client, stage = begun(rig, engine)
    assert engine.metered
    return client, stage, rig.gate.budgets.accounts[0]


def test_bytes_are_counted_before_the_engine_may_pass_them(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    client, stage, account = budgeted(rig, engine, "1kB,up=600B")
    assert rig.run(lambda: stage.spend((500, 0), (0, 0))) == (500, 0)
    assert rig.run(lambda: stage.spend((500, 0), (0, 0))) == (100, 0)
    assert rig.run(lambda: stage.spend((0, 300), (0, 0))) == (0, 300)
    assert (account.up, account.down) == (600, 300)
    assert rig.run(lambda: stage.spend((1, 0), (600, 200))) is None
    engine.close()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.settle()
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "budget")]
    assert rig.gate.named("ended")[0][3:] == (600, 200, "refused")
    assert (account.up, account.down) == (600, 200)
    assert engine.forgotten == [1]


def test_a_lost_engine_leaves_counted_what_it_may_have_sent(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage, account = budgeted(rig, engine, "1kB")
    rig.run(lambda: stage.spend((700, 0), (0, 0)))
    rig.run(stage.lost)
    assert account.up == 700


def test_an_engine_that_passes_more_than_it_asked_for_is_noticed(rig: Any, engine: ScriptedEngine) -> None:
    canary = rig.canary()
    _, stage, _ = budgeted(rig, engine, "1MB")
    rig.run(lambda: stage.spend((5000, 0), (0, 0)))
    server = engine.sockets[1]
    server.sendall(b"x" * 5000)
    wait_for(lambda: len(canary.heard) == 5000)
    assert not rig.run(stage.is_overdrawn)
    server.sendall(b"x" * 3000)
    wait_for(lambda: rig.run(stage.is_overdrawn))
    rig.run(stage.lost)


@pytest.mark.attack(300)
def test_an_engine_that_takes_more_than_it_asked_for_is_noticed(rig: Any, engine: ScriptedEngine) -> None:
    """Bytes that wait in the kernel are not taken yet, urgent ones neither."""

    def send(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"x" * 4000)
        peer.send(b"!", socket.MSG_OOB)
        peer.sendall(b"x" * 4000)
        canary.hear(peer)

    rig.canary(send)
    _, stage, _ = budgeted(rig, engine, "1MB")
    rig.run(lambda: stage.spend((5, 5000), (0, 0)))
    server = engine.sockets[1]
    server.sendall(b"hello")
    wait_for(lambda: fcntl.ioctl(server, termios.FIONREAD, bytes(4)) == (8001).to_bytes(4, sys.byteorder))
    assert not rig.run(stage.is_overdrawn)
    assert [len(server.recv(count)) for count in (4000, 1000)] == [4000, 1000]  # a read stops before an urgent byte
    assert not rig.run(stage.is_overdrawn)
    server.recv(3001)
    assert rig.run(stage.is_overdrawn)
    rig.run(stage.lost)


def test_an_engine_that_reports_more_than_it_asked_for_is_given_up(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    client, stage, _ = budgeted(rig, engine, "1MB")

    def reported() -> bool:
        try:
            stage.ended(1, 0, "http")
        except ChannelError:
            return True
        return False

    assert rig.run(reported)
    engine.close()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert [call[2] for call in rig.gate.named("refuse")] == ["inspection"]


def test_without_a_budget_no_bytes_are_asked_about(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage = begun(rig, engine)
    assert not engine.metered
    assert not rig.run(stage.is_overdrawn)

    def asked() -> bool:
        try:
            stage.spend((1, 0), (0, 0))
        except ChannelError:
            return True
        return False

    assert rig.run(asked)
    rig.run(stage.lost)


def test_what_was_not_passed_counts_no_more_but_what_the_kernel_sent_does(rig: Any, engine: ScriptedEngine) -> None:
    canary = rig.canary()
    _, stage, account = budgeted(rig, engine, "1MB")
    rig.run(lambda: stage.spend((5000, 0), (0, 0)))
    rig.run(lambda: stage.spend((0, 4000), (0, 0)))
    engine.sockets[1].sendall(b"x" * 3000)
    wait_for(lambda: len(canary.heard) == 3000)
    engine.close()
    rig.run(lambda: stage.ended(10, 1000, "http"))
    assert 2990 <= account.up <= 3000
    assert account.down == 1000


def test_one_connection_gets_a_part_when_little_is_left(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage, _ = budgeted(rig, engine, "1MB")
    assert rig.run(lambda: stage.spend((0, 1 << 20), (0, 0))) == (0, 65536)


def test_a_har_file_gets_each_request(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage = begun(rig, engine)
    har = rig.doors[-1].har = ScriptedHar()

    def exchange() -> None:
        stage.head(1, "HTTP/1.1", [("A", "b")], "up")
        stage.asked(1, OK)
        stage.body(1, b"x", "down")
        stage.answered(1, 200, (0, 1), 3)
        stage.asked(2, NO)

    rig.run(exchange)
    rig.run(lambda: stage.ended(0, 0, "http"))
    assert har.calls == [
        ("head", 1, "HTTP/1.1", {"A": "b"}, "up"),
        ("asked", 1, OK, None),
        ("body", 1, b"x", "down"),
        ("ended", 1, 200, (0, 1)),
        ("asked", 2, NO, "request-denied"),
        ("lost",),
    ]


def test_heads_and_bodies_that_nobody_wants_break_the_protocol(rig: Any, engine: ScriptedEngine) -> None:
    rig.canary()
    _, stage = begun(rig, engine)

    def unwanted() -> None:
        with pytest.raises(ChannelError):
            stage.head(1, "HTTP/1.1", [], "up")
        with pytest.raises(ChannelError):
            stage.body(1, b"", "up")

    rig.run(unwanted)
    rig.run(stage.lost)
