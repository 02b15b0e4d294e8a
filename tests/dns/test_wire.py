"""Queries are parsed strictly, as dnslib would where it is right, and nothing makes the parser raise."""

from __future__ import annotations

import random
import time

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns import wire

LABEL = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=1, max_size=63).map(str.encode)
NAME = st.lists(LABEL, min_size=1, max_size=6).filter(lambda labels: sum(map(len, labels)) + len(labels) < 255)
HEADER = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
QUESTION = b"\x07allowed\x04test\x00\x00\x01\x00\x01"
OPT = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"


def fault(data: bytes) -> wire.BadQuery:
    parsed = wire.parse_query(data)
    assert isinstance(parsed, wire.BadQuery)
    return parsed


def query(data: bytes = HEADER + QUESTION) -> wire.Query:
    parsed = wire.parse_query(data)
    assert isinstance(parsed, wire.Query)
    return parsed


@given(NAME, st.integers(1, 65534), st.integers(0, 65535), st.booleans(), st.none() | st.integers(0, 65535))
def test_whatever_dnslib_builds_is_read_the_same(
    labels: list[bytes], qtype: int, ident: int, recursion: bool, edns: int | None
) -> None:
    built = dnslib.DNSRecord(
        dnslib.DNSHeader(id=ident, rd=int(recursion)), q=dnslib.DNSQuestion(dnslib.DNSLabel(labels), qtype)
    )
    if edns is not None:
        built.add_ar(dnslib.EDNS0(udp_len=edns))
    parsed = query(bytes(built.pack()))
    assert parsed.labels == tuple(labels)
    assert parsed.name == b".".join(labels)
    assert parsed.clean
    assert (parsed.id, parsed.qtype, parsed.recursion_desired) == (ident, qtype, recursion)
    assert parsed.edns == (edns is not None)
    assert 512 <= parsed.udp_size <= wire.EDNS_SIZE


@given(st.binary(max_size=600) | st.binary(max_size=300).map(lambda tail: HEADER + tail))
def test_no_bytes_make_the_parser_raise(data: bytes) -> None:
    parsed = wire.parse_query(data)
    if isinstance(parsed, wire.BadQuery):
        wire.bad_query_answer(parsed)
        return
    for reply in (wire.nodata(parsed), wire.nxdomain(parsed, "x"), wire.address_answer(parsed, b"\1\2\3\4", 60)):
        assert reply[12 : 12 + len(parsed.question)] == parsed.question
        assert len(reply) <= 512


@given(st.integers(0, len(HEADER + QUESTION + OPT) - 1))
def test_a_query_cut_anywhere_is_never_a_query(cut: int) -> None:
    whole = HEADER[:11] + b"\1" + QUESTION + OPT
    assert isinstance(wire.parse_query(whole), wire.Query)
    assert isinstance(wire.parse_query(whole[:cut]), wire.BadQuery)


@pytest.mark.attack(78)
@pytest.mark.parametrize(
    ("data", "rcode"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(HEADER[:11], None, id="short header"),
        pytest.param(b"\x12\x34\x81\x00" + HEADER[4:] + QUESTION, None, id="response bit"),
        pytest.param(HEADER[:4] + b"\0\0" + HEADER[6:], wire.FORMERR, id="no question"),
        pytest.param(HEADER[:4] + b"\0\2" + HEADER[6:] + QUESTION * 2, wire.FORMERR, id="two questions"),
        pytest.param(HEADER[:4] + b"\xff\xff" + HEADER[6:] + QUESTION, wire.FORMERR, id="65535 questions"),
        pytest.param(HEADER[:6] + b"\0\1\0\0\0\0" + QUESTION, wire.FORMERR, id="answer in a query"),
        pytest.param(HEADER + b"\xc0\x0c\0\1\0\1", wire.FORMERR, id="pointer to itself"),
        pytest.param(HEADER + b"\x01a\xc0\x0c\0\1\0\1", wire.FORMERR, id="pointer after a label"),
        pytest.param(HEADER + b"\x41" + b"a" * 65 + b"\0\0\1\0\1", wire.FORMERR, id="reserved label type"),
        pytest.param(HEADER + (b"\x3f" + b"a" * 63) * 4 + b"\0\0\1\0\1", wire.FORMERR, id="name over 255"),
        pytest.param(HEADER + QUESTION + b"x", wire.FORMERR, id="garbage behind"),
        pytest.param(HEADER[:11] + b"\1" + QUESTION + OPT + b"x", wire.FORMERR, id="garbage behind EDNS"),
        pytest.param(HEADER[:11] + b"\2" + QUESTION + OPT * 2, wire.FORMERR, id="EDNS twice"),
        pytest.param(HEADER[:11] + b"\1" + QUESTION + b"\0\0\1" + OPT[3:], wire.FORMERR, id="not an OPT"),
        pytest.param(HEADER[:11] + b"\1" + QUESTION + OPT[:9] + b"\0\3\0\1\0", wire.FORMERR, id="cut option"),
        pytest.param(HEADER[:11] + b"\1" + QUESTION + OPT[:6] + b"\1" + OPT[7:], wire.BADVERS, id="EDNS version 1"),
        pytest.param(b"\x12\x34\x28\x00" + HEADER[4:] + QUESTION, wire.NOTIMP, id="UPDATE"),
        pytest.param(b"\x12\x34\x20\x00" + HEADER[4:] + QUESTION, wire.NOTIMP, id="NOTIFY"),
        pytest.param(HEADER + QUESTION[:-1] + b"\3", wire.REFUSED, id="class CH"),
        pytest.param(HEADER + QUESTION[:-1] + b"\xff", wire.REFUSED, id="class ANY"),
    ],
)
def test_malformed_queries_get_an_error_or_silence(data: bytes, rcode: int | None) -> None:
    said = fault(data)
    assert said.rcode == rcode
    reply = wire.bad_query_answer(said)
    if rcode is None:
        assert reply is None
        return
    assert reply is not None
    parsed = dnslib.DNSRecord.parse(reply)
    assert parsed.header.id == 0x1234
    assert parsed.header.qr == 1
    assert parsed.header.rcode == rcode & 15


