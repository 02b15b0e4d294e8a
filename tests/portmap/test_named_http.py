"""Every request of a connection by name is rewritten and framed; what two parsers could read differently is refused."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netsandbox_portmap import named_http as module

from tests.rig.by_name import NAME, ask
from tests.rig.waiting import wait_for

GET = f"GET /{{}} HTTP/1.1\r\nHost: {NAME}\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Origin:
    """A server that keeps what it heard and answers each read with the next of *answers*, the last for ever."""

    def __init__(self, rig: Any, door: Any, *answers: bytes) -> None:
        self.heard = b""
        self.answers = list(answers)
        door.book.publish(3000, rig.server(self._serve).port)

    def _serve(self, peer: socket.socket) -> None:
        while data := peer.recv(65536):
            self.heard += data
            peer.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := client.recv(size - len(data))):
        data += piece
    return data


def test_every_request_of_a_connection_is_rewritten(door: Any, pages: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=20)
    own = f"{NAME}:{door.port}"
    for number in range(4):  # from the second on the head is known
        connection.request("GET", "/headers", headers={"Host": own, "Origin": f"http://{own}", "X-Forwarded-For": "x"})
        got = json.load(connection.getresponse())
        assert (got["host"], got["origin"]) == ("localhost:3000", "http://localhost:3000"), number
        assert (got["x-forwarded-for"], got["x-forwarded-proto"]) == ("127.0.0.1", "http")
    connection.close()


def test_every_response_of_a_connection_is_rewritten(door: Any, pages: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=20)
    headers = ["Set-Cookie: a=b; Domain=localhost", "Location: http://localhost:3000/x"]
    for number in range(4):
        connection.request("GET", "/echo?" + "&".join(map(quote, headers)), headers={"Host": f"{NAME}:{door.port}"})
        answer = connection.getresponse()
        assert answer.read() == b"echo"
        assert answer.getheader("Set-Cookie") == "a=b", number
        assert answer.getheader("Location") == f"http://{NAME}:{door.port}/x"
    connection.close()


def test_known_heads_do_not_mix_responses_of_two_connections(rig: Any, door: Any) -> None:
    """Two servers' responses have heads of their own lengths; each is remembered with its own."""
    origin = Origin(rig, door, OK, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", OK)
    one, two = rig.client(door.port), rig.client(door.port)
    one.sendall(GET.format("a").encode())
    assert read(one, len(OK)) == OK
    one.sendall(GET.format("a").encode())  # its body has not come yet
    assert read(one, 38).endswith(b"\r\n\r\n")
    for _ in range(3):
        two.sendall(GET.format("a").encode())
        assert read(two, len(OK)) == OK
    assert origin.heard.count(b"GET /a ") == 5


def test_a_known_response_that_comes_in_pieces_or_with_more_behind_it(rig: Any, door: Any) -> None:
    Origin(rig, door, OK, OK, OK[:10], OK, OK + b"HTTP/1.1 200 OK\r\n")
    client = rig.client(door.port)
    for _ in range(2):
        client.sendall(GET.format("a").encode())
        assert read(client, len(OK)) == OK
    client.sendall(GET.format("a").encode())
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(100)
    client.close()
    client = rig.client(door.port)
    client.sendall(GET.format("a").encode())
    assert read(client, len(OK)) == OK
    client.sendall(GET.format("a").encode())
    assert read(client, 999) == OK  # the bytes behind it are nobody's, and the connection ends


def test_a_known_response_that_ends_its_connection_does_so_each_time(rig: Any, door: Any, speak: Any) -> None:
    """By the word of the client or of the server."""
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    Origin(rig, door, closing)
    for _ in range(3):
        assert ask(rig, speak, door.port, GET.format("a").encode()) == closing
    Origin(rig, door, OK)
    for _ in range(3):
        assert (
            ask(rig, speak, door.port, GET.format("b").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode())
            == OK
        )
    wait_for(lambda: rig.run(lambda: door.connections) == 0)


def test_requests_that_come_at_once_are_answered_in_order(rig: Any, door: Any, pages: int) -> None:
    client = rig.client(door.port)
    for _ in range(2):  # known and unknown heads
        client.sendall(GET.format("1").encode() + GET.format("2").encode())
        client.sendall(GET.format("3").encode())
        data = b""
        while data.count(b'"path"') < 3:
            data += client.recv(4096)
        assert data.index(b'"/1"') < data.index(b'"/2"') < data.index(b'"/3"')


def test_a_client_that_asks_faster_than_it_reads_gets_every_byte(rig: Any, door: Any) -> None:
    body = bytes(range(256)) * 200
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    Origin(rig, door, answer)
    client = rig.client(door.port)
    count = 60
    threading.Thread(target=client.sendall, args=(GET.format("a").encode() * count,)).start()
    assert read(client, len(answer) * count) == answer * count


@pytest.mark.attack(27)
@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: +3\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: y\nContent-Length: 3\r\n",
        "Connection: content-length\r\nContent-Length: 3\r\n",
        " folded\r\n",
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_request_that_hides_another_is_refused(rig: Any, door: Any, speak: Any, head: str, *, first: bool) -> None:
    origin = Origin(rig, door, OK)
    client = rig.client(door.port)
    if not first:
        client.sendall(GET.format("fine").encode())
        assert read(client, len(OK)) == OK
    client.sendall(f"POST /bad HTTP/1.1\r\nHost: {NAME}\r\n{head}\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\n".encode())
    assert b" 400 Bad Request\r\n" in speak.read_all(client)
    assert b"/bad" not in origin.heard
    assert b"/hidden" not in origin.heard


@pytest.mark.attack(25)
def test_another_host_on_the_same_connection_is_421(rig: Any, door: Any, speak: Any) -> None:
    origin = Origin(rig, door, OK)
    client = rig.client(door.port)
    client.sendall(GET.format("a").encode())
    assert read(client, len(OK)) == OK
    client.sendall(b"GET /b HTTP/1.1\r\nHost: red.localhost\r\n\r\n")
    assert speak.read_all(client).startswith(b"HTTP/1.1 421 ")
    assert b"/b" not in origin.heard


@pytest.mark.attack(25)
@pytest.mark.parametrize("line", ["GET http://red.localhost/b", "CONNECT red.localhost:80", "GET b"])
def test_a_later_target_with_a_host_is_refused_as_a_first_one_is(rig: Any, door: Any, speak: Any, line: str) -> None:
    """A server takes such a host before the Host header, which it would see as its own address."""
    origin = Origin(rig, door, OK)
    client = rig.client(door.port)
    client.sendall(GET.format("a").encode())
    assert read(client, len(OK)) == OK
    client.sendall(f"{line} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")
    assert line.encode() not in origin.heard


@pytest.mark.attack(192)
def test_a_second_head_that_dawdles_is_408(rig: Any, door: Any, speak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Origin(rig, door, OK)
    client = rig.client(door.port)
    client.sendall(GET.format("a").encode())
    assert read(client, len(OK)) == OK
    monkeypatch.setattr(module, "HEAD_DEADLINE", 0.1)
    client.sendall(b"GET /b")
    assert speak.read_all(client).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",  # nobody asked for it
    ],
)
def test_a_response_that_cannot_be_read_is_502(rig: Any, door: Any, speak: Any, answer: bytes) -> None:
    Origin(rig, door, answer)
    assert ask(rig, speak, door.port, GET.format("").encode()).startswith(b"HTTP/1.1 502 ")


