"""Replies of forwarded types are built anew from what was understood, and carry nothing else."""

from __future__ import annotations

import struct

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.reply_rebuild import MAX_READS, MAX_TTL, BoundedBuffer, rebuilt
from netsandbox_dns.upstream_reply import Reply, parse_reply
from netsandbox_dns.wire import Query, parse_query

ZONE = 'a.test. 60 TXT "right"'


def query(name: str = "a.test", kind: str = "TXT", *, edns: bool = False) -> Query:
    question = dnslib.DNSRecord.question(name, kind)
    question.header.id = 4711
    if edns:
        question.add_ar(dnslib.EDNS0(udp_len=1400))
    found = parse_query(bytes(question.pack()))
    assert isinstance(found, Query)
    return found


def reply(zone: str, name: str = "a.test", kind: str = "TXT", **header: int) -> Reply:
    record = dnslib.DNSRecord(
        dnslib.DNSHeader(id=1, qr=1, **header), q=dnslib.DNSQuestion(name, getattr(dnslib.QTYPE, kind))
    )
    record.add_answer(*dnslib.RR.fromZone(zone))
    found = parse_reply(bytes(record.pack()))
    assert found is not None
    return found


def records(data: bytes | None) -> list[tuple[str, str, int]]:
    assert data is not None
    return [(str(each.rname), dnslib.QTYPE[each.rtype], each.ttl) for each in dnslib.DNSRecord.parse(data).rr]


def test_the_answer_has_the_number_and_the_spelling_of_the_question() -> None:
    built = dnslib.DNSRecord.parse(rebuilt(query("A.tEst"), reply(ZONE, "A.tEst")))
    assert (built.header.id, str(built.q.qname), built.header.qr) == (4711, "A.tEst.", 1)


@pytest.mark.attack(75)
def test_records_that_do_not_hang_on_the_question_are_left_out() -> None:
    zone = f'{ZONE}\nevil.test. 60 TXT "wrong"\na.test. 60 MX 10 mail.test.'
    assert records(rebuilt(query(), reply(zone))) == [("a.test.", "TXT", 60)]


def test_a_chain_of_aliases_is_kept_and_nothing_lives_longer_than_the_bound() -> None:
    zone = f'a.test. {MAX_TTL + 1} CNAME b.test.\nb.test. 60 TXT "right"\nc.test. 60 TXT "wrong"'
    assert records(rebuilt(query(), reply(zone))) == [("a.test.", "CNAME", MAX_TTL), ("b.test.", "TXT", 60)]


@pytest.mark.attack(75)
def test_an_alias_of_itself_is_no_answer() -> None:
    """INV-1."""
    assert rebuilt(query(), reply("a.test. 60 CNAME b.test.\nb.test. 60 CNAME a.test.")) is None


@pytest.mark.parametrize("edns", [False, True])
def test_who_speaks_edns_is_answered_so(edns: bool) -> None:
    built = dnslib.DNSRecord.parse(rebuilt(query(edns=edns), reply(ZONE)))
    assert [dnslib.QTYPE[each.rtype] for each in built.ar] == ["OPT"] * edns


@given(st.binary(max_size=200), st.integers(0, 40))
def test_whatever_the_records_hold_there_is_an_answer_of_ours_or_none(noise: bytes, at: int) -> None:
    """INV-1: bytes that our own reader took and dnslib may not."""
    good = reply(ZONE).data
    broken = parse_reply(good[: len(good) - at] + noise)
    if broken is not None:
        built = rebuilt(query(), broken)
        assert built is None or {name for name, _, _ in records(built)} <= {"a.test."}


def many(rdata: bytes, count: int, kind: int = dnslib.QTYPE.MX) -> Reply:
    """A reply whose records of a.test all have *rdata*."""
    record = struct.pack("!HHHIH", 0xC00C, kind, 1, 60, len(rdata)) + rdata
    data = struct.pack("!HHHHHH", 1, 0x8180, 1, count, 0, 0) + b"\1a\4test\0" + struct.pack("!HH", kind, 1)
    found = parse_reply(data + record * count)
    assert found is not None
    return found


@pytest.mark.attack(303)
@pytest.mark.parametrize(
    ("kind", "rdata", "most"),
    [
        ("MX", b"\0\1" + b"\1a" * 100 + b"\0", 70),  # names of many labels
        ("TXT", b"\0" * 200, 40),  # texts of no bytes
        ("MX", b"\0\1" + b"\1a" * 9000 + b"\0", 0),  # a name without a bound, to dnslib
    ],
)
def test_the_work_of_rebuilding_is_bounded(kind: str, rdata: bytes, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BoundedBuffer] = []

    class Watched(BoundedBuffer):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr("netsandbox_dns.reply_rebuild.BoundedBuffer", Watched)
    number = getattr(dnslib.QTYPE, kind)
    if most:
        assert len(records(rebuilt(query(kind=kind), many(rdata, most // 2, number)))) == most // 2
    assert rebuilt(query(kind=kind), many(rdata, most * 2 or 3, number)) is None
    assert made[-1].reads <= MAX_READS + 128


def test_other_sections_are_not_read() -> None:
    record = reply(ZONE)
    data = bytearray(record.data) + b"\xff" * 3000
    data[8:12] = b"\xff\xff\xff\xff"
    assert records(rebuilt(query(), Reply(bytes(data), 1, 0x8180, record.question, record.records))) != []


@given(st.binary(max_size=300), st.sampled_from(["MX", "TXT", "SRV", "SOA", "NAPTR", "RRSIG", "HTTPS", "CAA"]))
def test_whatever_a_record_holds_the_reads_are_bounded(rdata: bytes, kind: str) -> None:
    rebuilt(query(kind=kind), many(rdata, 4, getattr(dnslib.QTYPE, kind)))