@pytest.mark.attack(78)
@pytest.mark.parametrize("label", [b"a.b", b"a\0b", b"a\r\nb", b"a b", b"\xc3\xbc", b'"', b"\\", b"*", b"a/b", b"%41"])
def test_a_label_with_an_odd_byte_is_no_clean_name(label: bytes) -> None:
    parsed = query(HEADER + bytes((len(label),)) + label + QUESTION)
    assert not parsed.clean
    assert label not in parsed.name.split(b".") or label in (b"*", b"a/b", b"%41")
    assert parsed.name.isascii()
    assert parsed.name.decode().isprintable()


@given(
    st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.lists(st.binary(min_size=1, max_size=20), max_size=5)
)
def test_two_names_never_share_a_spelling(one: list[bytes], two: list[bytes]) -> None:
    assert (wire.escaped(tuple(one)) == wire.escaped(tuple(two))) == (one == two)


def test_the_root_is_no_clean_name() -> None:
    assert not query(HEADER + b"\0\0\1\0\1").clean


@pytest.mark.attack(78)
@pytest.mark.parametrize("size", [0, 65535])
def test_edns_sizes_are_clamped(size: int) -> None:
    data = HEADER[:11] + b"\1" + QUESTION + OPT[:3] + size.to_bytes(2, "big") + OPT[5:]
    assert query(data).udp_size == (512 if size == 0 else wire.EDNS_SIZE)


def test_replies_read_back_by_dnslib() -> None:
    reply = dnslib.DNSRecord.parse(wire.address_answer(query(), b"\xc6\x12\0\1", 60))
    assert str(reply.a.rdata) == "198.18.0.1"
    assert reply.a.ttl == 60
    assert (reply.header.ra, reply.header.aa, reply.header.rd, reply.header.tc) == (1, 0, 1, 0)
    assert str(dnslib.DNSRecord.parse(wire.pointer_answer(query(), "allowed.test", 60)).a.rdata) == "allowed.test."
    assert dnslib.DNSRecord.parse(wire.truncated(query())).header.tc == 1
    assert dnslib.DNSRecord.parse(wire.servfail(query())).header.rcode == wire.SERVFAIL


def test_the_reason_travels_only_to_clients_that_speak_edns() -> None:
    plain = dnslib.DNSRecord.parse(wire.nxdomain(query(), "not-allowed"))
    assert plain.ar == []
    spoken = dnslib.DNSRecord.parse(wire.nxdomain(query(HEADER[:11] + b"\1" + QUESTION + OPT), "not-allowed"))
    assert spoken.header.rcode == wire.NXDOMAIN
    (option,) = spoken.ar[0].rdata
    assert (option.code, option.data) == (15, b"\0\x0fnetsandbox: not-allowed")


@pytest.mark.attack(78)
def test_a_hundred_thousand_broken_queries_in_bounded_time() -> None:
    chance = random.Random(78)
    seed = HEADER[:11] + b"\1" + QUESTION + OPT
    began = time.process_time()
    for _ in range(100_000):
        data = bytearray(seed)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        parsed = wire.parse_query(bytes(data[: chance.randrange(len(data) + 1)] if data[0] & 1 else data))
        if isinstance(parsed, wire.BadQuery):
            wire.bad_query_answer(parsed)
        else:
            wire.nodata(parsed)
    assert time.process_time() - began < 10


def test_only_the_bytes_of_host_names_make_a_clean_name():
    clean = {byte for byte in range(256) if query(HEADER + bytes((2, 97, byte, 0)) + b"\0\1\0\1").clean}
    assert clean == set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
