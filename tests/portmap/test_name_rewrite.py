"""A server by name sees itself as localhost, and no other origin than its own session's is taken for its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.name_rewrite import NamedServer, split_origin, without_domain

from netsandbox.runtime.http.head import HeadReader

HOST = b"shop.localhost:7878"
PUBLISHED = {3000, 5173}
NAMES = st.sampled_from(["shop", "shop-2", "xshop", "red", "3000", "localhost", "5173.shop", "9.red", "shop.evil.test"])
PLACES = st.builds("{}{}{}".format, NAMES, st.sampled_from([".localhost", ""]), st.sampled_from(["", ":7878", ":3000"]))
ORIGINS = st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "ws"]), PLACES, st.sampled_from(["", "/x?y"]))


def server(host: bytes = HOST, port: int = 3000) -> NamedServer:
    return NamedServer(host, b"127.0.0.1", (port, 3000), PUBLISHED.__contains__)


def sent(named: NamedServer, *headers: bytes) -> dict[bytes, bytes]:
    """The headers that the server gets, by name."""
    found = HeadReader().feed(b"\r\n".join((b"GET / HTTP/1.1", b"Host: " + named.host, *headers)) + b"\r\n\r\n")
    assert found is not None
    lines = named.request(found[0]).head_bytes.split(b"\r\n")[1:-2]
    pairs = [line.split(b": ", 1) for line in lines]
    assert len({name.lower() for name, _ in pairs}) == len(pairs)
    return {name.lower(): value for name, value in pairs}


def returned(named: NamedServer, *lines: bytes) -> list[bytes]:
    status = b"HTTP/1.1 200 OK"
    raw = b"\r\n".join((status, *lines)) + b"\r\n\r\n"
    return named.response([status, *lines], raw).split(b"\r\n")[1:-2]


def test_a_server_sees_its_own_address_and_is_told_the_other() -> None:
    got = sent(server(), b"Accept: */*")
    assert got == {
        b"host": b"localhost:3000",
        b"accept": b"*/*",
        b"x-forwarded-for": b"127.0.0.1",
        b"x-forwarded-proto": b"http",
        b"x-forwarded-host": HOST,
    }


def test_forwarded_headers_of_the_client_are_replaced() -> None:
    got = sent(server(), b"X-Forwarded-For: 192.0.2.1", b"x-forwarded-HOST: evil.test", b"Forwarded: for=x")
    assert got[b"x-forwarded-for"] == b"127.0.0.1"
    assert got[b"x-forwarded-host"] == HOST
    assert b"forwarded" not in got


@pytest.mark.parametrize(
    ("origin", "seen"),
    [
        (b"http://shop.localhost:7878", b"http://localhost:3000"),
        (b"HTTP://Shop.LOCALHOST:7878", b"HTTP://localhost:3000"),
        (b"http://5173.shop.localhost:7878", b"http://localhost:5173"),  # another server of the session
        (b"https://shop.localhost:7878", b"https://localhost:3000"),
        (b"http://red.localhost:7878", b"http://red.localhost:7878"),
        (b"http://5173.red.localhost:7878", b"http://5173.red.localhost:7878"),
        (b"http://shop.localhost", b"http://shop.localhost"),  # another server of the host
        (b"http://shop.localhost:3000", b"http://shop.localhost:3000"),
        (b"http://x.shop.localhost:7878", b"http://x.shop.localhost:7878"),
        (b"http://evil.test", b"http://evil.test"),
        (b"null", b"null"),
        (b"http://localhost:3000", b"null"),  # a page of the host, which the server would take for its own
        (b"http://localhost.:3000", b"null"),
        (b"http://127.0.0.1:3000", b"null"),
        (b"http://[::1]:3000", b"null"),
        (b"http://0.0.0.0:3000", b"null"),
        (b"http://a@localhost:3000", b"null"),
    ],
)
def test_an_origin_as_the_server_sees_it(origin: bytes, seen: bytes) -> None:
    got = sent(server(), b"Origin: " + origin)
    assert got[b"origin"] == seen
    own = b"localhost:" in seen and b"shop" not in seen and b"red" not in seen
    assert (b"x-forwarded-host" in got) is not own  # frameworks compare the two


def test_a_referer_keeps_its_path_and_one_of_the_host_is_dropped() -> None:
    assert sent(server(), b"Referer: http://shop.localhost:7878/a?b")[b"referer"] == b"http://localhost:3000/a?b"
    assert b"referer" not in sent(server(), b"Referer: http://localhost:3000/a")
    assert sent(server(), b"Referer: http://red.localhost:7878/a")[b"referer"] == b"http://red.localhost:7878/a"


@given(ORIGINS, st.sampled_from([HOST, b"5173.shop.localhost:7878"]))
def test_only_origins_of_this_name_become_the_servers(origin: str, host: bytes) -> None:
    seen = sent(server(host), b"Origin: " + origin.encode())[b"origin"]
    if split_origin(seen)[1].startswith(b"localhost:"):
        place = split_origin(origin.encode())[1]
        assert place == HOST or place.removesuffix(b"." + HOST).isdigit()


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (b"Location: http://localhost:3000/next", b"Location: http://shop.localhost:7878/next"),
        (b"location: //localhost:3000/next", b"location: //shop.localhost:7878/next"),
        (b"Location: https://localhost:5173?x", b"Location: https://5173.shop.localhost:7878?x"),
        (b"Location: http://localhost:9999/", b"Location: http://localhost:9999/"),  # not of this session
        (b"Location: /localhost:3000", b"Location: /localhost:3000"),
        (b"Location: http://localhost:3000.evil.test/", b"Location: http://localhost:3000.evil.test/"),
        (b"Access-Control-Allow-Origin: http://localhost:3000", b"Access-Control-Allow-Origin: http://%s" % HOST),
        (b"Access-Control-Allow-Origin: *", b"Access-Control-Allow-Origin: *"),
        (b"Access-Control-Allow-Origin: http://red.localhost:7878", None),
        (b"Set-Cookie: a=b; Domain=localhost; Path=/", b"Set-Cookie: a=b; Path=/"),
        (b"Set-Cookie: a=localhost; domain = .LOCALHOST", b"Set-Cookie: a=localhost"),
        (b"X-Other: http://localhost:3000", None),
    ],
)
def test_a_response_as_the_client_sees_it(line: bytes, seen: bytes | None) -> None:
    assert returned(server(), line, b"X: localhost") == [seen or line, b"X: localhost"]


def test_a_server_with_a_port_in_its_name_stays_there() -> None:
    host = b"5173.shop.localhost:7878"
    assert returned(server(host, 5173), b"Location: http://localhost:5173/x") == [b"Location: http://%s/x" % host]
    assert returned(server(host, 5173), b"Location: http://localhost:3000/x") == [b"Location: http://%s/x" % HOST]


@given(st.sampled_from([b"http", b"https"]), st.sampled_from([3000, 5173]), st.sampled_from([b"", b"/x?y#z"]))
def test_what_goes_in_comes_back(scheme: bytes, port: int, path: bytes) -> None:
    label = b"" if port == 3000 else b"%d." % port
    url = b"%s://%s%s%s" % (scheme, label, HOST, path)
    inside = sent(server(), b"Referer: " + url)[b"referer"]
    assert inside == b"%s://localhost:%d%s" % (scheme, port, path)
    assert returned(server(), b"Location: " + inside) == [b"Location: " + url]


def test_a_head_with_a_location_is_not_remembered() -> None:
    """What is published changes with time, and with it where a Location leads."""
    named = server()
    named.remember(b"a", b"b", 3, keep_alive=True)
    named.remember(b"Location: x", b"b", 3, keep_alive=True)
    assert named.responses.get(b"a") == (b"b", 3, True)
    assert named.responses.get(b"Location: x") is None


@pytest.mark.parametrize(
    "cookie", [b"a=b", b"a=b; Domain=shop.localhost", b"a; domain=localhost.test", b"Domain=localhost"]
)
def test_other_cookies_pass(cookie: bytes) -> None:
    assert without_domain(cookie) == cookie
