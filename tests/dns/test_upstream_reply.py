"""Replies are read without trust: no bytes raise or loop, and only what hangs on the question is seen."""

from __future__ import annotations

from itertools import pairwise

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.upstream_reply import MAX_CHAIN, follow_aliases, parse_reply, read_name

NAME = (b"a", b"test")


def built(zone: str, qtype: str = "A") -> bytes:
    reply = dnslib.DNSRecord.question("a.test", qtype).reply()
    reply.add_answer(*dnslib.RR.fromZone(zone))
    return bytes(reply.pack())


HEAD = built("a.test. 60 A 192.0.2.1")[:30]


@given(st.binary(max_size=400) | st.binary(max_size=200).map(lambda tail: HEAD + tail))
def test_no_bytes_make_the_parser_raise(data: bytes) -> None:
    reply = parse_reply(data)
    if reply is not None:
        follow_aliases(reply, NAME, 1)


@given(st.integers(0, 200), st.integers(0, 255))
def test_one_changed_byte_never_raises(at: int, value: int) -> None:
    data = bytearray(built("a.test. 60 CNAME b.test.\nb.test. 60 A 192.0.2.1"))
    data[at % len(data)] = value
    reply = parse_reply(bytes(data))
    if reply is not None:
        follow_aliases(reply, NAME, 1)


@pytest.mark.attack(78)
@pytest.mark.parametrize("data", [b"\xc0\x00", b"\x01a\xc0\x00", b"\xc0\x02\xc0\x00", b"\xc0", b"\x05ab", b"\x80a"])
def test_pointers_that_loop_or_go_forwards_are_no_names(data: bytes) -> None:
    assert read_name(data, 0) is None


def test_a_name_over_255_bytes_is_none() -> None:
    assert read_name((b"\x3f" + b"a" * 63) * 4 + b"\0", 0) is None


@pytest.mark.attack(79)
def test_records_of_other_names_are_not_seen() -> None:
    reply = parse_reply(built("evil.test. 60 A 192.0.2.66\na.test. 60 A 192.0.2.1\nb.test. 60 CNAME a.test."))
    assert reply is not None
    path = follow_aliases(reply, NAME, 1)
    assert path is not None
    assert (path.addresses, path.chain) == ([b"\xc0\0\2\1"], [])


@pytest.mark.attack(76)
@pytest.mark.parametrize("depth", [1, MAX_CHAIN, MAX_CHAIN + 1, 20])
def test_chains_are_followed_to_the_cap_and_no_further(depth: int) -> None:
    names = ["a", *(f"c{i}" for i in range(1, depth + 1))]
    links = [f"{one}.test. {60 + i} CNAME {two}.test." for i, (one, two) in enumerate(pairwise(names))]
    reply = parse_reply(built("\n".join([*links, f"{names[-1]}.test. 90 A 192.0.2.1"])))
    assert reply is not None
    path = follow_aliases(reply, NAME, 1)
    if depth > MAX_CHAIN:
        assert path is None
        return
    assert path is not None
    assert path.chain == [f"{name}.test" for name in names[1:]]
    assert (path.addresses, path.ttl) == ([b"\xc0\0\2\1"], 60)


@pytest.mark.attack(76)
def test_a_loop_has_no_end() -> None:
    reply = parse_reply(built("a.test. 60 CNAME b.test.\nb.test. 60 CNAME a.test."))
    assert reply is not None
    assert follow_aliases(reply, NAME, 1) is None


def test_an_address_of_the_wrong_size_is_no_address() -> None:
    data = built("a.test. 60 A 192.0.2.1")
    reply = parse_reply(data[:-6] + b"\0\3\1\2\3")
    assert reply is not None
    path = follow_aliases(reply, NAME, 1)
    assert path is not None
    assert path.addresses == []
