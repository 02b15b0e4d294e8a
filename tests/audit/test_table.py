"""Nothing that came from the workload reaches the terminal unescaped, and columns line up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import table
from netsandbox.audit.summary import summarise
from netsandbox.audit.verify import Problem, Report

RECORD = {"ts": "2025-01-31T11:55:00.000000Z", "session": "s", "event": "egress"}
NAMES = (
    *("host", "reason", "exe", "hint", "verdict", "event", "ts", "session"),
    *("operation", "path", "place", "target", "address", "detail"),
    *("method", "scheme", "query", "status", "ms"),
)


@pytest.mark.attack(172)
@given(st.text(max_size=30), st.sampled_from(NAMES), st.sampled_from(["egress", "seatbelt", "file", "http"]))
def test_172_no_field_can_write_to_the_terminal(text: str, name: str, event: str) -> None:
    verdict = {} if event == "file" else {"verdict": "deny"}
    record = {**RECORD, **verdict, "event": event, name: text}
    rows = table.row(record, coloured=False) + table.request_row(record, coloured=False)
    shown = rows + table.summary_text(summarise([record]), coloured=False).replace("\n", "")
    assert shown.isascii()
    assert shown.isprintable()


def test_a_row_says_when_what_where_and_why() -> None:
    row = table.row(
        {**RECORD, "verdict": "deny", "host": "evil.test", "port": 443, "reason": "not-allowed"}, coloured=False
    )
    assert row.split() == ["11:55:00", "deny", "egress", "evil.test:443", "not-allowed"]
    assert "\x1b[31mdeny" in table.row({**RECORD, "verdict": "deny"}, coloured=True)


def test_what_learn_saw_of_files_is_shown() -> None:
    made = {**RECORD, "event": "file", "operation": "make", "path": "/srv/a", "pid": 7, "exe": "/bin/sh"}
    tried = {**RECORD, "event": "file", "operation": "read", "path": "/h/.ssh/id", "place": "/h/.ssh"}
    assert table.row(made, coloured=False).split()[-4:] == ["operation=make", "path=/srv/a", "pid=7", "exe=/bin/sh"]
    shown = table.summary_text(summarise([made, tried]), coloured=False)
    assert "Written outside of the folders that are always open: 1 path\n" in shown
    assert "Secrets that were tried and stayed hidden: /h/.ssh\n" in shown
    nothing = table.summary_text(summarise([RECORD]), coloured=False)
    assert "Written" not in nothing
    assert "Secrets" not in nothing


def test_approved_files_are_listed_as_allowed() -> None:
    read = {**RECORD, "event": "file", "verdict": "allow", "operation": "read", "reason": "approved", "count": 1}
    shown = table.summary_text(summarise([{**read, "path": "/h/\x1b"}]), coloured=False)
    assert "Allowed: 1 file\n  reading /h/\\x1b  1x  approved\n" in shown
    many = summarise({**read, "path": f"/h/{number}"} for number in range(table.MAX_ROWS + 2))
    assert "\n  and 2 more\n" in table.summary_text(many, coloured=False)


def test_an_approval_is_shown_with_who_gave_it() -> None:
    record = {"ts": "2025-01-31T12:00:00.000000Z", "event": "approval", "host": "asked.test", "port": 443}
    more = {"outcome": "approved", "id": 4711, "scope": "session", "ttl": 60, "by_pid": 7, "by_uid": 1000}
    shown = table.row({**record, **more}, coloured=False)
    assert "asked.test:443" in shown
    assert shown.endswith("outcome=approved id=4711 scope=session ttl=60 by_pid=7 by_uid=1000")


def test_what_seatbelt_refused_is_shown_with_its_operation_and_target() -> None:
    refused = {**RECORD, "event": "seatbelt", "verdict": "deny", "reason": "seatbelt"}
    read = {**refused, "operation": "file-read-data", "path": "/x", "pid": 5, "exe": "cat", "count": 2}
    assert table.row(read, coloured=False).endswith("operation=file-read-data path=/x pid=5 exe=cat count=2")
    text = table.summary_text(
        summarise([read, {**refused, "operation": "network-outbound", "port": 443}]), coloured=False
    )
    assert "Refused by Seatbelt: 3 attempts" in text
    assert "file-read-data /x       2x  seatbelt" in text
    assert "network-outbound *:443  1x  seatbelt" in text


def test_columns_line_up() -> None:
    assert table.aligned([("a", "bb", "c"), ("aaa", "b", "")]) == ["  a    bb  c", "  aaa  b"]
    assert table.aligned([]) == []


@pytest.mark.attack(180)
def test_180_a_summary_names_what_was_denied_and_what_would_allow_it() -> None:
    denied = {
        **RECORD,
        "verdict": "deny",
        "host": "evil.test",
        "port": 443,
        "reason": "not-allowed",
        "hint": "--allow-domain evil.test",
    }
    text = table.summary_text(summarise([denied, {**denied, "event": "bind"}, denied]), coloured=False)
    assert "Denied connections: 2 attempts" in text
    assert "evil.test:443  2x  not-allowed  --allow-domain evil.test" in text
    assert "Denied: bind: 1 attempt" in text


def test_a_summary_names_refused_files_beside_hosts() -> None:
    base = {**RECORD, "event": "file", "verdict": "deny", "reason": "not-shown", "operation": "read"}
    docs = [{**base, "path": f"/h/docs/{n}\x1b[2J", "hint": "--allow-read ~/docs"} for n in range(3)]
    kept = {**base, "operation": "make", "path": "/h/keep/x", "reason": "deny-rule", "rule": "--deny-write ~/keep"}
    more = {**RECORD, "event": "file", "count": 2, "detail": "more refused paths than are listed"}
    text = table.summary_text(summarise([*docs, {**kept, "count": 5}, more]), coloured=False)
    assert "Denied: nothing" not in text
    assert text.splitlines()[-4:] == [
        "Denied files: 10 attempts",
        "  writing /h/keep/x                    5x  deny-rule  leave out --deny-write ~/keep",
        r"  reading /h/docs/0\x1b[2J and 2 more  3x  not-shown  --allow-read ~/docs",
        "  others, only counted                 2x",
    ]


def test_rotated_away_records_are_mentioned() -> None:
    text = table.summary_text(summarise([{**RECORD, "event": "audit.rotate", "dropped": 12}]), coloured=False)
    assert "12 records in the middle" in text


def test_a_report_names_the_first_broken_line() -> None:
    report = Report("f", records=30, files=1, problems=[Problem("f", number, "broken") for number in range(4, 24)])
    text = table.report_text(report)
    assert "BROKEN, first at line 4 of f" in text
    assert "and 10 more" in text
    assert "INCOMPLETE" in table.report_text(Report("f"))


def test_habits_come_last_in_few_plain_lines() -> None:
    refused = {**RECORD, "event": "socket", "verdict": "deny", "reason": "unix-socket", "host": None, "port": None}
    records = [{**refused, "exe": f"/bin/{n}\x1b[2J"} for n in range(table.MAX_ROWS + 3)]
    lines = table.summary_text(summarise([*records, records[0]]), coloured=False).splitlines()
    start = lines.index(f"Tried by habit, refused, and not counted as denied: {table.MAX_ROWS + 4} attempts")
    assert lines[start - 1] == "Denied: nothing"
    assert lines[start + 1].split() == ["/bin/0\\x1b[2J", "2x", "unix-socket"]
    assert lines[-1].strip() == "and 3 more"


def test_a_summary_has_the_use_of_each_budget() -> None:
    start = {**RECORD, "event": "session.start", "budgets": ["a.test=10kB,up=1kB", "nonsense", 7]}
    used = [{"budget": "a.test=10kB,up=1kB", "bytes_up": 500, "bytes_down": 2000}, "x", {"bytes_up": "many"}]
    running = table.summary_text(summarise([start]), coloured=False)
    assert "Budgets: 2, known when the session has ended\n" in running
    ended = table.summary_text(summarise([start, {**RECORD, "event": "session.end", "budgets": used}]), coloured=False)
    assert [line.split() for line in ended.splitlines() if "a.test=" in line] == [
        ["a.test=10kB,up=1kB", "500", "B", "up", "2", "kB", "down", "50", "%"]
    ]
    assert "Budgets" not in table.summary_text(summarise([{**RECORD, "event": "session.end"}]), coloured=False)


def test_a_request_is_one_line() -> None:
    request = {
        **RECORD,
        "event": "http",
        "scheme": "https",
        "host": "a.test",
        "port": 443,
        "method": "GET",
        "path": "/x",
    }
    end = {"status": 200, "bytes_up": 0, "bytes_down": 2048, "ms": 43, "exe": "/bin/curl"}
    shown = table.request_row({**request, **end, "verdict": "allow"}, coloured=False)
    assert " ".join(shown.split()) == "11:55:00 allow 200 GET https://a.test/x 0 B up 2.048 kB down 43 ms by curl"
    open_one = table.request_row({**request, "verdict": "allow"}, coloured=False)
    assert " ".join(open_one.split()) == "11:55:00 allow - GET https://a.test/x no end recorded"
    denied = {**request, "verdict": "deny", "reason": "request-denied", "hint": "--x"}
    assert " ".join(table.request_row(denied, coloured=False).split()[-3:]) == "https://a.test/x request-denied --x"
