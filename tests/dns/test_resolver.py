"""What a client hears and what the log says, question by question."""

from __future__ import annotations

from typing import Any

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns import wire
from netsandbox_dns.resolver import MAX_REPLIES, TokenBucket
from netsandbox_dns.synthetic_pool import SyntheticPool

from tests.dns.conftest import Session

OTHER_TYPES = ["TXT", "NULL", "CNAME", "MX", "SRV", "ANY", "NS", "SOA", "AXFR", "NAPTR"]


def raw(name: str, qtype: str = "A", ident: int = 7) -> bytes:
    query = dnslib.DNSRecord.question(name, qtype)
    query.header.id = ident
    return bytes(query.pack())


def test_an_allowed_name_gets_a_synthetic_address(session: Any) -> None:
    reply = session.ask("allowed.test")
    assert str(reply.a.rdata) == "198.18.0.1"
    assert reply.a.ttl == 60
    assert session.pool.name_of("198.18.0.1") == "allowed.test"
    assert session.records == [
        {"host": "allowed.test", "qtype": 1, "allowed": True, "reason": "rule", "rule": "allowed.test", "count": 1}
    ]


@pytest.mark.parametrize("qtype", ["AAAA", "HTTPS", "TYPE64"])
def test_other_address_types_of_an_allowed_name_have_no_data(session: Any, qtype: str) -> None:
    number = {"AAAA": 28, "HTTPS": 65, "TYPE64": 64}[qtype]
    data = raw("allowed.test")
    reply = dnslib.DNSRecord.parse(session.resolver.answer(data[:-4] + bytes((0, number, 0, 1)), "udp"))
    assert (reply.header.rcode, reply.rr) == (0, [])
    assert session.records[0]["allowed"]


@pytest.mark.attack(66)
@pytest.mark.parametrize("qtype", ["A", "AAAA", *OTHER_TYPES])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_data_in_a_denied_name_goes_nowhere(make_session: Any, qtype: str, transport: str) -> None:
    sent: list[object] = []
    session = make_session(forward=lambda query, done: sent.append(query), forward_types=frozenset(OTHER_TYPES))
    name = "6578666966696c.evil.test"
    assert session.ask(name, qtype, transport).header.rcode == wire.NXDOMAIN
    assert sent == []
    assert [(r["host"], r["allowed"]) for r in session.records] == [(name, False)]


@pytest.mark.attack(66)
@pytest.mark.parametrize("qtype", OTHER_TYPES)
def test_other_types_of_an_allowed_name_are_refused(session: Any, qtype: str) -> None:
    assert session.ask("allowed.test", qtype).header.rcode == wire.REFUSED
    assert [(r["allowed"], r["reason"]) for r in session.records] == [(False, "query-type")]


def test_a_type_that_is_allowed_is_forwarded_after_it_was_recorded(make_session: Any) -> None:
    said: list[tuple[bytes, Any, Any]] = []
    held: list[Any] = []
    session = make_session(
        forward=lambda query, done: held.append((query, done, len(session.records))), forward_types=frozenset({"TXT"})
    )
    data = raw("allowed.test", "TXT")
    assert session.resolver.answer(data, "udp", "me", "you", lambda *call: said.append(call)) is None
    query, done, recorded = held[0]
    assert recorded == 1
    done(b"x" * 600)
    assert said[0][1:] == ("me", "you")
    assert dnslib.DNSRecord.parse(said[0][0]).header.tc == 1
    done(None)
    assert dnslib.DNSRecord.parse(said[1][0]).header.rcode == wire.SERVFAIL
    assert query.qtype == 16


@pytest.mark.parametrize(("name", "qtype"), [("asked.test", "TXT"), ("allowed.test", "MX"), ("allowed.test", "NULL")])
def test_other_types_and_names_not_yet_approved_are_not_forwarded(make_session: Any, name: str, qtype: str) -> None:
    sent: list[object] = []
    session = make_session(
        forward=lambda query, done: sent.append(query), forward_types=frozenset({"TXT", "TYPE65280"})
    )
    assert session.ask(name, qtype).header.rcode == wire.REFUSED
    assert sent == []
    assert [(r["allowed"], r["reason"]) for r in session.records] == [(False, "query-type")]


