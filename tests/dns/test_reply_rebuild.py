"""Replies of forwarded types are built anew from what was understood, and carry nothing else."""

from __future__ import annotations

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.reply_rebuild import MAX_TTL, rebuilt
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
