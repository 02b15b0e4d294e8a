"""The table and the JSON say the same, and one leak or one missing thing turns the whole answer."""

from __future__ import annotations

import json

import pytest

from netsandbox.doctor.examine import examine
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.linux_checks import Check
from netsandbox.doctor.report import Report, as_json, lines

WELL = Check("kernel", "ok", "Linux 6.1")
LACKING = Check("user namespaces", "MISSING", "Operation not permitted", "as root run `sysctl -w x=1`")
HELD = Finding("tcp-loopback", "nothing arrives", "nothing arrived; client: ECONNREFUSED", "ok")
LEAKED = Finding("tcp-host", "nothing arrives", "the canary received 1", "LEAK")
SKIPPED = Finding("tcp6-host", "nothing arrives", "this host has no IPv6 host address", "skipped")
FAILED = Finding("control-name", "reached", "the control received 0; client: no answer", "FAILED")


@pytest.mark.parametrize(
    ("machine", "jail", "ok"),
    [
        ([WELL], [HELD], True),
        ([WELL], [HELD, SKIPPED], True),
        ([WELL], [HELD, LEAKED], False),
        ([WELL], [HELD, FAILED], False),
        ([WELL, LACKING], [HELD], False),
        ([WELL], [], False),
    ],
)
def test_a_report_is_ok_only_if_machine_and_jail_are(machine, jail, ok):
    assert Report(machine, jail).ok is ok


def test_a_jail_that_was_not_tried_is_not_proven():
    assert not Report([WELL], [HELD], "the helper is gone").ok


def test_the_table_of_a_machine_that_leaks():
    assert lines(Report([WELL, LACKING], [HELD, LEAKED])) == [
        "This machine",
        "  kernel               Linux 6.1  ok",
        "  user namespaces      Operation not permitted  MISSING",
        "                       as root run `sysctl -w x=1`",
        "",
        "The jail, tried from inside and judged by what arrived outside",
        "  probe         expected         what happened",
        "  tcp-loopback  nothing arrives  nothing arrived; client: ECONNREFUSED  ok",
        "  tcp-host      nothing arrives  the canary received 1                  LEAK",
        "",
        "THE JAIL LEAKS: 1 probes got out. Do not rely on it; please report this table.",
    ]


@pytest.mark.parametrize(
    ("report", "end"),
    [
        (Report([WELL], [HELD, SKIPPED]), "The jail holds: 1 probes, 1 cannot be tried here."),
        (Report([WELL], [HELD]), "The jail holds: 1 probes."),
        (Report([LACKING], [], "x"), "1 needed things are missing; no session runs here until that is fixed."),
        (
            Report([WELL], [FAILED]),
            "Not proven: 1 probes failed. Run it again; if that stays, please report this table.",
        ),
    ],
)
def test_the_last_line_sums_it_up(report, end):
    assert lines(report)[-1] == end


def test_nothing_from_inside_can_move_the_cursor():
    hostile = Finding("x", "refused", "\x1b[2J", "ok")
    assert "\x1b" not in "\n".join(lines(Report([WELL], [hostile])))


def test_programs_read_stable_keys():
    answer = json.loads(json.dumps(as_json(Report([LACKING], [LEAKED]))))
    assert answer == {
        "v": 1,
        "ok": False,
        "machine": [
            {
                "name": "user namespaces",
                "status": "MISSING",
                "found": "Operation not permitted",
                "remedy": "as root run `sysctl -w x=1`",
            }
        ],
        "jail": [
            {
                "probe": "tcp-host",
                "expected": "nothing arrives",
                "happened": "the canary received 1",
                "status": "LEAK",
            }
        ],
        "unproven": None,
    }


def test_what_is_missing_is_not_tried(monkeypatch):
    monkeypatch.setattr("netsandbox.doctor.linux_checks.checks", lambda: [WELL, LACKING])
    monkeypatch.setattr("netsandbox.doctor.file_probes.prove_linux", lambda: pytest.fail("no session can run here"))
    report = examine()
    assert (report.ok, report.unproven) == (False, "user namespaces missing")


def test_a_session_that_cannot_start_is_reported_and_not_raised(monkeypatch):
    def broken():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("netsandbox.doctor.linux_checks.checks", lambda: [WELL])
    monkeypatch.setattr("netsandbox.doctor.file_probes.prove_linux", broken)
    report = examine()
    assert not report.ok
    assert "Too many open files" in "\n".join(lines(report))
