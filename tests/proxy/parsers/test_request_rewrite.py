"""The origin sees the authority that was decided on, and nothing that was meant for the proxy."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.parsers.request_rewrite import connect_request, forward_request, pinned_request

from netsandbox.runtime.http.body import CHUNKED, LENGTH, NONE
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.head import HeadReader, RequestHead


def head_of(line: bytes, *headers: bytes) -> RequestHead:
    result = HeadReader().feed(b"\r\n".join((line, *headers)) + b"\r\n\r\n")
    assert result is not None
    return result[0]


def get(url: bytes, *headers: bytes) -> RequestHead:
    return head_of(b"GET " + url + b" HTTP/1.1", *headers)


def lines_of(raw: bytes) -> list[bytes]:
    assert raw.endswith(b"\r\n\r\n")
    return raw[:-4].split(b"\r\n")


def test_absolute_form_becomes_origin_form() -> None:
    request = forward_request(get(b"http://A.test:8080/x?y", b"Host: a.test:8080", b"Accept: */*"))
    assert (request.authority_host, request.port, request.method) == (b"A.test", 8080, b"GET")
    assert request.head_bytes == b"GET /x?y HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\n\r\n"
    assert request.keep_alive
    assert not request.upgrade
    assert request.framing.kind == NONE


@pytest.mark.parametrize(
    ("method", "url", "target"),
    [
        (b"GET", b"http://a.test", b"/"),
        (b"GET", b"http://a.test?q", b"/?q"),
        (b"OPTIONS", b"http://a.test", b"*"),
        (b"GET", b"http://a.test//b", b"//b"),
    ],
)
def test_empty_paths(method: bytes, url: bytes, target: bytes) -> None:
    request = forward_request(head_of(method + b" " + url + b" HTTP/1.1", b"Host: a.test"))
    assert lines_of(request.head_bytes)[0] == method + b" " + target + b" HTTP/1.1"


@pytest.mark.attack(21)
@pytest.mark.parametrize(
    "host",
    [b"denied.test", b"allowed.test:81", b"allowed.test.evil.test", b"x.allowed.test", b"192.0.2.1", b"allowed.test.."],
)
def test_absolute_form_and_host_must_agree(host: bytes) -> None:
    """Attack 21: the Host header cannot name another origin than the URL."""
    with pytest.raises(ProtocolError) as caught:
        forward_request(get(b"http://allowed.test/", b"Host: " + host))
    assert (caught.value.reason, caught.value.status) == ("host-mismatch", 421)


@pytest.mark.attack(7)
@pytest.mark.attack(21)
@pytest.mark.parametrize("host", [b"allowed.test", b"ALLOWED.test", b"allowed.test:80", b"allowed.test."])
def test_spellings_of_one_authority_agree(host: bytes) -> None:
    """Attacks 7 and 21: the Host that goes out is the decided one, however it was spelled."""
    request = forward_request(get(b"http://Allowed.Test./", b"Host: " + host))
    assert lines_of(request.head_bytes)[1] == b"Host: allowed.test"


@pytest.mark.attack(22)
@pytest.mark.parametrize("target", [b"/", b"*", b"//allowed.test/", b"allowed.test:80", b"?x"])
def test_origin_form_to_the_proxy_port_is_refused(target: bytes) -> None:
    """Attack 22."""
    with pytest.raises(ProtocolError) as caught:
        forward_request(get(target, b"Host: allowed.test"))
    assert caught.value.status == 400


@pytest.mark.attack(22)
@pytest.mark.attack(25)
@pytest.mark.parametrize(
    ("target", "host"),
    [
        (b"/", b"denied.test"),
        (b"/", b"allowed.test:81"),
        (b"http://denied.test/", b"allowed.test"),
        (b"http://allowed.test/", b"denied.test"),
        (b"http://allowed.test:81/", b"allowed.test"),
        (b"/", b"192.0.2.1"),
    ],
)
def test_a_pinned_connection_has_one_authority(target: bytes, host: bytes) -> None:
    """Attacks 22 and 25: a later request on the connection cannot go elsewhere either."""
    with pytest.raises(ProtocolError) as caught:
        pinned_request(get(target, b"Host: " + host), b"allowed.test", 80)
    assert (caught.value.reason, caught.value.status) == ("host-mismatch", 421)


@pytest.mark.parametrize(
    ("target", "host", "pinned", "port", "sent"),
    [
        (b"/x", b"Allowed.Test.", b"allowed.test", 80, b"allowed.test"),
        (b"/x", b"allowed.test:80", b"allowed.test", 80, b"allowed.test"),
        (b"http://allowed.test/x", b"allowed.test", b"allowed.test", 80, b"allowed.test"),
        (b"/x", b"allowed.test", b"allowed.test", 8080, b"allowed.test:8080"),
        (b"/x", b"192.0.2.1", b"192.0.2.1", 80, b"192.0.2.1"),
        (b"/x", b"[2001:DB8::0:1]:81", b"2001:db8::1", 81, b"[2001:db8::1]:81"),
    ],
)
def test_a_pinned_request_passes(target: bytes, host: bytes, pinned: bytes, port: int, sent: bytes) -> None:
    request = pinned_request(get(target, b"Host: " + host), pinned, port)
    assert lines_of(request.head_bytes) == [b"GET /x HTTP/1.1", b"Host: " + sent]
    assert (request.authority_host, request.port) == (pinned, port)


@pytest.mark.attack(47)
def test_an_address_destination_takes_no_name() -> None:
    """Attack 47: a connection by address cannot carry a name that nobody decided on."""
    with pytest.raises(ProtocolError):
        pinned_request(get(b"/", b"Host: allowed.test"), b"192.0.2.1", 80)


def test_http_1_0_without_host_gets_the_decided_one() -> None:
    request = pinned_request(head_of(b"GET / HTTP/1.0"), b"allowed.test", 80)
    assert lines_of(request.head_bytes) == [b"GET / HTTP/1.0", b"Host: allowed.test", b"Connection: close"]
    assert not request.keep_alive
    kept = forward_request(head_of(b"GET http://a.test/ HTTP/1.0", b"Connection: keep-alive"))
    assert lines_of(kept.head_bytes)[-1] == b"Connection: keep-alive"


@pytest.mark.attack(38)
@pytest.mark.attack(39)
def test_nothing_meant_for_us_reaches_the_origin() -> None:
    """Attacks 38 and 39: control channels and credentials of the proxy are stripped, in any case."""
    request = forward_request(
        get(
            b"http://a.test/",
            b"Host: a.test",
            b"Proxy-Authorization: Basic c2VjcmV0",
            b"PROXY-CONNECTION: keep-alive",
            b"Proxy-Anything: x",
            b"X-Unix-Socket: /var/run/docker.sock",
            b"x-NetSandbox-Session: 1",
            b"Keep-Alive: 5",
            b"TE: trailers",
            b"Connection: X-Drop, keep-alive",
            b"x-drop: 1",
            b"Trailer: X-Sum",
            b"X-Forwarded-For: 192.0.2.1",
            b"Authorization: Bearer x",
        )
    )
    assert lines_of(request.head_bytes)[2:] == [
        b"Trailer: X-Sum",
        b"X-Forwarded-For: 192.0.2.1",
        b"Authorization: Bearer x",
    ]


@pytest.mark.attack(28)
@pytest.mark.parametrize("value", [b"content-length", b"close, Transfer-Encoding", b"Host", b"a b", b"x;y"])
def test_connection_cannot_name_the_framing_away(value: bytes) -> None:
    """Attack 28: a hop-by-hop Content-Length would give the origin another body than the one we follow."""
    with pytest.raises(ProtocolError):
        forward_request(get(b"http://a.test/", b"Host: a.test", b"Content-Length: 3", b"Connection: " + value))


def test_framing_is_kept() -> None:
    counted = forward_request(get(b"http://a.test/", b"Host: a.test", b"Content-Length: 3"))
    assert (counted.framing.kind, counted.framing.length) == (LENGTH, 3)
    assert b"\r\nContent-Length: 3\r\n" in counted.head_bytes
    chunked = forward_request(
        get(b"http://a.test/", b"Host: a.test", b"Transfer-Encoding: chunked", b"Connection: close")
    )
    assert chunked.framing.kind == CHUNKED
    assert lines_of(chunked.head_bytes)[2:] == [b"Transfer-Encoding: chunked", b"Connection: close"]
    assert not chunked.keep_alive


@pytest.mark.parametrize(
    "lines", [(b"Content-Length: 1", b"Content-Length: 1"), (b"Content-Length: 1", b"Transfer-Encoding: chunked")]
)
@pytest.mark.attack(27)
def test_bad_framing_is_refused_before_anything_is_built(lines: tuple[bytes, bytes]) -> None:
    """Attacks 27 and 28."""
    with pytest.raises(ProtocolError):
        forward_request(get(b"http://a.test/", b"Host: a.test", *lines))


@pytest.mark.attack(35)
def test_websocket_is_upgraded() -> None:
    """Attack 35: the same host checks, then an upgrade."""
    headers = (b"Connection: keep-alive, Upgrade", b"Upgrade: WebSocket", b"Sec-WebSocket-Key: x")
    request = forward_request(get(b"http://a.test/", b"Host: a.test", *headers))
    assert request.upgrade
    assert lines_of(request.head_bytes)[2:] == [b"Sec-WebSocket-Key: x", b"Connection: Upgrade", b"Upgrade: websocket"]
    with pytest.raises(ProtocolError):
        forward_request(get(b"http://a.test/", b"Host: denied.test", *headers))
    with pytest.raises(ProtocolError):
        pinned_request(get(b"/", b"Host: denied.test", *headers), b"a.test", 80)


@pytest.mark.attack(34)
@pytest.mark.parametrize(
    "headers",
    [
        (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
        (b"Upgrade: websocket",),
        (b"Connection: upgrade", b"Upgrade: websocket, h2c"),
        (b"Connection: upgrade", b"Upgrade: websocket", b"Upgrade: h2c"),
        (b"Connection: upgrade", b"Upgrade: TLS/1.0"),
        (b"Connection: upgrade", b"Upgrade: websocket", b"Content-Length: 0"),
    ],
)
def test_other_upgrades_are_dropped(headers: tuple[bytes, ...]) -> None:
    """Attack 34: h2c would open a protocol whose requests nobody decides on."""
    request = forward_request(get(b"http://a.test/", b"Host: a.test", *headers))
    assert not request.upgrade
    sent = request.head_bytes.lower()
    assert b"upgrade" not in sent
    assert b"http2" not in sent


@pytest.mark.parametrize("host", [b"a.test:443", b"a.test", b"A.TEST.", b"A.test:443"])
def test_connect_says_where_to(host: bytes) -> None:
    assert connect_request(head_of(b"CONNECT a.test:443 HTTP/1.1", b"Host: " + host)) == (b"a.test", 443)
    assert connect_request(head_of(b"CONNECT [::1]:22 HTTP/1.0")) == (b"[::1]", 22)


@pytest.mark.attack(23)
@pytest.mark.parametrize("host", [b"denied.test:443", b"denied.test", b"allowed.test:80"])
def test_connect_and_host_must_agree(host: bytes) -> None:
    """Attack 23."""
    with pytest.raises(ProtocolError) as caught:
        connect_request(head_of(b"CONNECT allowed.test:443 HTTP/1.1", b"Host: " + host))
    assert (caught.value.reason, caught.value.status) == ("host-mismatch", 400)


@pytest.mark.attack(10)
@pytest.mark.attack(13)
@pytest.mark.parametrize(
    "target",
    [
        b"allowed.test@denied.test:443",
        b"allowed.test",
        b"http://allowed.test:443",
        b"allowed.test:443/",
        b"/",
        b":443",
        b"2001:db8::1:443",
        b"*",
    ],
)
def test_connect_takes_an_authority_only(target: bytes) -> None:
    """Attacks 10 and 13."""
    with pytest.raises(ProtocolError):
        connect_request(head_of(b"CONNECT " + target + b" HTTP/1.1", b"Host: allowed.test"))


@pytest.mark.attack(26)
@pytest.mark.parametrize("line", [b"Content-Length: 5", b"Content-Length: 0", b"Transfer-Encoding: chunked"])
def test_connect_has_no_body(line: bytes) -> None:
    """Attack 26: a body behind CONNECT would be read as the tunnel's first bytes."""
    with pytest.raises(ProtocolError):
        connect_request(head_of(b"CONNECT a.test:443 HTTP/1.1", b"Host: a.test", line))


