"""The small programs the benchmarks run."""

from __future__ import annotations

import json
import re

from dnslib import DNSRecord


def test_every_name_is_at_loopback(bench):
    reply = DNSRecord.parse(bench("authority").reply(DNSRecord.question("oRigin.test", "A").pack()))
    assert [str(record.rdata) for record in reply.rr] == ["127.0.0.1"]
    assert str(reply.q.qname) == "oRigin.test."


def test_no_name_has_another_record(bench):
    reply = DNSRecord.parse(bench("authority").reply(DNSRecord.question("origin.test", "AAAA").pack()))
    assert (reply.header.rcode, reply.rr) == (0, [])


def test_results_can_be_read_by_programs(bench, tmp_path):
    figures, report = bench("figures"), bench("report")
    result = figures.Result("launch")
    series = figures.Series()
    series.add("netsandbox", 20.0)
    result.table(series, "ms")
    result.aim("launch", 25, series.spread("netsandbox"), "ms")
    report.save(tmp_path / "figures.json", [result])
    saved = json.loads((tmp_path / "figures.json").read_text())
    assert saved["results"][0]["targets"][0]["met"] is True
    assert saved["machine"]["cores"] >= 1


def test_results_can_be_put_in_a_page(bench):
    figures, report = bench("figures"), bench("report")
    result = figures.Result("launch")
    series = figures.Series()
    for ours, theirs in ((20.0, 10.0), (30.0, 15.0)):
        series.add("netsandbox", ours)
        series.add("bare", theirs)
    result.table(series, "ms", "bare")
    result.aim("launch against bare", 1.5, series.ratio("netsandbox", "bare"))
    result.aim("launch against nobody", 1.5, None)
    page = report.tables([result]).replace(report.TIMES, "x").replace(report.NOTHING, "-")
    assert "| launch against bare | ≤ 1.5 x | 2 x | **missed** |" in page
    assert "| launch against nobody | ≤ 1.5 x | - | not compared |" in page
    assert "| netsandbox | 25 ms | 20 to 30 | 2 x bare (2 to 2) |" in page


def test_the_installer_names_no_registry(bench):
    text = (bench("place").BENCH / "install-peers").read_text()
    assert not re.search(r"https?://|registry\.", text)
