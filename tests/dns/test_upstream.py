"""Lookups end in addresses or in one of five reasons; nothing is guessed, leaked or asked twice."""

from __future__ import annotations

import socket
from typing import Any

import dnslib
import pytest
from netsandbox_dns import upstream as module
from netsandbox_dns.resolv_conf import NameServers
from netsandbox_dns.upstream import LookupFailed, Resolved, Upstream
from netsandbox_dns.wire import Query, parse_query

V4, V6 = int(socket.AF_INET), int(socket.AF_INET6)


def test_the_hosts_file_comes_first_and_ipv4_before_ipv6(server: Any, ask_upstream: Any) -> None:
    ask = ask_upstream(hosts={"a.test": ["2001:db8::1", "192.0.2.1"], "zoned.test": ["fe80::1%lo0"]})
    assert ask("a.test").addresses == [(V4, "192.0.2.1"), (V6, "2001:db8::1")]
    assert ask("zoned.test").reason == "empty"
    assert server.asked == []


@pytest.mark.parametrize("good", ["A", "AAAA"])
@pytest.mark.parametrize("bad", ["servfail", "silence", "empty"])
def test_one_family_is_enough(
    server: Any, ask_upstream: Any, answer_from: Any, monkeypatch: pytest.MonkeyPatch, good: str, bad: str
) -> None:
    zone = "a.test. 60 A 192.0.2.1\na.test. 60 AAAA 2001:db8::1"

    def script(request: Any, transport: str) -> bytes | None:
        if dnslib.QTYPE[request.q.qtype] == good:
            return bytes(answer_from(request, zone))
        return None if bad == "silence" else answer_from(request, "", rcode=2 if bad == "servfail" else 0)

    server.script = script
    expected = (V4, "192.0.2.1") if good == "A" else (V6, "2001:db8::1")
    ask = ask_upstream()
    monkeypatch.setattr(module, "SECOND_FAMILY_SECONDS", 0.05)
    assert ask("a.test").addresses == [expected]


