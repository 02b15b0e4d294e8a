"""`netsandbox explain --backend seatbelt` says what every model says, by which line of the printed profile."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.model.evaluator import allowed_under_all, denied_under_all
from netsandbox.backends.seatbelt.model.models import all_models
from netsandbox.backends.seatbelt.model.profile import load
from netsandbox.backends.seatbelt.model.request import connect, file
from netsandbox.cli import explain, run
from netsandbox.cli.explain_seatbelt import DISPUTED, SYSTEM, UNPROVEN, explained, questions, why
from netsandbox.errors import UsageError
from netsandbox.policy.policy import Policy

SEATBELT = "--backend seatbelt"


@pytest.fixture(autouse=True)
def project(mac_project: Path) -> Path:
    return mac_project


def asked(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str]:
    status = explain.main(shlex.split(f"{SEATBELT} {line}"))
    return status, capsys.readouterr().out


def answered(capsys: pytest.CaptureFixture[str], line: str) -> dict[str, str]:
    """The verdict on each question."""
    _, text = asked(capsys, f"--json {line}")
    return {each["question"]: each["verdict"] for each in json.loads(text)["verdicts"]}


def printed(capsys: pytest.CaptureFixture[str], options: str) -> list[str]:
    """The lines of the profile, the first at 1."""
    assert run.main(shlex.split(f"--dry-run {SEATBELT} {options} -- true")) == 0
    return ["", *capsys.readouterr().out.splitlines()]


OPTIONS = "--allow-domain example.com --connect-host 5432 --listening-base-port 30000 --listening-port-count 3"


@pytest.mark.parametrize(
    ("word", "verdicts"),
    [
        ("localhost:5432", {"connect tcp 5432": "allowed", "bind 5432": "denied"}),
        ("[::1]:30002", {"connect tcp 30002": "allowed", "bind 30002": "allowed", "listen 30002": "allowed"}),
        ("127.0.0.1:30003", {"connect tcp 30003": "allowed", "send udp 30003": "denied", "bind 30003": "denied"}),
        ("127.0.0.1:30004", {"connect tcp 30004": "allowed", "send udp 30004": "allowed"}),
        ("127.0.0.1:30006", {"connect tcp 30006": "denied", "listen 30006": "denied"}),
        ("example.com", {"connect tcp 80": "denied", "connect tcp 443": "denied", "send udp 443": "denied"}),
        ("https://[2001:db8::7]/x", {"connect tcp 443": "denied", "send udp 443": "denied"}),
        ("[::ffff:127.0.0.1]:5432", {"connect tcp 5432": "disputed"}),
        ("127.0.0.2:5432", {"connect tcp 5432": "disputed"}),
        ("mach:com.apple.dnssd.service", {"ask": "denied"}),
        ("mach:com.apple.logd", {"ask": "allowed"}),
        ("/Users/me/.ssh/id_ed25519", {"read": "denied", "write": "denied", "run": "denied"}),
        ("/usr/lib/dyld", {"read": "allowed", "write": "denied"}),
        ("./new", {"read": "allowed", "write": "allowed", "create": "allowed", "run": "allowed"}),
        ("./.git/hooks/pre-commit", {"read": "allowed", "create": "denied"}),
        ("/var/run/mDNSResponder", {"connect to it": "denied"}),
    ],
)
def test_a_host_a_path_and_a_service_are_judged_by_the_profile_of_the_options(
    capsys: pytest.CaptureFixture[str], word: str, verdicts: dict[str, str]
) -> None:
    assert verdicts.items() <= answered(capsys, f"{word} {OPTIONS}").items()


def test_people_read_the_verdict_the_rule_and_its_line_in_the_printed_profile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = printed(capsys, OPTIONS)
    at = source.index('  (remote tcp "localhost:5432"))')
    shut = source.index("(deny network*)")
    status, text = asked(capsys, f"127.0.0.1:5432 {OPTIONS}")
    assert status == 0
    assert text.splitlines()[:7] == [
        "127.0.0.1:5432",
        "  connect tcp 5432    allowed",
        f'      by line {at - 1}, (allow network-outbound … line {at}, (remote tcp "localhost:5432")) (every model)',
        "      Ports of the host that the user opened.",
        "  send udp 5432, bind 5432, listen 5432  denied",
        f"      by line {shut}, (deny network*) (every model)",
        "      Nobody is reached and nothing listens, unless a rule below names the port.",
    ]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("/Users/me/.ssh/id", "Secrets; these win over every allowance."),
        ("./new", "The working directory and what else is to be written."),
        ("/Users/you/x", "What no rule below names is refused."),
        ("mach:com.apple.dnssd.service", "The resolver: a question for any name carries data to whoever answers"),
        ("mach:com.apple.logd", "The system log, written only"),
        ("/dev/null", "git opens /dev/null for reading and writing at once"),
    ],
)
def test_the_profiles_own_reason_stands_below_the_rule(
    capsys: pytest.CaptureFixture[str], word: str, says: str
) -> None:
    assert asked(capsys, word)[1].splitlines()[3].strip().startswith(says)


def test_every_rule_of_a_profile_has_a_reason_that_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    source = printed(capsys, OPTIONS)
    for rule in load("\n".join(source[1:])).rules:
        told = why([line.strip() for line in source], rule.line, 0)
        assert told, source[rule.line]
        assert ";" not in told[:2]


def test_what_leaves_by_the_door_is_said_with_the_policys_answer(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = asked(capsys, f"example.com {OPTIONS}")
    assert "where the policy says: tcp 80 allowed, tcp 443 allowed" in text
    _, text = asked(capsys, f"bad.test:443 {OPTIONS}")
    assert "where the policy says: tcp 443 denied" in text
    assert "nothing is allowed out, so there is no door either" in asked(capsys, "example.com")[1]


def test_a_port_of_localhost_comes_with_a_word_on_the_window(capsys: pytest.CaptureFixture[str]) -> None:
    assert "servers listen in the session's window" in asked(capsys, "localhost:3000")[1]
    assert "without a port 80 and 443 are asked" in asked(capsys, "localhost")[1]
    assert "window" not in asked(capsys, "example.com:3000")[1]


def test_a_service_that_was_taken_for_a_host_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "for a service write mach: before it" in asked(capsys, "com.apple.trustd.agent")[1]


def test_where_models_disagree_both_sides_are_named_with_what_they_assume(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = asked(capsys, f"127.0.0.2:5432 {OPTIONS}")
    assert status == 1  # INV-1: not all models allow it
    assert "  connect tcp 5432    disputed\n" in text
    assert "denied by line" in text
    assert "(128 models: localhost-exact or localhost-mapped)" in text
    assert "(128 models: localhost-net or localhost-own)" in text


def test_programs_read_stable_keys_and_every_model_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    source = printed(capsys, OPTIONS)
    _, text = asked(capsys, f"[::ffff:127.0.0.1]:30000 --json {OPTIONS}")
    answer = json.loads(text)
    assert list(answer) == ["v", "backend", "target", "allowed", "verdicts", "notes"]
    assert (answer["v"], answer["backend"], answer["allowed"]) == (1, "seatbelt", False)
    for each in answer["verdicts"]:
        assert list(each) == ["question", "verdict", "rules"]
        assert sum(rule["models"] for rule in each["rules"]) == len(list(all_models()))
        for rule in each["rules"]:
            assert list(rule) == ["line", "rule", "filter_line", "filter", "allowed", "models", "where", "why"]
            assert source[rule["line"]].strip() == rule["rule"]
            assert source[rule["filter_line"]].strip() == rule["filter"]


@pytest.mark.parametrize(
    ("rules", "request_"),
    [
        ("(deny network*)", connect("127.0.0.1", 80)),
        ('(allow network-outbound (remote tcp "localhost:80"))', connect("127.0.0.2", 80)),
        ('(allow network-outbound (local tcp "*:80"))', connect("203.0.113.7", 80)),
        ('(allow file-read* (subpath "/tmp"))', file("file-read-data", "/tmp/x")),
        ('(allow file-read-data (subpath "/a")) (deny file-read* (subpath "/a/b"))', file("file-read-data", "/a/b")),
    ],
)
def test_the_verdict_is_that_of_the_evaluator(rules: str, request_: object) -> None:
    text = f"(version 1)\n(deny default)\n{rules}\n"
    (found,) = explained(text, [("it", request_)])  # type: ignore[list-item]
    profile = load(text)
    expected = {
        (True, False): "allowed",
        (False, True): "denied",
        (False, False): DISPUTED,
    }[allowed_under_all(profile, request_), denied_under_all(profile, request_)]  # type: ignore[arg-type]
    assert found.verdict == expected


def test_a_name_says_that_profiles_know_none_and_where_the_policy_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = asked(capsys, "example.com --allow-domain example.com")
    assert "a profile knows no names" in text
    assert "`netsandbox explain` without --backend" in text


def test_a_program_of_the_system_is_told_to_run_without_the_library() -> None:
    assert questions("/usr/bin/true", Policy())[1] == [SYSTEM, UNPROVEN]
    assert questions("/opt/homebrew/bin/node", Policy())[1] == [UNPROVEN]


def test_no_verdict_goes_without_saying_that_no_mac_gave_it(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("example.com", "localhost:80", "/usr", "mach:x"):
        assert "not by a Mac" in asked(capsys, word)[1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (SEATBELT, "needs a host, a path or mach:SERVICE"),
        (f"{SEATBELT} mach:", "names no service"),
        (f"{SEATBELT} 'mach:a b'", "names no service"),
        (f"{SEATBELT} a..b", "write a host"),
        (f"{SEATBELT} src/main.py", "is no host; for a file write ./src/main.py"),
        (f"{SEATBELT} .env", "is no host; for a file write ./.env"),
        (f"{SEATBELT} 3000", "names no host; for a port of this machine write localhost:3000"),
        (f"{SEATBELT} :3000", "names no host; for a port of this machine write localhost:3000"),
        (f"{SEATBELT} a.test --network-strategy isolate", "isolate does not exist on macOS"),
        (f"{SEATBELT} a.test --connect-host 5353", "a resolver's"),
        ("--backend magic a.test", "unknown backend"),
        ("a.test --connect-host 5432", "--connect-host changes nothing in a policy"),
    ],
)
def test_a_mistake_is_an_error_and_not_a_verdict(line: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as error:
        explain.main(shlex.split(line))
    assert error.value.status == 2


def test_the_backend_of_linux_is_what_explain_asks_anyway(capsys: pytest.CaptureFixture[str]) -> None:
    explain.main(["a.test"])
    plain = capsys.readouterr().out
    explain.main(["a.test", "--backend", "namespaces"])
    assert capsys.readouterr().out == plain


@given(st.text(max_size=40) | st.text(max_size=40).map("/".__add__) | st.text(max_size=40).map("mach:".__add__))
def test_any_word_is_asked_about_or_a_usage_error(word: str) -> None:
    try:
        found, notes = questions(word, Policy())
    except UsageError:
        return
    assert found
    assert notes
