"""Ways out are found however they are written."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import load


def closed(*rules: str) -> list[tuple[int, str, str]]:
    found = lint(load("\n".join(["(version 1) (deny default)", *rules])))
    return [(finding.line, finding.severity, finding.check) for finding in found]


@pytest.mark.attack(136)
@pytest.mark.parametrize(
    "rule",
    [
        '(allow network-outbound (local ip "localhost:*"))',
        '(allow network* (local ip "localhost:*"))',
        '(allow network-outbound (require-all (local tcp "*:*") (remote tcp "localhost:1")))',
        '(allow network-outbound (require-not (local tcp "*:80")))',
    ],
)
def test_local_on_an_outbound_rule(rule: str) -> None:
    assert (2, "error", "local-outbound") in closed(rule)


def test_local_on_an_outbound_deny_is_a_warning() -> None:
    assert closed('(deny network-outbound (local ip "localhost:*"))') == [(2, "warning", "local-outbound")]


def test_local_on_bind_and_inbound_is_right() -> None:
    assert closed('(allow network-bind network-inbound (local ip "localhost:8000"))') == []


@pytest.mark.attack(135)
@pytest.mark.parametrize(
    ("rule", "check"),
    [
        ("(allow network*)", "unfiltered-network"),
        ("(allow network-outbound)", "unfiltered-network"),
        ('(allow network-outbound (remote udp "*:53"))', "any-host"),
        ('(allow network-outbound (remote tcp "*:443"))', "any-host"),
        ("(allow network-outbound (remote ip))", "any-host"),
        ('(allow network-outbound (remote ip "*:*"))', "any-host"),
        ('(allow network-outbound (remote tcp "localhost:1" "*:80"))', "any-host"),
    ],
)
def test_a_rule_that_opens_every_host_is_found(rule: str, check: str) -> None:
    found = closed(rule)
    assert (2, "error", check) in found
    assert all(check_ in (check, "resolver") for _, _, check_ in found)


@pytest.mark.attack(135)
def test_a_way_out_that_no_form_gives_away_is_found_by_asking() -> None:
    assert (2, "error", "way-out") in closed('(allow network-outbound (require-not (remote ip "localhost:*")))')
    assert (2, "error", "way-out") in closed("(allow network-outbound (socket-type SOCK_STREAM))")


def test_a_way_out_says_which_assumptions_it_takes() -> None:
    rules = '(allow network-outbound (require-not (remote ip "localhost:*")))', "(deny network-outbound)"
    found = lint(load("\n".join(["(version 1) (deny default)", *rules])))
    (text,) = {finding.text for finding in found if finding.check == "way-out" and "any address" in finding.text}
    assert "a rule with a filter beats one without" in text
    assert "nearest operation first, and there rules with a filter first" in text
    assert "the last rule that matches wins" not in text


def test_a_denied_host_is_no_way_out() -> None:
    assert closed("(deny network*)", '(deny network-outbound (remote ip "*:53"))') == []


def test_localhost_needs_its_ports() -> None:
    assert closed('(allow network-outbound (remote tcp "localhost:*"))') == [(2, "warning", "any-local-port")]
    assert closed('(allow network-outbound (remote tcp "localhost:9000"))') == []


@pytest.mark.parametrize(
    "rule",
    [
        "(allow network-bind)",
        '(allow network-inbound (local tcp "*:8000"))',
        '(allow network-bind network-inbound (local ip "*:*"))',
    ],
)
def test_listening_for_other_machines(rule: str) -> None:
    assert closed(rule) == [(2, "warning", "any-listener")]


@pytest.mark.attack(72)
@pytest.mark.parametrize(
    "rule",
    [
        '(allow mach-lookup (global-name "com.apple.dnssd.service"))',
        '(allow mach-lookup (global-name-prefix "com.apple.dns"))',
        '(allow mach-lookup (global-name-regex #"^com[.]apple[.]"))',
        '(allow mach-lookup (global-name "com.apple.mDNSResponder"))',
        '(allow network-outbound (literal "/private/var/run/mDNSResponder"))',
        '(allow network-outbound (subpath "/private/var/run"))',
        '(allow network-outbound (remote unix-socket (literal "/private/var/run/mDNSResponder")))',
        '(allow network-outbound (to unix-socket (subpath "/private/var")))',
        '(allow network-outbound (regex #"mDNSResponder$"))',
    ],
)
def test_a_rule_that_opens_the_resolver_is_found(rule: str) -> None:
    assert (2, "error", "resolver") in closed(rule)


@pytest.mark.attack(72)
def test_an_unresolved_path_to_the_resolver_counts_too() -> None:
    found = closed('(allow network-outbound (literal "/var/run/mDNSResponder"))')
    assert found == [(2, "error", "resolver"), (2, "warning", "unresolved")]


@pytest.mark.attack(72)
def test_a_resolver_that_is_denied_under_every_model_is_no_finding() -> None:
    assert (
        closed(
            '(allow mach-lookup (global-name-prefix "com.apple."))',
            '(deny mach-lookup (global-name "com.apple.dnssd.service" "com.apple.mDNSResponder"))',
            '(deny mach-lookup (global-name "com.apple.trustd.agent"))',
        )
        == []
    )
    found = closed(
        "(allow mach-lookup)", '(deny mach* (global-name "com.apple.dnssd.service" "com.apple.mDNSResponder"))'
    )
    assert (2, "error", "resolver") in found


def test_any_unix_socket() -> None:
    assert (2, "error", "any-socket") in closed("(allow network-outbound (remote unix-socket))")
