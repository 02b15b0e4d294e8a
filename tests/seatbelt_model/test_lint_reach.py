"""What a profile reaches besides the network is found however it is written, and not where it is denied."""

from __future__ import annotations

import pytest

from tests.seatbelt_model import lint_reach
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import load


def closed(*rules: str) -> list[tuple[int, str, str]]:
    found = lint(load("\n".join(["(version 1) (deny default)", *rules])))
    assert all("; " in finding.text and finding.text.isprintable() for finding in found)
    return [(finding.line, finding.severity, finding.check) for finding in found]


@pytest.mark.attack(170)
@pytest.mark.parametrize(
    ("open_", "shut"),
    [
        ("(allow signal)", "(allow signal (target self) (target same-sandbox))"),
        ("(allow signal (target others))", "(allow signal (target children))"),
        ("(allow process-info*)", "(allow process-info* (target same-sandbox))"),
        ("(allow process*)", "(allow process-fork process-exec*)"),
        ("(allow sysctl-read)", '(allow sysctl-read (sysctl-name "hw.ncpu"))'),
        ('(allow sysctl-read (sysctl-name-prefix "kern."))', '(allow sysctl-read (sysctl-name-prefix "hw."))'),
        ("(allow ipc-posix-shm*)", '(allow ipc-posix-shm* (ipc-posix-name "mine"))'),
    ],
)
def test_other_programs(open_: str, shut: str) -> None:
    assert closed(open_) == [(2, "warning", "processes")]
    assert closed(shut) == []


def test_a_deny_that_every_model_keeps_silences_the_warning() -> None:
    denied = '(deny sysctl-read (sysctl-name-prefix "kern.procargs"))'
    assert closed("(allow sysctl-read)", denied) == []


def test_one_that_only_some_models_keep_does_not_and_the_text_says_which() -> None:
    rules = "(version 1) (deny default)", '(allow sysctl-read (sysctl-name "kern.procargs2"))', "(deny sysctl-read)"
    (text,) = [finding.text for finding in lint(load("\n".join(rules))) if finding.check == "processes"]
    assert ", if a rule with a filter beats one without" in text


@pytest.mark.parametrize(
    ("open_", "shut"),
    [
        ("(allow system-socket)", "(allow system-socket (socket-domain AF_ROUTE))"),
        ("(allow iokit-open)", '(allow iokit-open (iokit-user-client-class "IOSurfaceRootUserClient"))'),
    ],
)
def test_the_kernels_own_parts(open_: str, shut: str) -> None:
    assert closed(open_) == [(2, "warning", "kernel")]
    assert closed(shut) == []


@pytest.mark.parametrize(
    "rule",
    ['(allow file-ioctl (literal "/dev/tty"))', '(allow file-ioctl (regex #"^/dev/ttys"))', "(allow file-ioctl)"],
)
def test_typing_into_a_terminal(rule: str) -> None:
    assert set(closed(rule)) == {(2, "warning", "terminal")}


def test_a_terminal_that_the_command_made_itself_is_fine() -> None:
    pty = '(require-all (regex #"^/dev/ttys") (extension "com.apple.sandbox.pty"))'
    assert closed(f"(allow file-ioctl {pty})", '(allow file-ioctl (literal "/dev/null"))') == []


def test_the_service_for_certificates() -> None:
    assert closed('(allow mach-lookup (global-name "com.apple.trustd.agent"))') == [(2, "warning", "certificates")]
    assert closed('(allow mach-lookup (global-name "com.apple.logd"))') == []


@pytest.mark.parametrize(
    "filter_", ['(subpath "/Users/me")', '(subpath "/Users")', '(subpath "/")', '(regex #"^/Users/")', ""]
)
def test_keys_in_a_home_that_is_opened(filter_: str) -> None:
    assert closed(f"(allow file-read* {filter_})") == [(2, "warning", "secrets")]


@pytest.mark.attack(150)
def test_what_the_host_runs_later_in_a_home_that_is_opened() -> None:
    assert closed('(allow file-write* (subpath "/Users/me"))') == [(2, "warning", "run-later")]
    assert closed('(allow file-write* (subpath "/Users/me/src"))') == []


def test_keys_that_are_denied_are_no_finding_unless_the_deny_names_another_home() -> None:
    opened = '(allow file-read* (subpath "/Users/me"))'
    assert closed(opened, '(deny file-read* (subpath "/Users/me/.ssh"))') == []
    assert closed(opened, '(deny file-read* (subpath "/Users/you/.ssh"))') == [(2, "warning", "secrets")]


def test_a_home_that_is_a_parameter_is_a_home() -> None:
    text = '(version 1)(deny default)\n(allow file-read* (subpath (param "HOME")))'
    found = lint(load(text, {"HOME": "/param/HOME"}))
    assert [(finding.line, finding.check) for finding in found] == [(2, "secrets")]


def test_a_path_that_is_written_and_run() -> None:
    run = '(allow process-exec* (subpath "/a/bin") (literal "/c"))'
    assert closed(run, '(allow file-write* (subpath "/a"))') == [(2, "warning", "written-and-run")]
    assert closed(run, '(allow file-write* (subpath "/b"))') == []
    assert closed(run, '(allow file-read* (subpath "/a"))') == []


def test_comparing_what_is_written_with_what_is_run_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_reach, "MAX_PAIRS", 0)
    assert closed('(allow process-exec* (subpath "/a"))', '(allow file-write* (subpath "/a"))') == []