def test_a_server_that_closes_instead_of_a_second_response_ends_the_connection(rig: Any, door: Any, speak: Any) -> None:
    """As without us: the client sees the end of its connection and sends its request again."""

    def once(peer: socket.socket) -> None:
        peer.recv(9999)
        peer.sendall(OK)
        peer.recv(9999)

    door.book.publish(3000, rig.server(once).port)
    client = rig.client(door.port)
    client.sendall(GET.format("a").encode())
    assert read(client, len(OK)) == OK
    client.sendall(GET.format("a").encode())
    assert client.recv(1) == b""


def test_a_response_that_is_cut_is_a_reset(rig: Any, door: Any) -> None:
    def cut(peer: socket.socket) -> None:
        peer.recv(9999)
        peer.sendall(OK[:-1])

    door.book.publish(3000, rig.server(cut).port)
    client = rig.client(door.port)
    client.sendall(GET.format("a").encode())
    with pytest.raises(ConnectionResetError):
        read(client, len(OK))


def test_a_half_closed_client_still_gets_its_response(rig: Any, door: Any, pages: int, speak: Any) -> None:
    for _ in range(2):
        client = rig.client(door.port)
        client.sendall(GET.format("a").encode())
        client.shutdown(socket.SHUT_WR)
        assert b'"/a"' in speak.read_all(client)
    wait_for(lambda: rig.run(lambda: door.connections) == 0)


def test_a_client_that_leaves_within_its_request_body_closes_the_servers_connection(rig: Any, door: Any) -> None:
    left = threading.Event()

    def serve(peer: socket.socket) -> None:
        try:
            while peer.recv(9999):
                pass
        except ConnectionResetError:
            pass
        left.set()

    door.book.publish(3000, rig.server(serve).port)
    client = rig.client(door.port)
    client.sendall(f"POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 10\r\n\r\nabc".encode())
    client.close()
    assert left.wait(20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 300), max_size=6), st.integers(0, 3))
def test_however_requests_are_cut_the_responses_are_the_same(
    rig: Any, door: Any, pages: int, cuts: list[int], posts: int
) -> None:
    body = f"POST /x HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 4\r\n\r\nbody".encode() * posts
    data = GET.format("1").encode() + body + GET.format("2").encode()
    client = rig.client(door.port)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    at = 0
    for cut in [*cuts, len(data)]:
        client.sendall(data[at : at + cut])
        at += cut
    answer = b""
    while b'"/2"' not in answer:
        answer += client.recv(4096)
    assert answer.count(b"HTTP/1.1 200 OK") == 2 + posts
    client.close()


def test_keep_host_passes_everything_unread(rig: Any, raw_door: Any, speak: Any) -> None:
    heard: list[bytes] = []

    def serve(peer: socket.socket) -> None:
        heard.append(peer.recv(9999))
        peer.sendall(b"anything")

    raw_door.book.publish(3000, rig.server(serve).port)
    request = f"GET / HTTP/1.1\r\nHost: {NAME}\r\nOrigin: http://localhost:3000\r\n\r\nrest".encode()
    assert ask(rig, speak, raw_door.port, request) == b"anything"
    assert heard == [request]