def test_a_type_without_a_name_is_forwarded_by_its_number(make_session: Any) -> None:
    sent: list[object] = []
    session = make_session(forward=lambda query, done: sent.append(query), forward_types=frozenset({"TYPE65280"}))
    data = raw("allowed.test")[:-4] + b"\xff\0\0\1"
    assert session.resolver.answer(data, "udp", "me", "you", lambda *_: None) is None
    assert len(sent) == 1


def test_without_a_way_back_or_with_a_broken_forwarder_it_is_servfail(make_session: Any) -> None:
    def broken(*_: object) -> None:
        raise OSError("no descriptors")

    session = make_session(forward=broken, forward_types=frozenset({"TXT"}))
    assert session.ask("allowed.test", "TXT").header.rcode == wire.SERVFAIL
    reply = session.resolver.answer(raw("allowed.test", "TXT"), "udp", None, None, lambda *_: None)
    assert dnslib.DNSRecord.parse(reply).header.rcode == wire.SERVFAIL


@pytest.mark.attack(77)
@pytest.mark.parametrize("name", ["localhost", "x.localhost", "LOCALHOST.", "ip6-localhost", "builder.lan"])
def test_names_of_loopback_stay_in_the_session(session: Any, name: str) -> None:
    assert str(session.ask(name).a.rdata) == "127.0.0.1"
    assert str(session.ask(name, "AAAA").a.rdata) == "::1"
    assert session.ask(name, "TXT").rr == []
    assert {r["reason"] for r in session.records} == {"loopback"}


@pytest.mark.attack(77)
@pytest.mark.parametrize("name", ["host.docker.internal", "host.containers.internal", "localhost.evil.test"])
def test_names_of_the_host_are_ordinary_names(session: Any, name: str) -> None:
    assert session.ask(name).header.rcode == wire.NXDOMAIN


@pytest.mark.attack(78)
@pytest.mark.parametrize("label", [b"allowed.test", b"allowed\0", b"allowed\r\n", b"\xc3\xa4llowed"])
def test_an_unclean_name_never_reaches_the_judge(session: Any, label: bytes) -> None:
    data = b"\0\7\1\0\0\1\0\0\0\0\0\0" + bytes((len(label),)) + label + b"\0\0\1\0\1"
    assert dnslib.DNSRecord.parse(session.resolver.answer(data, "udp")).header.rcode == wire.NXDOMAIN
    assert session.judged == []
    assert session.records[0]["reason"] == "bad-name"
    assert session.records[0]["host"].isprintable()


@pytest.mark.attack(67)
def test_data_under_an_allowed_wildcard_is_stopped_and_recorded(session: Any) -> None:
    for i in range(1000):
        label = f"{i:04d}" + "abcdefghijklmnopqrstuvwxyz234567" * 2
        assert session.ask(f"{label[:63]}.wild.test").header.rcode == wire.NXDOMAIN
    assert {(r["allowed"], r["reason"]) for r in session.records} == {(False, "tunnel-label")}
    assert session.counted() == 1000
    assert len(session.pool) == 0


@pytest.mark.attack(85)
def test_too_many_names_under_a_wildcard_are_stopped_and_recorded(session: Any) -> None:
    codes = [session.ask(f"n{i}.wild.test").header.rcode for i in range(1000)]
    assert codes.count(0) == 100
    assert [r["reason"] for r in session.records].count("tunnel-rate") == 900


@pytest.mark.attack(81)
def test_one_session_learns_nothing_from_another(make_session: Any) -> None:
    a, b = make_session(), make_session()
    b.resolver._decide = lambda name: a.decide(b"denied.test")
    assert a.ask("allowed.test").header.rcode == 0
    assert b.ask("allowed.test").header.rcode == wire.NXDOMAIN


