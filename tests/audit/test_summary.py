"""The summary counts attempts, not records, and keeps the hint that would allow what was denied."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.log import AuditLog
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


def test_what_seatbelt_refused_is_told_by_operation_and_target(tmp_path: Path) -> None:
    log = AuditLog.open(str(tmp_path / "audit.jsonl"), "s")
    refused = {"verdict": "deny", "reason": "seatbelt"}
    log.write("seatbelt", **refused, operation="file-read-data", path="/x", exe="cat", count=1)
    log.write("seatbelt", **refused, operation="file-read-data", path="/x", exe="cat", count=4)
    log.write("seatbelt", **refused, operation="network-outbound", port=443, exe="curl", count=3)
    log.write("seatbelt", **refused, operation="network-outbound", port=22, address="203.0.113.7", count=1)
    log.write("seatbelt", **refused, operation="mach-lookup", target="com.apple.x", count=1)
    log.write("seatbelt", **refused, operation="signal", exe="sh", count=1)
    log.write("seatbelt", **refused, count=500, detail="past 1024 kinds, not listed")
    log.close()
    summary = summarise(read_records(log.path))
    assert summary.attempts_denied == 511
    assert {(item.host, item.port, item.attempts) for item in summary.denied_by("seatbelt")} == {
        ("past 1024 kinds, not listed", None, 500),
        ("file-read-data /x", None, 5),
        ("network-outbound *", 443, 3),
        ("network-outbound 203.0.113.7", 22, 1),
        ("mach-lookup com.apple.x", None, 1),
        ("signal", None, 1),
    }


def test_what_learn_saw_of_files_is_counted_by_path_and_place(tmp_path: Path) -> None:
    log = AuditLog.open(str(tmp_path / "audit.jsonl"), "s")
    log.write("file", operation="make", path="/srv/a", call="openat")
    log.write("file", operation="change", path="/srv/b", call="truncate")
    log.write("file", verdict="deny", operation="read", path="/home/me/.ssh/id", place="/home/me/.ssh")
    log.write("file", operation="make", path="/home/me/.ssh/x", place="/home/me/.ssh")
    log.write("file", count=3, detail="more paths than are listed")
    log.close()
    summary = summarise(read_records(log.path))
    assert (summary.written, summary.secrets, summary.attempts_denied) == (2, ["/home/me/.ssh"], 0)
    assert (summary.as_json()["written"], summary.as_json()["secrets"]) == (2, ["/home/me/.ssh"])


def test_approved_files_are_allowed_and_not_taken_for_writes() -> None:
    base = {"ts": "2025", "session": "s", "event": "file", "verdict": "allow", "reason": "approved", "count": 2}
    summary = summarise(
        [{**base, "operation": "read", "path": "/h/a"}, {**base, "operation": "change", "path": "/h/b"}]
    )
    assert summary.approved == {("reading", "/h/a"): 2, ("writing", "/h/b"): 2}
    assert summary.written == 0
    assert summary.as_json()["approved"][0] == {"doing": "reading", "path": "/h/a", "count": 2}


def test_refused_files_are_folded_by_what_would_allow_them() -> None:
    base = {"ts": "2025", "session": "s", "event": "file", "verdict": "deny", "reason": "not-shown", "exe": "/bin/cat"}
    docs = {**base, "operation": "read", "path": "/h/docs/a", "hint": "--allow-read ~/docs"}
    records = [
        {**docs, "count": 2},
        {**docs, "path": "/h/docs/b"},
        docs,
        {**base, "operation": "make", "path": "/h/docs/a", "hint": "--allow-write ~/docs"},
        {**base, "operation": "change", "path": "/h/keep/x", "reason": "deny-rule", "rule": "--deny-write ~/keep"},
        {**base, "event": "exec", "operation": "execute", "path": "/h/docs/t", "hint": "--allow-read ~/docs"},
        {"ts": "2025", "session": "s", "event": "file", "count": 9, "detail": "more refused paths than are listed"},
    ]
    summary = summarise(records)
    assert summary.denied == {}
    assert summary.attempts_denied == 7 + 9
    assert [(each.doing, each.reason, each.change, each.paths) for each in summary.refused_files()] == [
        ("reading", "not-shown", "--allow-read ~/docs", {"/h/docs/a": 3, "/h/docs/b": 1}),
        ("executing", "not-shown", "--allow-read ~/docs", {"/h/docs/t": 1}),
        ("writing", "not-shown", "--allow-write ~/docs", {"/h/docs/a": 1}),
        ("writing", "deny-rule", "--deny-write ~/keep", {"/h/keep/x": 1}),
    ]
    found = summary.as_json()
    assert found["files_unlisted"] == 9
    assert found["denied_files"][0] == {
        "doing": "reading",
        "reason": "not-shown",
        "change": "--allow-read ~/docs",
        "attempts": 4,
        "paths": {"/h/docs/a": 3, "/h/docs/b": 1},
    }


def test_what_programs_try_by_habit_is_listed_apart_and_not_counted() -> None:
    base = {"ts": "2025", "session": "s", "verdict": "deny"}
    nscd = {**base, "event": "socket", "reason": "unix-socket", "exe": "/usr/bin/id", "count": 4}
    login = {**base, "event": "file", "reason": "not-shown", "operation": "read", "path": "/h/.npmrc"}
    end = {"ts": "2025", "session": "s", "event": "session.end", "status": 0}
    summary = summarise([nscd, login, end], "/h")
    assert (summary.attempts_denied, summary.records) == (0, 3)
    assert summary.habits == {("/usr/bin/id", "unix-socket"): 4, ("reading /h/.npmrc", "not-shown"): 1}
    assert summary.as_json()["habits"][0] == {"what": "/usr/bin/id", "reason": "unix-socket", "attempts": 4}
    assert summarise([nscd, login, {**end, "status": 143}], "/h").attempts_denied == 0  # its user stopped it
    for last in ([{**end, "status": 1}], [], [{**end, "session": "t"}]):  # it failed, or nobody knows
        summary = summarise([nscd, login, *last], "/h")
        assert (summary.attempts_denied, len(summary.habits)) == (1, 1)
        assert summary.refused_files()[0].paths == {"/h/.npmrc": 1}


def test_a_refused_unix_socket_is_named_by_its_path() -> None:
    refused = {"event": "socket", "verdict": "deny", "reason": "unix-socket", "exe": "/bin/x", "call": "connect"}
    summary = summarise([{"ts": "2025", "session": "s", **refused, "path": "/run/docker.sock"}])
    assert [item.host for item in summary.denied_by("socket")] == ["/run/docker.sock"]


def test_a_flood_that_was_folded_counts() -> None:
    folded = {"event": "audit.fold", "verdict": "deny", "reason": "not-allowed", "of": "dns", "count": 29}
    summary = summarise([{"ts": "2025", "session": "s", **folded}])
    assert summary.attempts_denied == 29
    assert [(item.host, item.attempts) for item in summary.denied_by("dns")] == [("others, only counted", 29)]


def test_nothing_is_a_summary_too() -> None:
    assert summarise([]).as_json()["records"] == 0
    assert summarise([]).seconds == 0


loose = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
events = st.sampled_from(
    ["egress", "egress.end", "dns", "session.end", "audit.rotate", "audit.fold", "seatbelt", "file", "exec"]
)
odd = (
    "verdict",
    "host",
    "port",
    "reason",
    "count",
    "hint",
    "bytes_up",
    "status",
    "dropped",
    "operation",
    "path",
    "target",
    "rule",
)
odd_record = st.fixed_dictionaries(
    {"ts": st.text(max_size=30), "session": st.text(max_size=3), "event": events}, optional=dict.fromkeys(odd, loose)
)


@given(st.lists(odd_record, max_size=5))
def test_records_with_odd_values_are_summed_up_too(records: list[dict[str, object]]) -> None:
    assert summarise(records).as_json()["records"] == len(records)


def budget_log(tmp_path: Path, *uses: tuple[int, int]) -> str:
    path = str(tmp_path / "audit.jsonl")
    for number, (up, down) in enumerate(uses):
        log = AuditLog.open(path, f"s{number}")
        log.write("session.start", budgets=["a.test=10kB", "up=1MB"])
        log.write("session.end", status=0, budgets=[{"budget": "a.test=10kB", "bytes_up": up, "bytes_down": down}])
        log.close()
    return path


def test_budgets_are_told_with_what_was_used(tmp_path: Path) -> None:
    summary = summarise(read_records(budget_log(tmp_path, (100, 200))))
    assert summary.as_json()["budgets"] == [
        {"budget": "a.test=10kB", "bytes_up": 100, "bytes_down": 200},
        {"budget": "up=1MB", "bytes_up": 0, "bytes_down": 0},
    ]


def test_of_several_sessions_the_largest_use_is_told(tmp_path: Path) -> None:
    summary = summarise(read_records(budget_log(tmp_path, (100, 200), (5, 5), (1, 9000))))
    assert (summary.budgets["a.test=10kB"].bytes_up, summary.budgets["a.test=10kB"].bytes_down) == (1, 9000)


def test_requests_are_counted_by_host_and_refused_ones_named(tmp_path: Path) -> None:
    log = AuditLog.open(str(tmp_path / "audit.jsonl"), "s")
    request = {"host": "a.test", "port": 443, "scheme": "https", "method": "POST"}
    log.write("egress", verdict="allow", host="a.test", port=443)
    for _ in range(2):
        log.write("http", verdict="allow", reason="rule", path="/x", **request)
        log.write("http", verdict="deny", reason="request-not-allowed", path="/y", hint="--x", **request)
    log.close()
    summary = summarise(read_records(log.path))
    assert (summary.allowed["a.test"].connections, summary.allowed["a.test"].requests) == (1, 2)
    (denied,) = summary.denied_by("http")
    assert (denied.host, denied.port, denied.attempts, denied.hint) == ("POST https://a.test/y", None, 2, "--x")
