"""SOCKS5: one command, one way to authenticate, and the name as it came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.parsers.socks5 import CODES, Socks5Reader, code_for, reply

from netsandbox.policy import reasons

TOKEN = b"0123456789abcdef0123456789abcdef"
NAME = b"\x05\x01\x00\x03\x06a.test\x01\xbb"


def login(password: bytes, user: bytes = b"u") -> bytes:
    return b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password


def talk(data: bytes, token: bytes | None = None, step: int | None = None) -> tuple[Socks5Reader, bytes]:
    reader = Socks5Reader(token)
    size = step or len(data)
    replies = b"".join(part for at in range(0, len(data), size) for part in reader.feed(data[at : at + size]))
    return reader, replies


def test_a_name_without_a_token() -> None:
    reader, replies = talk(b"\x05\x01\x00" + NAME)
    assert (reader.request, replies, reader.leftover, reader.failed) == ((b"a.test", 443), b"\x05\x00", b"", False)


def test_a_name_with_a_token() -> None:
    reader, replies = talk(b"\x05\x02\x00\x02" + login(TOKEN) + NAME, TOKEN)
    assert (reader.request, replies) == ((b"a.test", 443), b"\x05\x02\x01\x00")


@pytest.mark.attack(45)
@pytest.mark.parametrize("greeting", [b"\x05\x01\x00", b"\x05\x03\x00\x01\x80", b"\x05\x01\xff"])
def test_no_auth_is_not_accepted_where_a_token_is_required(greeting: bytes) -> None:
    """Attack 45."""
    reader, replies = talk(greeting + NAME, TOKEN)
    assert replies == b"\x05\xff"
    assert reader.failed
    assert reader.request is None


@pytest.mark.attack(45)
def test_no_methods_at_all_is_closed() -> None:
    """Attack 45: NMETHODS=0."""
    for token in (None, TOKEN):
        reader, replies = talk(b"\x05\x00" + NAME, token)
        assert (reader.failed, replies, reader.request) == (True, b"", None)


def test_password_only_is_refused_where_no_token_exists() -> None:
    reader, replies = talk(b"\x05\x01\x02", None)
    assert (reader.failed, replies) == (True, b"\x05\xff")


@pytest.mark.attack(53)
@pytest.mark.parametrize(
    "password", [b"", TOKEN[:-1], TOKEN + b"x", TOKEN.upper(), b"\xff" * 255, TOKEN + b"\0", b"\0" + TOKEN]
)
def test_only_the_whole_token_opens(password: bytes) -> None:
    """Attack 53: truncated, prefixed, over-long and non-ASCII tokens."""
    reader, replies = talk(b"\x05\x01\x02" + login(password) + NAME, TOKEN)
    assert (reader.failed, reader.reason, replies, reader.request) == (True, "not-allowed", b"\x05\x02\x01\x01", None)


@pytest.mark.attack(53)
def test_an_empty_token_opens_nothing() -> None:
    """Attack 53, INV-1: a launcher that lost its token must not be an open proxy."""
    assert talk(b"\x05\x01\x02" + login(b"") + NAME, b"")[0].failed
    assert talk(b"\x05\x01\x00" + NAME, b"")[0].failed


@pytest.mark.attack(53)
def test_the_username_is_no_credential() -> None:
    """Attack 53: the token in the user's place does not open."""
    assert talk(b"\x05\x01\x02" + login(b"x", TOKEN) + NAME, TOKEN)[0].failed


def test_a_wrong_login_version_fails() -> None:
    reader, replies = talk(b"\x05\x01\x02\x05\x01\x00", TOKEN)
    assert (reader.failed, reader.reason, replies) == (True, "malformed", b"\x05\x02\x01\x01")


