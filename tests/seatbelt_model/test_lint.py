"""What lint says about whole profiles: the findings, their lines, and that good profiles have none."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import load

CLEAN = """(version 1)
(deny default)
(define (home path) (subpath (string-append (param "HOME") path)))
(allow process-fork process-exec)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read (sysctl-name "hw.ncpu" "kern.osrelease") (sysctl-name-prefix "hw.optional."))
(allow mach-lookup (global-name "com.apple.system.logger"))
(allow file-read* (subpath "/usr") (subpath "/System") (home "/project"))
(allow file-write* (home "/project"))
(allow file-read* file-write* (literal "/dev/null"))
(deny file-read* file-write* (home "/project/.env"))
(deny network*)
(allow network-bind network-inbound (local tcp "localhost:20000"))
(allow network-outbound (remote tcp "localhost:9000") (remote udp "localhost:9053"))
"""


def checks(text: str) -> list[tuple[int, str, str]]:
    found = lint(load(text, {"HOME": "/Users/me"}))
    assert all("; " in finding.text and finding.text.isprintable() for finding in found)
    return [(finding.line, finding.severity, finding.check) for finding in found]


def closed(*rules: str) -> list[tuple[int, str, str]]:
    return checks("\n".join(["(version 1) (deny default)", *rules]))


def test_a_careful_profile_has_no_findings() -> None:
    assert checks(CLEAN) == []


def test_a_warning_is_given_once() -> None:
    assert closed("(allow network* network-outbound)") == closed("(allow network*)")


@pytest.mark.attack(137)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(version 1)\n(allow default)", [(2, "error", "allow-default"), (2, "error", "deny-default")]),
        (
            "(version 1)\n(allow process-fork)\n(deny default)",
            [(2, "error", "deny-default"), (2, "warning", "overridden")],
        ),
        ("(version 1)", [(1, "error", "deny-default")]),
        ("(version 1)(deny default)\n(allow default)", [(1, "error", "reopened"), (2, "error", "allow-default")]),
        ("(version 1)\n(deny default (target self))", [(2, "error", "deny-default")]),
        ("(deny default)", [(1, "error", "fault")]),
        ("", [(1, "error", "deny-default"), (1, "error", "fault")]),
    ],
)
def test_the_first_rule_is_deny_default(text: str, found: list[tuple[int, str, str]]) -> None:
    assert checks(text) == found


def test_every_fault_is_a_finding_at_its_line() -> None:
    rules = "(allow file-execute)", "(allow file-read* (fancy))", '(allow network-outbound (remote ip "127.0.0.1:*"))'
    assert closed(*rules) == [(2, "error", "fault"), (3, "error", "fault"), (4, "error", "fault")]


def test_an_import_that_is_not_at_hand_is_a_warning() -> None:
    assert closed('(import "system.sb")') == [(2, "warning", "import")]


def test_findings_in_an_import_name_it() -> None:
    profile = load('(version 1)(deny default)(import "a.sb")', imported={"a.sb": "\n(allow network*)"}.get)
    assert {(finding.source, finding.line) for finding in lint(profile)} == {("", 1), ("a.sb", 2)}


@pytest.mark.attack(138)
@pytest.mark.parametrize(
    ("rule", "check"),
    [
        ("(allow appleevent-send)", "outside"),
        ('(allow appleevent-send (appleevent-destination "com.apple.finder"))', "outside"),
        ("(allow lsopen)", "outside"),
        ("(allow job-creation)", "outside"),
        ("(allow mach-priv-task-port)", "outside"),
        ('(allow process-exec (literal "/bin/sh") (with no-sandbox))', "no-sandbox"),
    ],
)
def test_ways_to_have_others_act_are_errors(rule: str, check: str) -> None:
    assert closed(rule) == [(2, "error", check)]


def test_task_ports_of_the_same_sandbox_are_fine() -> None:
    assert closed("(allow mach-priv-task-port (target same-sandbox))") == []


@pytest.mark.attack(138)
@pytest.mark.parametrize("operation", ["mach-lookup", "mach*"])
def test_an_open_lookup_is_a_warning_and_an_open_resolver(operation: str) -> None:
    found = closed(f"(allow {operation})")
    assert (2, "warning", "services") in found
    assert (2, "error", "resolver") in found
