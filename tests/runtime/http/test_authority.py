"""An authority has one reading, or it is refused (INV-2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.http.authority import fold_host, split_authority, split_url
from netsandbox.runtime.http.errors import ProtocolError


@pytest.mark.parametrize(
    ("raw", "default", "expected"),
    [
        (b"example.com:443", None, (b"example.com", 443)),
        (b"example.com", 80, (b"example.com", 80)),
        (b"ExAmPlE.com.:8080", None, (b"ExAmPlE.com.", 8080)),
        (b"[2001:db8::1]:443", None, (b"[2001:db8::1]", 443)),
        (b"[2001:db8::1]", 80, (b"[2001:db8::1]", 80)),
        (b"192.0.2.1:65535", None, (b"192.0.2.1", 65535)),
        (b"a_b.test:1", None, (b"a_b.test", 1)),
        (b"a%00b.test:1", None, (b"a%00b.test", 1)),
    ],
)
def test_host_comes_out_as_spelled(raw: bytes, default: int | None, expected: tuple[bytes, int]) -> None:
    assert split_authority(raw, default) == expected


@pytest.mark.attack(14)
@pytest.mark.parametrize(
    "port",
    [
        b"",
        b"0",
        b"00",
        b"0443",
        b"+443",
        b"-1",
        b" 443",
        b"443 ",
        b"65536",
        b"99999",
        b"123456",
        b"0x1",
        b"4_43",
        b"1e2",
        b"\xef\xbc\x94\xef\xbc\x94\xef\xbc\x93",  # full-width digits
        b"\xd9\xa4",  # an Arabic-Indic digit
        b"443\t",
        b"443\x00",
    ],
)
def test_a_port_is_plain_decimal(port: bytes) -> None:
    """Attack 14: no spelling of a port but the canonical one."""
    with pytest.raises(ProtocolError) as caught:
        split_authority(b"example.com:" + port, 80)
    assert (caught.value.reason, caught.value.status) == ("malformed", 400)


@pytest.mark.attack(2)
@pytest.mark.attack(3)
@pytest.mark.parametrize("byte", [*range(0x21), *range(0x7F, 0x100)])
def test_no_byte_but_visible_ascii(byte: int) -> None:
    """Attacks 2 and 3: NUL, control bytes, space, DEL and everything past ASCII."""
    with pytest.raises(ProtocolError):
        split_authority(b"evil.test" + bytes([byte]) + b".allowed.test:443", None)


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    "raw", [b"allowed.test@denied.test:443", b"allowed.test:80@denied.test:443", b"@a.test:1", b"a@:1"]
)
def test_userinfo_is_refused(raw: bytes) -> None:
    """Attack 10."""
    with pytest.raises(ProtocolError):
        split_authority(raw, 80)


@pytest.mark.attack(13)
@pytest.mark.parametrize("raw", [b"2001:db8::1:443", b"::1", b"2001:db8::1", b"a.test:1:2", b"a.test::1"])
def test_ipv6_needs_brackets(raw: bytes) -> None:
    """Attack 13."""
    with pytest.raises(ProtocolError):
        split_authority(raw, 80)


@pytest.mark.attack(11)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b":443",
        b"[::1",
        b"[]:1",
        b"[]",
        b"[::1]x:1",
        b"[::1]1",
        b"[*]:1",
        b"[fe80::1%25eth0]:1",
        b"[a.test]:1",
        b"[[::1]]:1",
        b"::1]:1",
        b"a.test/:1",
        b"a.test?:1",
        b"a.test#:1",
        b"a\\b:1",
        b"a,b:1",
        b"a;b:1",
        b"a<b:1",
        b"a" * 1025 + b":1",
    ],
)
def test_what_parsers_read_differently_is_refused(raw: bytes) -> None:
    """Attack 11."""
    with pytest.raises(ProtocolError):
        split_authority(raw, 80)


def test_without_a_default_the_port_must_be_there() -> None:
    for raw in (b"example.com", b"[::1]"):
        with pytest.raises(ProtocolError):
            split_authority(raw, None)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"http://a.test/", (b"http", b"a.test", b"/")),
        (b"HTTP://a.test:8080/x?y=http://b.test/", (b"HTTP", b"a.test:8080", b"/x?y=http://b.test/")),
        (b"http://a.test", (b"http", b"a.test", b"")),
        (b"http://a.test?q", (b"http", b"a.test", b"?q")),
        (b"http://[::1]:80//b.test/@c.test", (b"http", b"[::1]:80", b"//b.test/@c.test")),
    ],
)
def test_an_absolute_url_falls_into_three_parts(raw: bytes, expected: tuple[bytes, bytes, bytes]) -> None:
    assert split_url(raw) == expected


@pytest.mark.attack(37)
@pytest.mark.parametrize(
    "scheme", [b"https", b"ftp", b"file", b"gopher", b"ws", b"HTTPS", b"unix", b"httpx", b"view-source"]
)
def test_other_schemes_are_unsupported(scheme: bytes) -> None:
    """Attack 37."""
    with pytest.raises(ProtocolError) as caught:
        split_url(scheme + b"://allowed.test/")
    assert (caught.value.reason, caught.value.status) == ("unsupported", 400)


@pytest.mark.attack(11)
@pytest.mark.parametrize(
    "raw",
    [
        b"http:///x",
        b"http://",
        b"http:denied.test",
        b"http:/denied.test",
        b"http:\\\\denied.test",
        b"http://a.test\\@b.test/",
        b"http://a.test#@b.test/",
        b"http://a.test/#f",
        b"ht\ttp://a.test/",
        b"http ://a.test/",
        b"http://a.test/ x",
        b"/",
        b"://a.test/",
        b"//a.test/",
        b"a.test",
        b"",
        b"*",
        b"http",
        b"1http://a.test/",
        b"http://?q",
        b"http://a.test/\xc3\xa9",
        b"a.test:443",
    ],
)
def test_ambiguous_urls_are_refused(raw: bytes) -> None:
    """Attack 11."""
    with pytest.raises(ProtocolError):
        split_authority(split_url(raw)[1], 80)


@pytest.mark.attack(7)
@pytest.mark.attack(8)
def test_folding_joins_spellings_of_one_host_only() -> None:
    """Attacks 7 and 8: case and one trailing dot do not make another host; anything else does."""
    assert fold_host(b"ExAmple.COM.") == fold_host(b"example.com")
    assert fold_host(b"[2001:DB8:0::1]") == fold_host(b"2001:db8::1")
    assert fold_host(b"a.test..") != fold_host(b"a.test")
    assert fold_host(b"[::zz]") == b"[::zz]"
    assert fold_host(b"[::1]") != fold_host(b"[::2]")


@given(st.binary(max_size=40) | st.text(alphabet="aA0:.[]@%/?#\\ -", max_size=20).map(str.encode))
def test_whatever_is_accepted_can_be_put_together_again(raw: bytes) -> None:
    try:
        host, port = split_authority(raw, None)
    except ProtocolError:
        return
    assert b"%s:%d" % (host, port) == raw
    assert 0 < port < 65536


@given(st.text(alphabet="htp:/aA0.[]@%?#\\ \t", max_size=24).map(lambda text: b"http:" + text.encode()))
def test_an_accepted_url_loses_no_byte(raw: bytes) -> None:
    try:
        scheme, authority, path = split_url(raw)
    except ProtocolError:
        return
    assert scheme + b"://" + authority + path == raw
    assert authority
    assert not authority.translate(None, bytes(set(range(256)) - set(b"/?#\\ \t")))
