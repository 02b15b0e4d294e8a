"""The gate's records: the program of an attempt, and whether the record was written; more in `test_gate`."""

from __future__ import annotations

from socket import inet_ntoa

from netsandbox.policy.inspection import HttpRequest
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import verdict
from tests.rig.gate_bench import Bench, found

POLICY = Policy(["example.com"])


def test_the_program_behind_an_attempt_is_in_its_record() -> None:
    bench = Bench(POLICY, {"example.com": found("203.0.113.1")}, attribute=lambda source: (7, "/bin/curl"))
    bench.gate.dialling(bench.admit(b"example.com"), "203.0.113.1")
    bench.admit(b"denied.test")
    records = [fields for event, fields in bench.story if event == "egress"]
    assert [(record["pid"], record["exe"]) for record in records] == [(7, "/bin/curl")] * 2


def test_a_request_that_is_denied_gets_no_secret() -> None:
    bench = Bench(POLICY, {"example.com": found("203.0.113.1")})
    grant, request = bench.admit(b"example.com"), HttpRequest("https", "GET", "/", secrets="TOKEN")
    for allowed in (True, False):
        bench.gate.records.request(grant, 1, verdict("rule", "example.com", 443, allowed=allowed), request, None)
    assert [fields.get("secret") for event, fields in bench.story if event == "http"] == ["TOKEN", None]


def test_queries_and_datagrams_are_recorded_or_the_caller_is_told() -> None:
    bench = Bench(POLICY)
    assert bench.gate.records.queries(("denied.test", 28, False, "not-allowed", None), 3, 0)
    assert bench.gate.records.datagrams((inet_ntoa(bench.pool.address_of("example.com")), 443), 1, 10)
    question, datagram = bench.records
    assert (question["qtype"], question["count"], question["hint"]) == ("AAAA", 3, "--allow-domain denied.test")
    assert (datagram["host"], datagram["verdict"], datagram["count"]) == ("example.com", "deny", None)
    bench.log.writable = False
    assert not bench.gate.records.queries(("denied.test", 1, False, "not-allowed", None), 1, 0)
    assert not bench.gate.records.datagrams(("192.0.2.1", 1), 1, 1)


def test_a_refused_query_type_names_the_option_that_forwards_it() -> None:
    bench = Bench(POLICY)
    for qtype in (16, 1234):
        bench.gate.records.queries(("example.com", qtype, False, "query-type", None), 1, 0)
    bench.gate.records.queries(("example.com", 16, True, "rule", "example.com"), 1, 0)
    hints = [record.get("hint") for record in bench.records]
    assert hints == ["--allow-query-type TXT", "--allow-query-type TYPE1234", None]


def test_denied_queries_are_passed_on_with_process_and_option() -> None:
    bench = Bench(POLICY, attribute=lambda source, protocol="tcp": (7, "/bin/curl") if protocol == "udp" else None)
    told: list[object] = []
    pass_on = bench.gate.records.denied_query(lambda fields, pid: told.append((fields["host"], fields["hint"], pid)))
    pass_on(("denied.test", 1, False, "not-allowed", None), ("127.0.0.1", 9))
    pass_on(("example.com", 16, False, "query-type", None), object())  # by TCP
    assert told == [
        ("denied.test", "--allow-domain denied.test", 7),
        ("example.com", "--allow-query-type TXT", None),
    ]