def test_reverse_lookups_know_only_what_the_session_was_given(session: Any) -> None:
    session.ask("allowed.test")
    assert str(session.ask("1.0.18.198.in-addr.arpa", "PTR").a.rdata) == "allowed.test."
    assert str(session.ask("1.0.0.127.in-addr.arpa", "PTR").a.rdata) == "localhost."
    for name in ("2.0.18.198.in-addr.arpa", "1.113.0.203.in-addr.arpa", "01.0.18.198.in-addr.arpa", "1.in-addr.arpa"):
        assert session.ask(name, "PTR").header.rcode == wire.NXDOMAIN
    assert session.judged == [b"allowed.test"]
    assert [r["allowed"] for r in session.records] == [True, True, True, False, False, False, False]


def test_a_failing_judge_is_servfail_recorded_and_not_remembered(session: Any) -> None:
    """INV-1"""
    for _ in range(2):
        assert session.ask("broken.test").header.rcode == wire.SERVFAIL
    assert session.judged == [b"broken.test"] * 2
    assert (session.records[0]["allowed"], session.records[0]["reason"]) == (False, "internal")


@pytest.mark.attack(176)
def test_an_unwritable_log_answers_nobody_not_even_from_the_cache(session: Any) -> None:
    """INV-1, INV-5"""
    session.ask("allowed.test")
    session.ask("allowed.test")
    session.writable = False
    assert session.ask("other.test").header.rcode == wire.SERVFAIL
    assert session.ask("allowed.test").header.rcode == wire.SERVFAIL
    assert session.resolver.answer(b"\0\1\0\0" + b"\0" * 8, "udp") is None
    session.writable = True
    assert session.ask("allowed.test").header.rcode == 0


def test_repeats_are_folded_and_all_counted(session: Any) -> None:
    for i in range(50):
        assert session.resolver.answer(raw("allowed.test", ident=i), "udp")[:2] == i.to_bytes(2, "big")
    session.ask("ALLOWED.test")
    assert len(session.records) == 1
    session.resolver.flush()
    assert [r["count"] for r in session.records] == [1, 50]
    session.resolver.flush()
    session.ask("allowed.test")
    assert [r["count"] for r in session.records] == [1, 50, 1]


@given(
    st.lists(st.tuples(st.sampled_from(["allowed.test", "other.test", "no.test", "aLLowed.test", ""]), st.booleans()))
)
def test_every_question_is_in_exactly_one_record(steps: list[tuple[str, bool]]) -> None:
    session = _fresh()
    for name, flush in steps:
        if name:
            session.ask(name)
        else:
            session.resolver.answer(b"\0" * 13, "udp")
        if flush:
            session.resolver.flush()
    session.resolver.flush()
    assert session.counted() == len(steps)


@given(st.lists(st.integers(0, 9), max_size=60))
def test_a_cached_reply_never_outlives_its_synthetic_address(numbers: list[int]) -> None:
    session = _fresh(pool=SyntheticPool("198.18.0.0/28", size=4))
    for number in numbers:
        reply = session.ask(f"n{number}.wild.test")
        assert session.pool.name_of(str(reply.a.rdata)) == f"n{number}.wild.test"


@pytest.mark.attack(197)
def test_the_byte_cache_is_bounded_in_entries_and_in_bytes(session: Any) -> None:
    padded = raw("allowed.test")[:11] + b"\1" + raw("allowed.test")[12:]
    for i in range(MAX_REPLIES + 100):
        cookie = b"\0\x0a\0\x08" + i.to_bytes(8, "big")
        assert session.resolver.answer(padded + b"\0\0\x29\x04\xd0\0\0\0\0\0\x0c" + cookie, "udp") is not None
    assert len(session.resolver.replies) <= MAX_REPLIES
    session.resolver.replies.clear()
    big = b"\0\x0c\xea\x60" + b"\0" * 60000
    assert session.resolver.answer(padded + b"\0\0\x29\x04\xd0\0\0\0\0" + len(big).to_bytes(2, "big") + big, "tcp")
    assert session.resolver.replies == {}
    session.resolver.flush()
    assert session.counted() == MAX_REPLIES + 101


