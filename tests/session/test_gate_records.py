"""The gate's records: the program of an attempt, and whether the record was written; more in `test_gate`."""

from __future__ import annotations

from socket import inet_ntoa

from netsandbox.policy.policy import Policy
from tests.rig.gate_bench import Bench, found

POLICY = Policy(["example.com"])


def test_the_program_behind_an_attempt_is_in_its_record() -> None:
    bench = Bench(POLICY, {"example.com": found("203.0.113.1")}, attribute=lambda source: (7, "/bin/curl"))
    bench.gate.dialling(bench.admit(b"example.com"), "203.0.113.1")
    bench.admit(b"denied.test")
    records = [fields for event, fields in bench.story if event == "egress"]
    assert [(record["pid"], record["exe"]) for record in records] == [(7, "/bin/curl")] * 2


def test_queries_and_datagrams_are_recorded_or_the_caller_is_told() -> None:
    bench = Bench(POLICY)
    assert bench.gate.records.queries(("denied.test", 28, False, "not-allowed", None), 3, 0)
    assert bench.gate.records.datagrams((inet_ntoa(bench.pool.address_of("example.com")), 443), 1, 10)
    question, datagram = bench.records
    assert (question["qtype"], question["count"], question["hint"]) == ("AAAA", 3, "--allow-domain denied.test")
    assert (datagram["host"], datagram["verdict"], "count" in datagram) == ("example.com", "deny", False)
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