@pytest.mark.attack(47)
def test_addresses_are_spelled_like_every_other_doors() -> None:
    """Attack 47: they go to the gate as literals, for it to deny."""
    assert talk(b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50")[0].request == (b"192.0.2.1", 80)
    v6 = b"\x20\x01\x0d\xb8" + b"\0" * 11 + b"\x01"
    assert talk(b"\x05\x01\x00\x05\x01\x00\x04" + v6 + b"\x00\x50")[0].request == (b"[2001:db8::1]", 80)


@pytest.mark.attack(48)
@pytest.mark.parametrize("command", [0, 2, 3, 4, 255])
def test_connect_is_the_only_command(command: int) -> None:
    """Attack 48: BIND and UDP ASSOCIATE."""
    reader, replies = talk(b"\x05\x01\x00\x05" + bytes([command]) + NAME[2:])
    assert (reader.failed, reader.reason, replies) == (True, "unsupported", b"\x05\x00" + reply(7))
    assert reader.request is None


@pytest.mark.attack(49)
@pytest.mark.parametrize(
    "data", [b"\x04\x01\x00\x50\x00\x00\x00\x01u\x00a.test\x00", b"\x04", b"\x00", b"G", b"\x16\x03"]
)
def test_other_protocols_are_closed(data: bytes) -> None:
    """Attacks 49 and 51: SOCKS4, SOCKS4a and whatever else gets no answer."""
    reader, replies = talk(data)
    assert (reader.failed, replies, reader.request) == (True, b"", None)


@pytest.mark.attack(50)
def test_a_second_greeting_is_not_a_request() -> None:
    """Attack 50."""
    reader, replies = talk(b"\x05\x01\x00" * 3)
    assert (reader.failed, replies) == (True, b"\x05\x00" + reply(8))


@pytest.mark.attack(51)
def test_switching_protocols_midway_fails() -> None:
    """Attack 51: after the greeting nothing but SOCKS5 is read."""
    for data in (b"CONNECT a.test:443 HTTP/1.1\r\n", b"\x04\x01\x00\x50", b"\x16\x03\x01\x00"):
        reader, replies = talk(b"\x05\x01\x00" + data)
        assert (reader.failed, replies) == (True, b"\x05\x00" + reply(1))


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [(b"\x05\x01\x00\x02aaaa", 8), (b"\x05\x01\x01\x03", 1), (b"\x05\x01\x00\x03\x00\x00\x50", 1)],
)
def test_ill_formed_requests(request_bytes: bytes, code: int) -> None:
    reader, replies = talk(b"\x05\x01\x00" + request_bytes)
    assert (reader.failed, replies) == (True, b"\x05\x00" + reply(code))


@pytest.mark.attack(2)
def test_hostile_names_reach_the_gate_as_they_came() -> None:
    """Attack 2: the gate refuses them, on the very bytes that were sent."""
    host = b"evil.test\0.allowed.test"
    assert talk(b"\x05\x01\x00\x05\x01\x00\x03" + bytes([len(host)]) + host + b"\x01\xbb")[0].request == (host, 443)


@pytest.mark.attack(31)
@pytest.mark.attack(50)
def test_early_payload_is_kept_back() -> None:
    """Attacks 31 and 50: everything in one packet, payload included."""
    reader, replies = talk(b"\x05\x01\x00" + NAME + b"\x16\x03")
    assert (reader.leftover, replies) == (b"\x16\x03", b"\x05\x00")
    assert reader.feed(b"\x01") == []
    assert reader.leftover == b"\x16\x03\x01"


def test_after_failure_nothing_is_read() -> None:
    reader, _ = talk(b"\x04")
    assert reader.feed(b"\x05\x01\x00" + NAME) == []
    assert reader.request is None


def test_reasons_become_codes_of_the_protocol() -> None:
    assert set(CODES) <= reasons.ALL
    assert code_for("not-allowed") == code_for("deny-rule") == code_for("what-is-this") == 2
    assert (code_for("lookup-failed"), code_for("unreachable"), code_for("malformed")) == (4, 5, 1)
    assert all(code_for(reason) != 0 for reason in reasons.ALL)
    assert reply(0) == b"\x05\x00\x00\x01" + b"\0" * 6


PIECES = st.sampled_from(
    [
        b"\x05",
        b"\x01",
        b"\x00",
        b"\x02",
        b"\x03",
        b"\x04",
        b"\x05\x01\x00",
        b"\x05\x01\x02",
        NAME,
        login(TOKEN),
        login(b"x"),
        b"pay",
    ]
)


@pytest.mark.attack(50)
@given(st.lists(PIECES, max_size=7).map(b"".join), st.integers(1, 5), st.sampled_from([None, TOKEN]))
def test_a_handshake_in_pieces_is_read_like_a_whole_one(data: bytes, step: int, token: bytes | None) -> None:
    """Attack 50: one byte per packet, or all in one."""
    seen = []
    for size in (len(data) or 1, step, 1):
        reader, replies = talk(data, token, size)
        seen.append((reader.request, reader.failed, reader.reason, reader.leftover, replies))
    assert seen[0] == seen[1] == seen[2]
