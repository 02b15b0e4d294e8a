"""Section B of the catalogue, requests: the HTTP of the mixed door, and of plain connections, against the real product.

Each test asks for a forbidden origin in some roundabout way and, in the same session, for the allowed one in the
straight way. The forbidden canary must hear nothing; the allowed one must be reached.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.inside import Scene

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.fixture
def scene(netsandbox: Any, canary: Any, authority: Any) -> Scene:
    authority.answer("*.test", "127.0.0.1")
    return Scene(canary.http(body=b"reached"), canary.http(body=b"stolen"), authority, netsandbox)


def test_a_denied_request_is_told_why_and_that_retrying_is_useless(scene: Scene) -> None:
    tried = scene.attack('out["reply"] = get(b"denied.test", bad, b"/secret?token=1")')
    head, _, body = tried.out["reply"].partition("\r\n\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
    assert head.startswith("HTTP/1.1 403 ")
    assert fields["x-netsandbox-reason"] == "not-allowed"
    assert fields["connection"] == "close"
    assert int(fields["content-length"]) == len(body)
    assert body.count("\n") == 1
    assert "denied.test" in body
    assert "not-allowed" in body
    assert f"--allow-domain denied.test:{scene.bad.port}" in body
    assert "etry" in body
    assert "secret" not in body
    assert scene.bad.accepts == 0
    (record,) = tried.denied(host="denied.test")
    assert record["hint"] == f"--allow-domain denied.test:{scene.bad.port}"


@pytest.mark.attack(10)
@pytest.mark.attack(11)
@pytest.mark.attack(37)
def test_10_11_37_one_parser_reads_the_target_and_odd_ones_are_refused(scene: Scene) -> None:
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
    ports = {"good": scene.good.port, "bad": scene.bad.port}
    script = """
# HTTP/1.0 needs no Host, so nothing but the target is judged.
def asked(target, method=b"GET"):
    return status(say(method + b" " + target + b" HTTP/1.0\\r\\n\\r\\n"))
out["codes"] = [asked(text.encode()) for text in targets]
out["userinfo"] = asked(b"allowed.test@denied.test:%d" % bad, b"CONNECT")
out["twin"] = asked(b"http://allowed.test:%d/" % good)
"""
    tried = scene.attack(script, targets=[target.format(**ports) for target in targets])
    assert all(400 <= code < 500 for code in tried.out["codes"]), list(zip(targets, tried.out["codes"], strict=True))
    assert tried.out["userinfo"] == 400
    assert tried.out["twin"] == 200
    assert (scene.bad.accepts, scene.good.accepts) == (0, 1)


@pytest.mark.attack(21)
@pytest.mark.attack(22)
@pytest.mark.attack(23)
@pytest.mark.attack(24)
def test_21_to_24_no_second_name_beside_the_one_decided_on(scene: Scene) -> None:
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
    tried = scene.attack(script)
    assert all(400 <= code < 500 for code in tried.out["absolute"]), tried.out["absolute"]
    assert all(400 <= code < 500 for code in tried.out["connect"]), tried.out["connect"]
    assert all(400 <= code < 500 for code in tried.out["transparent"]), tried.out["transparent"]
    assert all(400 <= code < 500 for code in tried.out["tunnel"]), tried.out["tunnel"]
    assert set(tried.out["twins"]) == {200}
    assert scene.bad.accepts == 0
    assert b"denied" not in scene.good.received
    assert b"other.test" not in scene.good.received
    assert tried.denied(reason="host-mismatch")


@pytest.mark.attack(22)
@pytest.mark.attack(56)
def test_22_56_no_odd_beginning_makes_a_request_look_like_something_else(scene: Scene) -> None:
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
    tried = scene.attack(script)
    assert 200 not in tried.out["whole"] + tried.out["bytewise"] + tried.out["tunnel"] + [tried.out["tab"]]
    assert b"denied" not in scene.good.received
    assert tried.out["twins"] == [200, 200, 200]


@pytest.mark.attack(25)
@pytest.mark.attack(26)
def test_25_26_every_request_of_a_connection_is_decided_on_its_own(scene: Scene) -> None:
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
    tried = scene.attack(script)
    assert tried.out["reuse"] == [200, 403]
    assert tried.out["origin_form"][0] == 200
    assert tried.out["origin_form"][1] in (400, 421)
    assert tried.out["pipelined"] == [200, 403]
    assert tried.out["denied_first"] == [403]
    assert tried.out["smuggled_body"] == [200]
    assert tried.out["two_hosts"] == [200, 200]
    assert scene.bad.accepts == 0
    # The server's connection was not used again for another name, though both names have one address.
    for visit in scene.good.visits:
        assert not (b"Host: allowed.test" in visit.data and b"Host: other.test" in visit.data)


@pytest.mark.attack(27)
@pytest.mark.attack(28)
@pytest.mark.attack(29)
def test_27_28_29_a_body_that_two_parsers_could_read_differently_is_refused(scene: Scene) -> None:
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
    return say(start + field.encode("latin-1") + b"\r\n\r\n" + body)

smuggled = b"GET http://denied.test:%d/ HTTP/1.1\r\nHost: denied.test:%d\r\n\r\n" % (bad, bad)
out["lengths"] = [status(post(b"1.1", field, b"0\r\n\r\n" + smuggled)) for field in fields]
out["old"] = status(post(b"1.0", "Transfer-Encoding: chunked", b"0\r\n\r\n" + smuggled))
replies = [post(b"1.1", "Transfer-Encoding: chunked\r\nConnection: close", body.encode("latin-1")) for body in chunks]
out["chunks"] = [status(reply) for reply in replies]
out["twin"] = status(post(b"1.1", "Transfer-Encoding: chunked\r\nConnection: close", b"5\r\nhello\r\n0\r\n\r\n"))
"""
    tried = scene.attack(script, fields=fields, chunks=chunks)
    assert all(400 <= code < 500 for code in tried.out["lengths"]), list(zip(fields, tried.out["lengths"], strict=True))
    assert tried.out["old"] == 400
    # A chunk is judged when the head is already on its way: the client gets an error or a closed connection, the origin
    # an incomplete message, and never a second request.
    assert scene.bad.accepts == 0
    assert b"denied.test" not in scene.good.received
    assert scene.good.accepts >= 1
    assert tried.out["twin"] == 200


@pytest.mark.attack(31)
def test_31_bytes_sent_before_the_reply_go_nowhere_when_the_answer_is_no(scene: Scene) -> None:
    script = """
sock, head = connect(b"denied.test", bad, b"\\x16\\x03\\x01 early secret")
out["denied"] = status(head)
early = b"GET / HTTP/1.1\\r\\nHost: allowed.test:%d\\r\\nConnection: close\\r\\n\\r\\n" % good
sock, head = connect(b"allowed.test", good, early)
out["allowed"] = [status(head), b"reached" in head + rest(sock)]
"""
    tried = scene.attack(script)
    assert tried.out == {"denied": 403, "allowed": [200, True]}
    assert scene.bad.accepts == 0
    assert b"secret" not in scene.good.received


@pytest.mark.attack(32)
def test_32_heads_have_a_limit(scene: Scene) -> None:
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
    tried = scene.attack(script)
    assert all(code == 0 or 400 <= code < 500 for code in tried.out["codes"]), tried.out["codes"]
    assert tried.out["twin"] == 200
    assert scene.good.accepts == 1
