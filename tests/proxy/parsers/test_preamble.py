"""36 bytes before a connection: read whole or byte by byte, believed with the session's token only."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from netsandbox_interpose import _native
from netsandbox_proxy import door
from netsandbox_proxy.parsers import preamble
from netsandbox_proxy.parsers.preamble import PreambleReader

from netsandbox.policy import reasons

RAW = bytes(range(16))
TOKEN = RAW.hex().encode()
MALFORMED, REFUSED = reasons.MALFORMED, reasons.NOT_ALLOWED


def said(address: str, port: int = 443, token: bytes = RAW) -> bytes:
    where = ipaddress.ip_address(address)
    packed = where.packed.ljust(16, b"\0")
    return bytes((preamble.VERSION, where.version)) + port.to_bytes(2, "big") + packed + token


def read(data: bytes, token: bytes | None = TOKEN, step: int | None = None) -> PreambleReader:
    reader = PreambleReader(token)
    for at in range(0, len(data), step or max(1, len(data))):
        reader.feed(data[at : at + step] if step else data)
    return reader


def outcome(reader: PreambleReader) -> tuple[object, ...]:
    return reader.destination, reader.leftover, reader.failed, reader.reason, reader.detail


def test_the_layout_is_that_of_the_header() -> None:
    ffi, lib = _native.ffi, _native.lib
    fields = {name: about.offset for name, about in ffi.typeof("struct ns_preamble").fields}
    assert fields == {"version": 0, "family": 1, "port": 2, "address": preamble.ADDRESS, "token": preamble.TOKEN}
    assert ffi.sizeof("struct ns_preamble") == preamble.SIZE
    assert lib.NS_PREAMBLE == preamble.VERSION == door.PREAMBLE_VERSION
    assert preamble.SIZE - preamble.TOKEN == lib.NS_TOKEN_BYTES


@given(
    st.ip_addresses().filter(lambda each: each.version == 4 or each.ipv4_mapped is None),
    st.integers(0, 65535),
    st.binary(max_size=80),
    st.integers(1, 120),
)
def test_whatever_is_said_is_read_however_it_is_cut(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int, behind: bytes, step: int
) -> None:
    data = said(str(address), port) + behind
    reader = read(data)
    assert reader.destination is not None
    spelt, found = reader.destination
    assert (ipaddress.ip_address(spelt), found, reader.leftover) == (address, port, behind)
    assert outcome(read(data, step=step)) == outcome(read(data, step=1)) == outcome(reader)


@given(st.binary(max_size=100) | st.binary(min_size=20, max_size=20).map(lambda head: head + RAW), st.integers(1, 40))
@example(said("192.0.2.1")[:-1], 1)
def test_no_bytes_upset_it_and_cutting_changes_nothing(data: bytes, step: int) -> None:
    whole = read(data)
    assert outcome(read(data, step=step)) == outcome(whole)
    assert whole.failed == bool(whole.reason) == bool(whole.detail)
    assert not (whole.failed and (whole.destination or whole.leftover))
    if len(data) < preamble.SIZE:
        assert outcome(whole) == (None, b"", False, "", "")
    else:
        assert whole.failed != (whole.destination is not None)
    assert whole.reason in ("", MALFORMED, REFUSED)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\2" + said("192.0.2.1")[1:], MALFORMED),
        (b"\0" + said("192.0.2.1")[1:], MALFORMED),
        (b"\1\0" + said("192.0.2.1")[2:], MALFORMED),
        (b"\1\5" + said("192.0.2.1")[2:], MALFORMED),
        (b"\1\4" + said("2001:db8::1")[2:], MALFORMED),
        (said("192.0.2.1")[:19] + b"\1" + RAW, MALFORMED),
        (said("::ffff:192.0.2.1"), MALFORMED),
        (said("192.0.2.1", token=bytes(16)), REFUSED),
        (b"\2" + said("192.0.2.1", token=bytes(16))[1:], REFUSED),
    ],
)
def test_what_is_none_has_a_reason_and_the_token_comes_first(data: bytes, reason: str) -> None:
    reader = read(data + b"behind")
    assert (reader.failed, reader.reason, reader.destination, reader.leftover) == (True, reason, None, b"")
    reader.feed(said("192.0.2.1"))
    assert reader.destination is None


@pytest.mark.attack(184)
@given(st.integers(0, 127))
def test_a_token_with_one_bit_wrong_is_wrong(bit: int) -> None:
    wrong = (int.from_bytes(RAW, "big") ^ 1 << bit).to_bytes(16, "big")
    assert read(said("192.0.2.1", token=wrong)).reason == REFUSED


@pytest.mark.attack(53)
@pytest.mark.parametrize("token", [None, b"", RAW, TOKEN[:-1], TOKEN + b"0", TOKEN.upper()])
def test_a_door_without_the_whole_token_takes_none(token: bytes | None) -> None:
    """INV-1: also when the launcher lost it."""
    assert read(said("192.0.2.1"), token).reason == REFUSED
    assert read(said("192.0.2.1", token=bytes(16)), token).reason == REFUSED


@pytest.mark.attack(184)
def test_what_is_told_of_a_failure_never_holds_a_token() -> None:
    for data in (said("192.0.2.1", token=RAW[::-1]), b"\1\5" + said("192.0.2.1")[2:]):
        detail = read(data).detail
        assert RAW.hex() not in detail
        assert RAW[::-1].hex() not in detail
