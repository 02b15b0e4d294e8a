"""Absolute-form requests on the mixed door: each decided alone, one after another."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def get(host: str, path: str = "/", *headers: bytes) -> bytes:
    lines = [f"GET http://{host}{path} HTTP/1.1".encode(), b"Host: " + host.encode(), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def read_response(speak: Any, client: socket.socket) -> tuple[bytes, bytes]:
    head = speak.read_head(client)
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    body = b""
    while len(body) < length:
        body += client.recv(length - len(body))
    return head, body


def test_a_request_reaches_its_origin_in_origin_form_without_our_headers(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test", "/a?b", b"Proxy-Authorization: Basic x", b"Proxy-Connection: keep-alive"))
    head, body = read_response(speak, client)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == b"GET /a?b HTTP/1.1"
    assert b"proxy-" not in canary.heard.lower()
    assert rig.gate.named("admit") == [("admit", "http", b"allowed.test", 80, None)]
    assert rig.gate.named("ended")[0][5] == "http"


@pytest.mark.attack(25)
def test_keep_alive_uses_one_server_connection_and_decides_every_request(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    for number in range(3):
        client.sendall(get("allowed.test", f"/{number}"))
        assert read_response(speak, client)[1] == b"GET /%d HTTP/1.1" % number
    assert canary.accepts == 1
    kinds = [call[0] for call in rig.gate.calls]
    assert kinds[:6] == ["admit", "dialling", "ended", "admit", "dialling", "ended"]


@pytest.mark.attack(25)
def test_a_kept_connection_goes_to_the_other_host_over_another_socket(rig: Any, speak: Any) -> None:
    first = rig.canary(speak.answer_http)
    second = rig.canary(speak.answer_http, "other.test")
    client = rig.client(rig.mixed())
    for host in ("allowed.test", "other.test", "allowed.test"):
        client.sendall(get(host, "/" + host))
        assert read_response(speak, client)[1] == b"GET /%s HTTP/1.1" % host.encode()
    client.close()
    assert b"other.test" not in first.everything()
    assert b"allowed.test" not in second.everything()


@pytest.mark.attack(25)
def test_the_second_request_of_a_kept_connection_can_be_denied(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test"))
    read_response(speak, client)
    client.sendall(get("denied.test"))
    assert read_response(speak, client)[0].startswith(b"HTTP/1.1 403 ")
    assert speak.read_all(client) == b""
    assert b"denied" not in canary.everything()


@pytest.mark.attack(26)
def test_pipelined_requests_are_answered_in_order_and_each_is_decided(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test", "/1") + get("allowed.test", "/2") + get("denied.test", "/3"))
    assert read_response(speak, client)[1] == b"GET /1 HTTP/1.1"
    assert read_response(speak, client)[1] == b"GET /2 HTTP/1.1"
    assert read_response(speak, client)[0].startswith(b"HTTP/1.1 403 ")
    assert [call[2] for call in rig.gate.named("admit")] == [b"allowed.test", b"allowed.test", b"denied.test"]
    assert b"/3" not in canary.everything()


@pytest.mark.attack(26)
def test_a_denied_request_with_a_body_is_answered_and_nothing_behind_it_is_a_request(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    smuggled = get("allowed.test", "/smuggled")
    post = b"POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nContent-Length: %d\r\n\r\n" % len(smuggled)
    client.sendall(post + smuggled)
    assert speak.read_all(client).startswith(b"HTTP/1.1 403 ")
    assert canary.accepts == 0
    assert len(rig.gate.named("admit")) == 1


def test_a_client_that_keeps_sending_after_a_denial_still_reads_it(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed())
    client.sendall(b"POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nContent-Length: 500000\r\n\r\n")
    for _ in range(5):
        client.sendall(b"x" * 100_000)
    assert speak.read_all(client).startswith(b"HTTP/1.1 403 ")


@pytest.mark.attack(21)
def test_a_host_header_that_is_not_the_urls_authority_is_refused(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(b"GET http://allowed.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
    assert speak.read_all(client).startswith(b"HTTP/1.1 421 ")
    assert canary.accepts == 0
    assert rig.gate.named("reject")[0][2] == "host-mismatch"


@pytest.mark.attack(22)
@pytest.mark.parametrize("target", [b"/", b"https://allowed.test/", b"ftp://allowed.test/", b"*"])
def test_what_is_not_absolute_http_is_refused(rig: Any, speak: Any, target: bytes) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(b"GET %s HTTP/1.1\r\nHost: allowed.test\r\n\r\n" % target)
    assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")
    assert canary.accepts == 0


@pytest.mark.attack(34)
def test_http2_by_prior_knowledge_is_refused(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed())
    client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")


@pytest.mark.attack(28)
def test_a_body_framed_twice_is_refused_before_anyone_is_asked(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed())
    client.sendall(
        b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n"
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")
    assert rig.gate.named("admit") == []


def take_body(canary: Any, peer: socket.socket) -> None:
    while not canary.heard.endswith(b"END"):
        if not canary.hear(peer):
            return
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_a_large_body_arrives_whole(rig: Any, speak: Any) -> None:
    canary = rig.canary(take_body)
    client = rig.client(rig.mixed())
    body = b"x" * 3_000_000 + b"END"
    client.sendall(b"PUT http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: %d\r\n\r\n" % len(body))
    client.sendall(body)
    assert read_response(speak, client)[1] == b"ok"
    assert canary.heard.partition(b"\r\n\r\n")[2] == body


@pytest.mark.attack(29)
def test_a_chunked_body_that_breaks_the_rules_is_cut_off_and_recorded(rig: Any, speak: Any) -> None:
    canary = rig.canary(take_body)
    client = rig.client(rig.mixed())
    client.sendall(b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.sendall(b"3\r\nabc\r\n")
    speak.wait_for(lambda: b"abc" in canary.heard)
    client.sendall(b"-1\nEND")
    assert speak.read_all(client).startswith(b"HTTP/1.1 400 ")
    assert b"END" not in canary.everything()
    assert rig.gate.named("refuse") == [("refuse", "allowed.test", "malformed")]


def test_an_early_answer_to_an_unfinished_body_is_delivered(rig: Any, speak: Any) -> None:
    def too_large(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")

    rig.canary(too_large)
    client = rig.client(rig.mixed())
    client.sendall(b"PUT http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 9000\r\n\r\nx")
    assert speak.read_all(client).endswith(b"big")


def canned(*answers: bytes) -> Any:
    def serve(canary: Any, peer: socket.socket) -> None:
        for answer in answers:
            if not canary.hear(peer):
                return
            peer.sendall(answer)

    return serve


@pytest.mark.attack(43)
@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_an_origin_that_speaks_no_http_is_a_502(rig: Any, speak: Any, answer: bytes) -> None:
    rig.canary(canned(answer))
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test"))
    assert b"HTTP/1.1 502 " in speak.read_all(client)
    client.close()
    rig.settle()
    assert len(rig.gate.named("ended")) == 1


@pytest.mark.attack(43)
def test_what_an_origin_adds_behind_its_answer_is_not_delivered(rig: Any, speak: Any) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    canary = rig.canary(canned(answer + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra", answer))
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test", "/1") + get("allowed.test", "/2"))
    assert speak.read_all(client) == answer
    assert b"/2" not in canary.everything()


def test_an_answer_that_ends_with_the_connection_is_delivered_whole(rig: Any, speak: Any) -> None:
    rig.canary(canned(b"HTTP/1.0 200 OK\r\n\r\n" + b"y" * 300_000))
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test"))
    assert speak.read_all(client).endswith(b"y" * 300_000)


def test_a_truncated_answer_is_not_passed_off_as_whole(rig: Any, speak: Any) -> None:
    rig.canary(canned(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"))
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test"))
    assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    speak.wait_for(lambda: rig.flows == 0)
    client.recv(4)
    with pytest.raises(ConnectionResetError):
        client.recv(1)


@pytest.mark.attack(36)
def test_a_redirect_is_handed_to_the_client_and_not_followed(rig: Any, speak: Any) -> None:
    other = rig.canary(speak.answer_http, "other.test")
    rig.canary(canned(b"HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\nContent-Length: 0\r\n\r\n"))
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test"))
    assert read_response(speak, client)[0].startswith(b"HTTP/1.1 302 ")
    assert other.accepts == 0


WEBSOCKET = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: eA==", b"Sec-WebSocket-Version: 13")


@pytest.mark.attack(35)
def test_a_websocket_is_opaque_after_the_101(rig: Any, speak: Any) -> None:
    def socketeer(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst")
        while data := canary.hear(peer):
            peer.sendall(data)

    rig.canary(socketeer)
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test", "/", *WEBSOCKET))
    assert speak.read_head(client).startswith(b"HTTP/1.1 101 ")
    assert client.recv(5) == b"first"
    client.sendall(b"GET http://denied.test/ HTTP/1.1\r\n\r\n")
    assert client.recv(100) == b"GET http://denied.test/ HTTP/1.1\r\n\r\n"
    assert len(rig.gate.named("admit")) == 1


def test_connect_after_a_request_on_the_same_connection_works(rig: Any, speak: Any) -> None:
    rig.canary(speak.answer_http)
    rig.canary(speak.echo, "other.test")
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test"))
    read_response(speak, client)
    client.sendall(b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n")
    assert speak.read_head(client).startswith(b"HTTP/1.1 200 ")
    client.sendall(b"\0x")
    assert client.recv(9) == b"\0x"


@pytest.mark.attack(53)
@pytest.mark.parametrize("credential", [None, b"c2Vzc2lvbjp3cm9uZw==", b"c2Vzc2lvbjp0b2tl", b"%%%"])
def test_without_the_sessions_token_nothing_is_asked_of_the_gate(
    rig: Any, speak: Any, credential: bytes | None
) -> None:
    client = rig.client(rig.mixed(token=b"token"))
    headers = () if credential is None else (b"Proxy-Authorization: Basic " + credential,)
    client.sendall(get("allowed.test", "/", *headers))
    assert speak.read_all(client).startswith(b"HTTP/1.1 407 ")
    assert rig.gate.named("admit") == []


def test_the_sessions_token_opens_the_door(rig: Any, speak: Any) -> None:
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed(token=b"token"))
    client.sendall(get("allowed.test", "/", b"Proxy-Authorization: Basic c2Vzc2lvbjp0b2tlbg=="))
    assert read_response(speak, client)[0].startswith(b"HTTP/1.1 200 ")
    assert b"c2Vz" not in canary.heard


def test_a_reused_connection_is_recorded_again_before_it_is_used(rig: Any, speak: Any) -> None:
    """INV-5: no record, no byte, not even on an open connection."""
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test", "/1"))
    read_response(speak, client)
    rig.gate.recorded = False
    client.sendall(get("allowed.test", "/2"))
    assert read_response(speak, client)[0].startswith(b"HTTP/1.1 503 ")
    assert b"/2" not in canary.everything()


@pytest.mark.parametrize("later", [["127.0.0.1"], ["127.0.0.2"]])
def test_a_connection_is_used_again_only_if_its_address_is_still_granted(
    rig: Any, speak: Any, later: list[str]
) -> None:
    """INV-4: the name may have moved since, or its address may be one of our own now."""
    canary = rig.canary(speak.answer_http)
    client = rig.client(rig.mixed())
    client.sendall(get("allowed.test", "/1"))
    read_response(speak, client)
    rig.gate.routes["allowed.test"] = later
    client.sendall(get("allowed.test", "/2"))
    read_response(speak, client)
    is_same = later == ["127.0.0.1"]
    assert rig.gate.named("dialling")[1][2] == later[0]
    assert (b"/2" in canary.heard, canary.accepts) == (is_same, 1)


@pytest.mark.attack(202)
def test_a_client_that_reads_nothing_holds_back_the_origin(rig: Any, speak: Any) -> None:
    sent = [0]

    def flood(canary: Any, peer: socket.socket) -> None:
        canary.hear(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n")
        while True:
            sent[0] += peer.send(b"z" * 65536)

    rig.canary(flood)
    client = rig.client(rig.mixed(), receive_buffer=4096)
    client.sendall(get("allowed.test"))
    speak.wait_for(lambda: speak.steady(lambda: sent[0]))
    assert 0 < sent[0] < 50_000_000
    rig.come_to_rest()


@pytest.mark.attack(192)
def test_an_unfinished_head_is_answered_408_at_the_deadline(rig: Any, speak: Any) -> None:
    client = rig.client(rig.mixed(head=60.0))
    client.sendall(b"GET http://allowed.test/ HTTP/1.1\r\nHost: allo")
    rig.wait_until_read(client)
    rig.skip(61.0)
    assert speak.read_all(client).startswith(b"HTTP/1.1 408 ")
    assert rig.gate.named("reject")[0][2] == "deadline"


def test_a_kept_connection_without_requests_is_closed_in_time(rig: Any, speak: Any) -> None:
    rig.canary(speak.answer_http)
    client = rig.client(rig.mixed(keep_alive=60.0))
    client.sendall(get("allowed.test"))
    read_response(speak, client)
    rig.skip(61.0)
    assert speak.read_all(client) == b""
    assert rig.gate.named("reject") == []


@pytest.mark.attack(223)
@pytest.mark.parametrize("method", [b"TRACE", b"TRACK", b"trace"])
def test_trace_is_405_and_nobody_is_dialled(rig: Any, speak: Any, method: bytes) -> None:
    canary = rig.canary(speak.answer_http)
    door = rig.mixed()
    client = rig.client(door)
    client.sendall(get("allowed.test").replace(b"GET", method))
    assert speak.read_all(client).startswith(b"HTTP/1.1 405 ")
    assert canary.accepts == 0
    client = rig.client(door)
    client.sendall(get("allowed.test"))
    assert read_response(speak, client)[0].startswith(b"HTTP/1.1 200 ")
    assert canary.accepts == 1