@pytest.mark.attack(199)
def test_a_flood_of_new_names_is_refused_beyond_the_bucket(make_session: Any) -> None:
    session = make_session()
    session.resolver._limit = TokenBucket(rate=10, burst=20)
    codes = [session.ask(f"n{i}.evil.test").header.rcode for i in range(100)]
    assert codes == [wire.NXDOMAIN] * 20 + [wire.REFUSED] * 80
    session.resolver.flush()
    limited = [r for r in session.records if r["reason"] == "limit"]
    assert [r["count"] for r in limited] == [1, 79]
    session.time += 1
    assert session.ask("allowed.test").header.rcode == 0


@pytest.mark.attack(78)
def test_malformed_messages_are_one_kind_of_record(session: Any) -> None:
    for i in range(1000):
        session.resolver.answer(i.to_bytes(2, "big") * 7, "udp")
    session.resolver.flush()
    assert len(session.records) <= 6
    assert session.counted() == 1000


def test_twenty_thousand_cold_names_are_each_decided(session: Any) -> None:
    queries = [raw(f"n{i}.evil.test") for i in range(20_000)]
    answers = [session.resolver.answer(query, "udp") for query in queries]
    assert {answer[3] & 15 for answer in answers} == {3}  # NXDOMAIN, none of them lost or limited


def test_a_burst_then_the_rate() -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(1.0) for _ in range(3)] == [True, True, False]


@given(st.lists(st.floats(-5, 5), max_size=200))
def test_never_more_than_burst_and_rate_allow(steps: list[float]) -> None:
    bucket = TokenBucket(rate=3, burst=4)
    now, forward, taken = 0.0, 0.0, 0
    for step in steps:
        now += step
        forward += max(step, 0.0)
        taken += bucket.take(now)
        assert taken <= 4 + 3 * forward + 1e-6


def _fresh(**options: Any) -> Any:
    return _SESSION(**options)


_SESSION: Any = None


@pytest.fixture(autouse=True)
def _session_class(make_session: Any) -> None:
    global _SESSION  # hypothesis wants a fresh session per example, not per test
    _SESSION = make_session


def test_after_a_failed_release_nothing_is_answered_from_the_cache() -> None:
    class FailingLog:
        def hold(self) -> None:
            pass

        def release(self) -> bool:
            return False

    session = Session(log=FailingLog())
    session.resolver.hold()
    assert session.resolver.answer(raw("allowed.test"), "udp") is not None
    assert session.resolver.replies
    session.writable = False
    assert session.resolver.release() is False
    assert not session.resolver.replies
    reply = session.resolver.answer(raw("allowed.test"), "udp")
    assert reply is not None
    assert reply[3] & 15 == 2  # SERVFAIL


def test_a_query_is_forwarded_only_after_its_record_was_written() -> None:
    calls: list[str] = []

    class Log:
        def hold(self) -> None:
            pass

        def release(self) -> bool:
            calls.append("release")
            return len(calls) == 1

    def forward(_query: object, _finish: object) -> None:
        calls.append("forward")

    session = Session(log=Log(), forward=forward, forward_types=frozenset({"TXT"}))
    for _ in range(2):
        session.resolver.hold()
        session.resolver.answer(raw("allowed.test", "TXT"), "udp", respond=lambda *_: None)
    assert calls == ["release", "forward", "release"]


def test_each_denied_query_is_passed_on_with_its_source_repeats_too(make_session: Any) -> None:
    told: list[tuple[str, object]] = []
    session = make_session(on_denied=lambda kind, source: told.append((kind[0], source)))
    for name in ("denied.test", "denied.test", "allowed.test", "allowed.test"):
        session.resolver.answer(raw(name), "udp", ("127.0.0.1", 9))
    assert told == [("denied.test", ("127.0.0.1", 9))] * 2
    assert [record["host"] for record in session.records] == ["denied.test", "allowed.test"]  # the log folds them