@pytest.mark.attack(75)
def test_no_addresses_is_empty(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    server.script = lambda request, transport: answer_from(request, "a.test. 60 CNAME b.test.")
    assert ask_upstream()("a.test").reason == "empty"


@pytest.mark.attack(76)
def test_the_aliases_are_told(server: Any, ask_upstream: Any, answer_from: Any) -> None:
    zone = "a.test. 9 CNAME Denied.test.\ndenied.test. 60 CNAME localhost.\nlocalhost. 60 A 127.0.0.1"
    server.script = lambda request, transport: answer_from(request, zone)
    found = ask_upstream()("a.test")
    assert (found.chain, found.addresses, found.ttl) == (["denied.test", "localhost"], [(V4, "127.0.0.1")], 9)


@pytest.mark.attack(76)
@pytest.mark.parametrize("depth", [2, 20])
def test_loops_and_endless_chains_fail(server: Any, ask_upstream: Any, answer_from: Any, depth: int) -> None:
    links = [f"c{i}.test. 60 CNAME c{(i + 1) % depth}.test." for i in range(depth)]
    server.script = lambda request, transport: answer_from(request, "\n".join(links))
    assert ask_upstream()("c0.test").reason == "loop"


@pytest.mark.attack(73)
def test_a_rebinding_authority_is_asked_once_while_the_answer_lives(
    server: Any, ask_upstream: Any, answer_from: Any
) -> None:
    """INV-4: even with TTL 0 the addresses come as one list, kept for a second."""

    def script(request: Any, transport: str) -> bytes:
        first = len(server.asked) <= 2
        return bytes(answer_from(request, f"a.test. 0 A {'192.0.2.1' if first else '127.0.0.1'}"))

    server.script = script
    ask = ask_upstream(clock=lambda: 0.0)
    assert ask("a.test").addresses == ask("a.test").addresses == [(V4, "192.0.2.1")]
    assert ask("a.test").ttl == 1
    assert len(server.asked) == 2


def test_lookups_of_one_name_are_one_lookup(server: Any, loop: Any, ask_upstream: Any, answer_from: Any) -> None:
    server.script = lambda request, transport: answer_from(request, "a.test. 60 A 192.0.2.1")
    ask = ask_upstream()
    others: list[Resolved | LookupFailed] = []

    def faulty(_result: object) -> None:
        raise RuntimeError("a waiter fell over")

    loop._on_error = lambda error: None
    ask.upstream.lookup("a.test", faulty)
    ask.upstream.lookup("a.test", others.append)
    assert ask("a.test").addresses == [(V4, "192.0.2.1")]
    assert len(others) == 1
    assert len(server.asked) == 2


def test_answers_live_as_long_as_they_say_within_limits(server: Any, loop: Any, answer_from: Any) -> None:
    now = [0.0]
    ttl = [100_000]
    server.script = lambda request, transport: answer_from(request, f"a.test. {ttl[0]} A 192.0.2.1")
    upstream = Upstream(loop, NameServers([server.place], 20.0), {}, lambda: now[0])

    def ask() -> int:
        upstream.lookup("a.test", lambda _: loop.stop())
        if upstream._pending:
            loop.run()
        return len(server.asked)

    assert ask() == 2
    now[0] = 299.0
    assert ask() == 2
    now[0] = 301.0
    assert ask() == 4


def test_a_failure_is_remembered_for_two_seconds(server: Any, loop: Any, answer_from: Any) -> None:
    now = [0.0]
    server.script = lambda request, transport: answer_from(request, "", rcode=3)
    upstream = Upstream(loop, NameServers([server.place], 20.0), {}, lambda: now[0])
    for moment, asked in ((0.0, 2), (1.9, 2), (2.1, 4)):
        now[0] = moment
        upstream.lookup("no.test", lambda _: loop.stop())
        if upstream._pending:
            loop.run()
        assert len(server.asked) == asked


@pytest.mark.attack(197)
def test_the_cache_and_the_crowd_are_bounded(
    server: Any, loop: Any, answer_from: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 4)
    monkeypatch.setattr(module, "MAX_PENDING", 6)
    server.script = lambda request, transport: answer_from(request, "")
    upstream = Upstream(loop, NameServers([server.place], 20.0), {}, loop.now)
    results: list[Resolved | LookupFailed] = []
    for i in range(8):
        upstream.lookup(f"n{i}.test", lambda result: (results.append(result), len(results) < 8 or loop.stop())[0])
    assert [r.reason for r in results if isinstance(r, LookupFailed)] == ["servfail", "servfail"]
    loop.run()
    assert len(results) == 8
    assert len(upstream._cache) == 4


@pytest.mark.parametrize("name", ["", ".", "a..b", "a" * 64 + ".test", "a." * 127 + "test", "ü.test"])
def test_what_is_no_name_is_not_asked(server: Any, ask_upstream: Any, name: str) -> None:
    assert ask_upstream()(name).reason == "nxdomain"
    assert server.asked == []


def test_closing_tells_everyone_who_waits(loop: Any, server: Any) -> None:
    upstream = Upstream(loop, NameServers([server.place], 20.0), {}, loop.now)
    results: list[Resolved | LookupFailed] = []
    upstream.lookup("a.test", results.append)
    upstream.close()
    assert [r.reason for r in results if isinstance(r, LookupFailed)] == ["servfail"]
    assert loop._handlers == {}


def forwarded(loop: Any, upstream: Upstream, qtype: str) -> bytes | None:
    question = dnslib.DNSRecord.question("A.test", qtype)
    question.header.id = 4711
    query = parse_query(bytes(question.pack()))
    assert isinstance(query, Query)
    replies: list[bytes | None] = []
    upstream.forward(query, lambda reply: (replies.append(reply), loop.stop())[0])
    if not replies:
        loop.run()
    return replies[0]


def test_a_forwarded_question_gets_a_rebuilt_answer(server: Any, loop: Any, answer_from: Any) -> None:
    zone = 'a.test. 999 CNAME b.test.\nb.test. 60 TXT "right"\nevil.test. 60 TXT "wrong"'
    server.script = lambda request, transport: answer_from(request, zone)
    upstream = Upstream(loop, NameServers([server.place], 20.0), {}, loop.now)
    reply = dnslib.DNSRecord.parse(forwarded(loop, upstream, "TXT"))
    assert reply.header.id == 4711
    assert str(reply.q.qname) == "A.test."
    assert [(str(rr.rname), rr.ttl) for rr in reply.rr] == [("a.test.", 300), ("b.test.", 60)]


@pytest.mark.attack(75)
@pytest.mark.parametrize("said", ["servfail", "loop", "garbage"])
def test_a_failed_forward_is_none(server: Any, loop: Any, answer_from: Any, said: str) -> None:
    def script(request: Any, transport: str) -> bytes:
        if said == "loop":
            return bytes(answer_from(request, "a.test. 60 CNAME a.test."))
        if said == "servfail":
            return bytes(answer_from(request, "", rcode=2))
        good = bytes(answer_from(request, 'a.test. 60 TXT "x"'))
        return good[:-3] + b"\0\2\xff"

    server.script = script
    assert forwarded(loop, Upstream(loop, NameServers([server.place], 0.1, attempts=1), {}, loop.now), "TXT") is None


@pytest.mark.attack(195)
def test_a_lookup_that_cannot_start_fails_and_leaves_nobody_waiting(
    server: Any, loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-1: no descriptors or watches left is an answer, and the next one who asks is not stuck behind it."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    upstream = Upstream(loop, NameServers([server.place], 20.0), {}, loop.now)
    heard: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(loop, "watch", full)
        upstream.lookup("a.test", heard.append)
    assert [answer.reason for answer in heard] == ["servfail"]
    assert "a.test" not in upstream._pending
    upstream.close()