def test_methods_stay_in_their_lane() -> None:
    connect = head_of(b"CONNECT a.test:80 HTTP/1.1", b"Host: a.test")
    with pytest.raises(ProtocolError):
        forward_request(connect)
    with pytest.raises(ProtocolError) as caught:
        pinned_request(connect, b"a.test", 80)
    assert caught.value.reason == "unsupported"
    with pytest.raises(ProtocolError):
        connect_request(get(b"/", b"Host: a.test"))


@pytest.mark.parametrize(("method", "target"), [(b"GET", b"*"), (b"GET", b"/a#b")])
def test_odd_origin_targets_are_refused(method: bytes, target: bytes) -> None:
    with pytest.raises(ProtocolError):
        pinned_request(head_of(method + b" " + target + b" HTTP/1.1", b"Host: a.test"), b"a.test", 80)
    assert pinned_request(head_of(b"OPTIONS * HTTP/1.1", b"Host: a.test"), b"a.test", 80).head_bytes.startswith(
        b"OPTIONS * "
    )


NAMES = st.sampled_from(
    [
        b"Host",
        b"Connection",
        b"Upgrade",
        b"Proxy-X",
        b"X-A",
        b"Content-Length",
        b"Transfer-Encoding",
        b"TE",
        b"Keep-Alive",
    ]
)
VALUES = st.sampled_from(
    [b"a.test", b"b.test", b"close", b"x-a, upgrade", b"websocket", b"h2c", b"5", b"chunked", b"keep-alive", b"te"]
)


@given(
    st.lists(st.tuples(NAMES, VALUES).map(lambda pair: pair[0] + b": " + pair[1]), max_size=6),
    st.sampled_from([b"http://a.test/", b"http://b.test/x", b"http://A.test"]),
)
def test_whatever_goes_out_is_one_clean_request_to_the_decided_host(headers: list[bytes], url: bytes) -> None:
    try:
        request = forward_request(get(url, b"Host: a.test", *headers))
    except ProtocolError:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(request.head_bytes)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    assert [value for name, value in event.headers if name == b"host"] == [b"a.test"]
    assert not any(name.startswith(b"proxy-") for name, _ in event.headers)
    assert HeadReader().feed(request.head_bytes) is not None
