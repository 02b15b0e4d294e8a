"""`netsandbox explain` of a request."""

from __future__ import annotations

import json

import pytest

from netsandbox.cli.explain_request import answer, read_request
from netsandbox.errors import UsageError
from netsandbox.policy.inspection import inspection
from netsandbox.policy.policy import Policy

RULES = inspection([("GET https://api.example.com/v1/**", "here")], [("GET https://api.example.com/v1/x", "there")])
POLICY = Policy(inspection=RULES)


@pytest.mark.parametrize(
    ("text", "status", "wanted"),
    [
        ("GET https://api.example.com/v1/a", 0, "a rule allows it: GET https://api.example.com/v1/** (here)"),
        ("https://api.example.com/v1/a", 0, "allowed"),
        ("POST https://api.example.com/v1/a", 1, "to allow it: --allow-http 'POST https://api.example.com/v1/a'"),
        ("GET https://api.example.com/v1/x", 1, "GET https://api.example.com/v1/x (there)"),
        ("GET https://api.example.com/v1/../x", 1, "could be read in two ways"),
        ("GET https://other.example.com/", 1, "--allow-domain other.example.com"),
    ],
)
def test_the_verdict_its_rule_and_what_changes_it(
    text: str, status: int, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(text, POLICY, as_json=False) == status
    assert wanted in capsys.readouterr().out


def test_a_rule_that_denies_is_named_before_a_host_that_is_not_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    rule = "POST https://example.com/upload"
    rules = inspection([], [(rule, "--deny-http")])
    assert answer(rule, Policy(inspection=rules), as_json=False) == 1
    assert capsys.readouterr().out.splitlines() == [
        rule,
        f"  denied   a rule for requests denies it: {rule} (--deny-http)",
        "           remove that rule to allow it",
        "  note: its host is denied too: the session is offline, so nothing leaves;"
        " --allow-domain example.com allows it",
    ]
    assert answer("GET https://example.com/upload", Policy(inspection=rules), as_json=False) == 1
    assert "to allow it: --allow-domain example.com" in capsys.readouterr().out
    assert answer(rule, Policy(["example.com"], inspection=rules), as_json=False) == 1
    assert "note" not in capsys.readouterr().out
    assert answer(rule, Policy(deny_domains=["example.com"], inspection=rules), as_json=False) == 1
    assert "a deny rule names it: example.com" in capsys.readouterr().out


def test_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer("POST https://api.example.com/v1/a", POLICY, as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["reason"] == "request-not-allowed"


@pytest.mark.parametrize("text", ["", "GET", "GET ftp://a.test/", "GET https://*.a.test/", "a b https://a.test/"])
def test_what_is_no_request_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="; write"):
        read_request(text)
