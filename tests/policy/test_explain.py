"""What a refusal says, and that the change it names does turn the verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy import reasons
from netsandbox.policy.decision import bad_name
from netsandbox.policy.explain import TEXTS, because, excepting, flag_for, hint
from netsandbox.policy.ip import parse
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain
from netsandbox.policy.verdict import Request, verdict

RULES = {
    "allow_domains": ["example.test", "*.x.test:443"],
    "deny_domains": ["bad.x.test"],
    "allow_addresses": ["192.0.2.0/24:22"],
}


def explained(policy: Policy, host: str, port: int = 443, kind: str = "tcp"):
    return policy.explain(Request(canonical(host), port, kind))


@pytest.mark.parametrize(
    ("host", "port", "change"),
    [
        ("api.example.test", 443, "--allow-domain api.example.test"),
        ("api.example.test", 5432, "--allow-domain api.example.test:5432"),
        ("example.test", 8443, "--allow-domain example.test:8443"),
        ("a.x.test", 80, "--allow-domain a.x.test"),
        ("10.0.0.5", 5432, "--allow-address 10.0.0.5:5432"),
        ("[2001:db8::1]", 443, "--allow-address [2001:db8::1]:443"),
        ("169.254.169.254", 80, "--allow-address 169.254.169.254:80"),
        ("localhost", 5432, "--allow-address 127.0.0.1:5432"),
        ("bad.x.test", 443, "remove bad.x.test from deny_domains"),
        ("dns.google", 443, None),
        ("example.test", 443, None),
    ],
)
def test_the_smallest_change_is_named(host, port, change):
    assert explained(Policy(**RULES), host, port).change == change


def test_the_change_knows_the_policys_own_default_ports():
    assert explained(Policy(["x.test"], default_ports=[443]), "y.test", 80).change == "--allow-domain y.test:80"


def test_a_deny_rule_from_a_file_is_named_with_its_line():
    policy = Policy(["*.x.test"], [parse_domain("bad.x.test", "netsandbox.toml:7", deny=True)])
    assert explained(policy, "bad.x.test").change == "remove bad.x.test from deny_domains (netsandbox.toml:7)"


@pytest.mark.parametrize(
    ("origin", "change"),
    [
        ("", "--allow-domain example.test"),
        ("f.toml:2", "--allow-domain example.test"),
        ("--offline", "--allow-domain example.test without --offline"),
        ("the profile offline", "--allow-domain example.test without the profile offline"),
        ("--localhost", "--allow-domain example.test"),
        ("the profile localhost", "--allow-domain example.test"),
        ("/etc/netsandbox/config.toml:2", None),
    ],
)
def test_what_closes_the_network_is_named_and_the_change_lifts_it(origin, change):
    for kind in ("tcp", "dns"):
        found = explained(Policy(mode="offline", mode_origin=origin), "example.test", kind=kind)
        assert found.change == change
        assert found.because == "the session is offline, so nothing leaves" + (f" ({origin})" if origin else "")
    remedy = f"the user can allow it by starting the session with {change}" if change else "no option allows it"
    assert hint(found.verdict).endswith(f"; {remedy}.")


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("*.x.test", "remove --deny-domain *.x.test, or except the name: '*.x.test except a.x.test'"),
        (
            "*.x.test except b.x.test",
            "remove --deny-domain '*.x.test except b.x.test', or except the name: '*.x.test except b.x.test, a.x.test'",
        ),
        ("a.x.test:* except a.x.test:22", "remove --deny-domain 'a.x.test:* except a.x.test:22'"),
    ],
)
def test_a_wildcard_may_go_or_get_an_exception(rule, change):
    denied = parse_domain(rule, "--deny-domain", deny=True)
    assert explained(Policy(["*.x.test"], [denied]), "a.x.test").change == change
    if "or except" in change:
        wider = change.partition("name: ")[2].strip("'")
        assert explained(Policy(["*.x.test"], [wider]), "a.x.test").verdict.allowed


def test_the_rules_that_except_a_name_are_found():
    policy = Policy((), ["**.x.test except a.x.test:443", "**.x.test", "a.x.test"], mode="online")
    assert [rule.text for rule in excepting(policy, "a.x.test")] == ["**.x.test except a.x.test:443"]
    assert excepting(policy, "b.x.test") == []


def test_the_deciding_rule_is_named_with_its_origin():
    explanation = explained(Policy([parse_domain("*.x.test", "netsandbox.toml:12")]), "a.x.test")
    assert explanation.verdict.allowed
    assert explanation.because == "a rule allows it: *.x.test (netsandbox.toml:12)"


@given(
    st.sampled_from(
        [
            "a.test",
            "a.x.test",
            "example.test",
            "10.0.0.5",
            "203.0.113.7",
            "[2001:db8::1]",
            "[::1]",
            "127.0.0.1",
            "169.254.169.254",
            "localhost",
            "x.localhost",
            "8.8.8.8",
            "192.0.2.9",
            "deep.a.b.test",
        ]
    ),
    st.sampled_from([22, 80, 443, 853, 8443, 65535]),
    st.sampled_from(["filtered", "online", None]),
    st.sampled_from(["tcp", "dns"]),
)
def test_the_flag_once_given_turns_the_verdict(host, port, mode, kind):
    request = Request(canonical(host), port, kind)
    verdict = Policy(**RULES, mode=mode).decide(request)
    flag = flag_for(verdict)
    if verdict.allowed:
        assert flag is None
        return
    if flag is None:
        assert (verdict.reason, kind) == (reasons.ADDRESS_LITERAL, "dns")
        return
    option, rule = flag.split(" ")
    wider = {name: list(rules) for name, rules in RULES.items()}
    wider[{"--allow-domain": "allow_domains", "--allow-address": "allow_addresses"}[option]].append(rule)
    turned = Policy(**wider, mode=mode).decide(request)
    assert (turned.allowed, turned.reason) == (True, reasons.RULE)


def test_the_flag_for_a_name_that_leads_inside_names_the_address():
    address = parse("10.0.0.5")
    assert address is not None
    verdict = Policy(["example.test"]).check_address(canonical("example.test"), address, 443)
    assert flag_for(verdict) == "--allow-address 10.0.0.5:443"
    assert "10.0.0.5 is private" in hint(verdict)


@pytest.mark.parametrize("raw", [b"evil\r\n\0.test", "\u2028\u0085.test", b"x" * 100_000])
def test_a_hint_is_one_printable_line_for_any_host(raw):
    text = hint(bad_name(raw, 443))
    assert text.isprintable()
    assert len(text) < 500


def test_a_hint_names_the_cause_and_the_remedy():
    text = hint(Policy(["example.test"]).decide(Request(canonical("evil.test"), 443, "tcp")))
    assert text == (
        "No rule allows this host; the user can allow it by starting the session with --allow-domain evil.test."
    )


def test_a_hint_for_ipv6_keeps_the_brackets():
    denied = Policy(["x.test"]).decide(Request(canonical("[2001:db8::1]"), 443, "tcp"))
    assert "--allow-address [2001:db8::1]:443" in hint(denied)


@pytest.mark.parametrize("reason", sorted(reasons.ALL - reasons.ALLOWING))
def test_every_denial_has_a_hint(reason):
    from netsandbox.policy.verdict import verdict

    text = hint(verdict(reason, "example.test", 443, rule="*.test"))
    assert text.endswith(".")
    assert not text.lower().startswith(reason)  # a word of the log is no sentence


def test_a_hint_about_an_allowed_name_without_address_names_what_to_check():
    from netsandbox.policy.verdict import verdict

    assert hint(verdict(reasons.LOOKUP_FAILED, "example.test", 443)) == (
        "It is allowed, but the name has no address or nobody answered; check the name, the host's own network and"
        " --upstream-dns."
    )


@pytest.mark.parametrize("reason", sorted(reasons.ALL - reasons.ALLOWING))
def test_every_denial_can_be_put_in_words(reason: str) -> None:
    why = TEXTS[reason][0] if reason in TEXTS else because(verdict(reason, "a.test", 443))
    assert why != reason
    assert not why.endswith(".")


def test_a_certificate_of_an_unknown_ca_is_not_explained_as_one_for_another_host() -> None:
    why, advice = TEXTS[reasons.CERTIFICATE]
    assert why.startswith("the certificate of the server was not accepted: its CA is unknown, ")
    assert "add the server's CA" in advice
