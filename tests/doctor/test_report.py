"""The table and the JSON say the same, and one leak turns the whole answer. A backend that cannot run does not."""

from __future__ import annotations

import json

import pytest

from netsandbox.doctor.jail import Finding
from netsandbox.doctor.linux_checks import Check
from netsandbox.doctor.report import BackendReport, Report, as_json, lines

SHARED = Check("architecture", "ok", "x86_64")
NOWHERE = Check("state directory", "MISSING", "unknown", "set XDG_STATE_HOME to a directory of yours")
WELL = Check("kernel", "ok", "Linux 6.1")
LACKING = Check("user namespaces", "MISSING", "Operation not permitted", "as root run `sysctl -w x=1`")
HELD = Finding("tcp-loopback", "nothing arrives", "nothing arrived; client: ECONNREFUSED", "ok")
LEAKED = Finding("tcp-host", "nothing arrives", "the canary received 1", "LEAK")
SKIPPED = Finding("tcp6-host", "nothing arrives", "this host has no IPv6 host address", "skipped")
NOTED = Finding("namespaces", "all its own", "it has the host's namespaces", "note")
FAILED = Finding("control-name", "reached", "the control received 0; client: no answer", "FAILED")


def single(checks: list[Check], jail: list[Finding], unproven: str | None = None) -> Report:
    return Report([SHARED], [BackendReport("namespaces", checks, jail, unproven)])


HOLDS = BackendReport("broker", [WELL], [HELD, NOTED])
CLOSED = BackendReport("namespaces", [LACKING], [], "user namespaces missing")


@pytest.mark.parametrize(
    ("machine", "jail", "ok"),
    [
        ([WELL], [HELD], True),
        ([WELL], [HELD, SKIPPED], True),
        ([WELL], [HELD, NOTED], True),
        ([WELL], [HELD, LEAKED], False),
        ([WELL], [HELD, FAILED], False),
        ([WELL, LACKING], [HELD], False),
        ([WELL], [], False),
    ],
)
def test_a_report_is_ok_only_if_machine_and_jail_are(machine, jail, ok):
    assert single(machine, jail).ok is ok


@pytest.mark.parametrize(
    ("first", "second", "ok"),
    [
        (BackendReport("namespaces", [WELL], [HELD]), HOLDS, True),
        (CLOSED, HOLDS, True),
        (BackendReport("namespaces", [WELL], [HELD, LEAKED]), HOLDS, False),
        (BackendReport("namespaces", [WELL], [], "the helper is gone"), HOLDS, False),
        (BackendReport("namespaces", [WELL], [HELD]), BackendReport("broker", [WELL], [LEAKED]), False),
        (BackendReport("namespaces", [WELL], [HELD]), BackendReport("broker", [LACKING], [], "x missing"), True),
        (CLOSED, BackendReport("broker", [LACKING], [], "x missing"), False),
    ],
)
def test_a_backend_that_cannot_run_is_no_failure_while_another_holds(first, second, ok):
    assert Report([SHARED], [first, second]).ok is ok
    assert not Report([SHARED, NOWHERE], [first, second]).ok


def test_a_jail_that_was_not_tried_is_not_proven():
    report = single([WELL], [HELD], "the helper is gone")
    assert not report.ok
    assert lines(report)[0] == "Not proven: the helper is gone"


VERDICT = "THE JAIL LEAKS: 1 probe got out. Do not rely on it; please report this table."
LEAKING = single([WELL, LACKING], [HELD, LEAKED])


def test_the_verdict_comes_first_then_only_what_is_wrong():
    assert lines(LEAKING) == [
        VERDICT,
        "",
        "The backend namespaces",
        "  user namespaces      Operation not permitted  MISSING",
        "                       as root run `sysctl -w x=1`",
        "",
        "The jail of namespaces, tried from inside and judged by what arrived outside",
        "  probe     expected         what happened",
        "  tcp-host  nothing arrives  the canary received 1  LEAK",
        "",
        "`netsandbox doctor -v` lists all: 3 checks, 2 probes.",
    ]


def test_verbose_lists_every_check_and_probe():
    assert lines(LEAKING, verbose=True) == [
        VERDICT,
        "",
        "This machine",
        "  architecture         x86_64  ok",
        "",
        "The backend namespaces",
        "  kernel               Linux 6.1  ok",
        "  user namespaces      Operation not permitted  MISSING",
        "                       as root run `sysctl -w x=1`",
        "",
        "The jail of namespaces, tried from inside and judged by what arrived outside",
        "  probe         expected         what happened",
        "  tcp-loopback  nothing arrives  nothing arrived; client: ECONNREFUSED  ok",
        "  tcp-host      nothing arrives  the canary received 1                  LEAK",
    ]


def test_the_weaker_backend_is_said_first():
    text = lines(Report([SHARED], [CLOSED, HOLDS]))
    assert text[:3] == [
        "The backend namespaces cannot run here: user namespaces missing. Sessions use broker.",
        "namespaces: Missing: 1 needed thing; no session of it runs here until that is fixed.",
        "broker: The jail holds: 1 probe, 1 weaker by design.",
    ]
    assert lines(Report([SHARED], [HOLDS, CLOSED]))[0].startswith("broker: ")


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        (single([WELL], [HELD, SKIPPED]), "The jail holds: 1 probe, 1 cannot be tried here."),
        (single([WELL], [HELD]), "The jail holds: 1 probe."),
        (single([WELL], [HELD, NOTED]), "The jail holds: 1 probe, 1 weaker by design."),
        (
            single([LACKING], [], "x"),
            "Missing: 1 needed thing; no session of it runs here until that is fixed.",
        ),
        (
            Report([NOWHERE], [BackendReport("broker", [WELL], [], "state directory missing")]),
            "Missing: 1 needed thing; no session runs here until that is fixed.",
        ),
        (
            single([WELL], [FAILED]),
            "Not proven: 1 probe failed. Run it again; if that stays, please report this table.",
        ),
    ],
)
def test_the_first_line_is_the_verdict(report, verdict):
    assert lines(report)[0] == verdict


def test_nothing_from_inside_can_move_the_cursor():
    hostile = Finding("x", "refused", "\x1b[2J", "ok")
    assert "\x1b" not in "\n".join(lines(single([WELL], [hostile]), verbose=True))


def test_programs_read_stable_keys():
    answer = json.loads(json.dumps(as_json(Report([SHARED], [CLOSED, BackendReport("broker", [], [LEAKED])]))))
    assert answer == {
        "v": 1,
        "ok": False,
        "backends": [
            {"backend": "namespaces", "ok": False, "can_run": False, "unproven": "user namespaces missing"},
            {"backend": "broker", "ok": False, "can_run": True, "unproven": None},
        ],
        "machine": [
            {"name": "architecture", "status": "ok", "found": "x86_64", "remedy": None, "backend": None},
            {
                "name": "user namespaces",
                "status": "MISSING",
                "found": "Operation not permitted",
                "remedy": "as root run `sysctl -w x=1`",
                "backend": "namespaces",
            },
        ],
        "jail": [
            {
                "probe": "tcp-host",
                "expected": "nothing arrives",
                "happened": "the canary received 1",
                "status": "LEAK",
                "backend": "broker",
            }
        ],
        "unproven": None,
    }
    assert as_json(Report([SHARED], [CLOSED]))["unproven"] == "namespaces: user namespaces missing"
