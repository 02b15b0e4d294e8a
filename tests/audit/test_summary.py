"""The summary counts attempts, not records, and keeps the hint that would allow what was denied."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.reader import read_records
from netsandbox.audit.summary import summarise


def test_a_session_at_a_glance(finished_log: Path) -> None:
    summary = summarise(read_records(str(finished_log)))
    assert summary.ended
    assert summary.status == 0
    assert summary.attempts_denied == 11
    allowed = summary.allowed["example.com"]
    assert (allowed.connections, allowed.bytes_up, allowed.bytes_down, allowed.ports) == (1, 10, 2000, {443})
    assert [(item.host, item.attempts) for item in summary.denied_by("dns")] == [("evil.test", 7)]
    assert [(item.host, item.port, item.attempts) for item in summary.denied_by("udp")] == [("203.0.113.9", 443, 3)]
    assert summary.denied_by("egress")[0].hint == "--allow-domain evil.test"


def test_nothing_is_a_summary_too() -> None:
    assert summarise([]).as_json()["records"] == 0
    assert summarise([]).seconds == 0


loose = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
events = st.sampled_from(["egress", "egress.end", "dns", "session.end", "audit.rotate"])
odd = ("verdict", "host", "port", "reason", "count", "hint", "bytes_up", "status", "dropped")
odd_record = st.fixed_dictionaries(
    {"ts": st.text(max_size=30), "session": st.text(max_size=3), "event": events}, optional=dict.fromkeys(odd, loose)
)


@given(st.lists(odd_record, max_size=5))
def test_records_with_odd_values_are_summed_up_too(records: list[dict[str, object]]) -> None:
    assert summarise(records).as_json()["records"] == len(records)
