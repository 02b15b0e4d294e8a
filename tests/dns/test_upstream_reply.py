"""Replies are read without trust: no bytes raise or loop, and only what hangs on the question is seen."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.upstream_reply import (
    MAX_CHAIN,
    MAX_JUMPS,
    MAX_LABELS,
    follow_aliases,
    parse_reply,
    read_name,
)

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


class Counted(bytes):
    """Counts the bytes and labels that are read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


def hostile(kind: str, size: int = 20_000) -> bytes:
    """A reply as long as *size* whose every record begins with the most expensive name."""
    records, rest = 0, b""
    head = struct.pack("!HHHHHH", 1, 0x8180, 1, 256, 0, 0) + b"\1a\4test\0\0\1\0\1"
    if kind == "pointers":  # each leads to the one before
        at = len(head) + 12  # behind the owner and the fixed part of the first record
        chain = b"".join(struct.pack("!H", 0xC000 | (12 if not n else at + 2 * n - 2)) for n in range(6000))
        longest = struct.pack("!H", 0xC000 | (at + len(chain) - 2))
    else:  # 127 labels
        chain, at = b"\1a" * 126 + b"\0", len(head) + 12
        longest = struct.pack("!H", 0xC000 | at)
    rest = b"\xc0\x0c" + struct.pack("!HHIH", 16, 1, 60, len(chain)) + chain
    while len(head) + len(rest) < size and records < 255:
        rest += longest + struct.pack("!HHIH", 5, 1, 60, 2) + longest
        records += 1
    return head + rest


@pytest.mark.attack(303)
@pytest.mark.parametrize("kind", ["pointers", "labels"])
def test_the_work_of_a_reply_is_bounded(kind: str) -> None:
    """One that every record makes long again held up the loop for most of a second."""
    data = Counted(hostile(kind))
    assert parse_reply(data) is None
    assert data.reads < 4 * MAX_LABELS


@pytest.mark.attack(303)
@given(st.lists(st.integers(0, 0x3FFF) | st.binary(max_size=8), max_size=400), st.integers(0, 400))
def test_no_name_takes_more_steps_than_its_labels_and_pointers(parts: list[int | bytes], at: int) -> None:
    written = (struct.pack("!H", 0xC000 | p) if isinstance(p, int) else bytes((len(p),)) + p for p in parts)
    data = Counted(b"".join(written))
    read_name(data, at)
    assert data.reads <= 2 * (127 + MAX_JUMPS + 1)


def test_names_that_servers_compress_are_read() -> None:
    """The twin: a pointer to a pointer, and each label of a name below its own pointer."""
    data, at = b"\4test\0", 0
    for label in range(MAX_JUMPS):
        data, at = data + b"\1" + bytes((0x61 + label,)) + struct.pack("!H", 0xC000 | at), len(data)
    assert read_name(data, at) == ((*(bytes((0x61 + n,)) for n in reversed(range(MAX_JUMPS))), b"test"), len(data))


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
