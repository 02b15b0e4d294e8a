"""Rules for requests, secrets and budgets from Python, with real sessions: the server counts what reached it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from netsandbox import Policy, RunSettings, Sandbox, request_rules
from netsandbox.api.request_rules import with_secrets
from netsandbox.errors import UsageError
from netsandbox.policy.budgets import parse_budget
from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.world import ALLOWED

VALUE = "ghp_cAnArY0fTheSecret7Zq9Lm2Nx4Bv6"
ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp")


def test_texts_are_those_of_the_command_line() -> None:
    rules = request_rules(
        allow_http=["GET https://a.test/v1/**"],
        deny_http=["POST https://a.test/**"],
        inspect=["b.test"],
        inspect_except=["c.test"],
        record_query=True,
    )
    assert rules is not None
    assert [(rule.text, rule.origin) for rule in rules.allow] == [("GET https://a.test/v1/**", "allow_http")]
    assert [(rule.text, rule.origin) for rule in rules.deny] == [("POST https://a.test/**", "deny_http")]
    assert rules.covers("b.test", 443)
    assert rules.excepts("c.test", 443)
    assert rules.records_query
    assert request_rules() is None


def test_errors_name_parameters_and_not_options() -> None:
    with pytest.raises(
        UsageError, match=r"^allow_http: '\*' matches every name; use mode=\"online\" to allow everything$"
    ):
        request_rules(allow_http=["https://*/a"])
    with pytest.raises(UsageError, match=r"^deny_http: .* is not inspected; leave it or inspect_except out$"):
        request_rules(deny_http=["https://a.test/"], inspect_except=["a.test"])


def test_secrets_add_their_hosts_to_those_that_are_inspected() -> None:
    plain = Policy(["a.test", "b.test"], inspection=request_rules(inspect=["b.test"]))
    policy, rules = with_secrets(plain, ["TOKEN@a.test:8443"])
    assert rules == (("TOKEN@a.test:8443", "secrets"),)
    assert policy.inspection is not None
    assert plain.inspection is not None
    covered = [("a.test", 8443), ("b.test", 443)]
    assert [policy.inspection.covers(*place) for place in covered] == [True, True]
    assert [plain.inspection.covers(*place) for place in covered] == [False, True]
    assert policy.allow_domains == plain.allow_domains
    assert with_secrets(plain, iter(())) == (plain, ())


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["TOKEN"], "secrets: 'TOKEN' is not NAME@HOST"),
        (["TOKEN@a.test,command=gh auth token"], "names a command; run it in your program, and set a variable"),
        (["TOKEN@a.test,registry=npm"], "which only profiles support"),
        (["TOKEN@a.test,optional=yes,unless=OTHER"], "which only profiles support"),
        (["TOKEN@c.test"], "secrets: 'c.test' is not inspected"),
        ("TOKEN@a.test", "secrets: 'TOKEN@a.test' is not a list"),
    ],
)
def test_mistakes_in_secrets_are_errors(texts: list[str], error: str) -> None:
    policy = Policy(["a.test"], inspection=request_rules(inspect=["a.test"], inspect_except=["c.test"]))
    with pytest.raises(UsageError, match=error.replace("(", r"\(")):
        Sandbox(policy, secrets=texts)


def test_mistakes_in_rules_are_errors() -> None:
    with pytest.raises(UsageError, match="allow_http: 'GET' is not a list"):
        request_rules(allow_http="GET")
    with pytest.raises(UsageError, match="deny_http: 'POST'"):
        request_rules(deny_http=["POST"])


def test_budgets_are_texts_or_rules() -> None:
    assert Policy(budgets=["10MB"]).budgets == Policy(budgets=(parse_budget("10MB", "budgets"),)).budgets
    with pytest.raises(UsageError, match="budgets: '10MB' is not a list"):
        Policy(budgets="10MB")
    with pytest.raises(UsageError, match=r"budgets: '5' is not a budget; give a string such as '10MB'"):
        Policy(budgets=[5])  # type: ignore[list-item]


@pytest.mark.usefixtures("user_namespaces")
@ON_LINUX
class TestSessions:
    @pytest.fixture
    def server(self, ca: CertificateAuthority, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpsCanary]:
        monkeypatch.setenv("SSL_CERT_FILE", str(ca.cert))
        with https_canary(ca.issue(ALLOWED)) as server:
            yield server

    @pytest.fixture
    def settings(self, authority: Authority) -> RunSettings:
        authority.answer(ALLOWED, "127.0.0.1")
        host, _, port = authority.address.rpartition(":")
        return RunSettings(upstream_dns=((host, int(port)),))

    def test_only_the_requests_that_rules_allow_reach_the_server(
        self, server: HttpsCanary, settings: RunSettings
    ) -> None:
        url = f"https://{ALLOWED}:{server.port}"
        rules = request_rules(allow_http=[f"GET {url}/v1/**"])
        box = Sandbox(Policy(allow_addresses=[f"127.0.0.1:{server.port}"], inspection=rules), settings)
        done = box.run(["curl", "-sS", f"{url}/v1/a", f"{url}/v2/b"], capture_output=True, text=True)
        assert server.requests == ["GET /v1/a"], done.stderr
        assert [(denial.reason, denial.flag) for denial in done.denied] == [
            ("request-not-allowed", f"--allow-http 'GET {url}/v2/b'")
        ]

    def test_the_server_gets_the_value_and_the_command_a_placeholder(
        self, server: HttpsCanary, settings: RunSettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TOKEN_X", VALUE)
        place = f"{ALLOWED}:{server.port}"
        policy = Policy([place], allow_addresses=[f"127.0.0.1:{server.port}"])
        box = Sandbox(policy, settings, secrets=[f"TOKEN_X@{place}"])
        script = f'echo "$TOKEN_X $1"; curl -sS -o /dev/null -H "Authorization: Bearer $TOKEN_X" https://{place}/'
        done = box.run(["sh", "-c", script, "sh", VALUE], capture_output=True, text=True)
        assert [head["authorization"] for head in server.heads] == [f"Bearer {VALUE}"], done.stderr
        variable, word = done.stdout.split()
        assert variable == word != VALUE
        assert VALUE not in done.stdout + done.stderr

    def test_a_secret_without_a_value_runs_nothing(self, server: HttpsCanary, settings: RunSettings) -> None:
        place = f"{ALLOWED}:{server.port}"
        box = Sandbox(Policy([place]), settings, secrets=[f"TOKEN_X@{place}"])
        with pytest.raises(UsageError, match="the variable TOKEN_X is not set"):
            box.run(["curl", f"https://{place}/"])
        optional = Sandbox(Policy([place]), settings, secrets=[f"TOKEN_X@{place},optional=yes"])
        assert optional.run(["sh", "-c", "echo ${TOKEN_X-none}"], capture_output=True).stdout == b"none\n"

    def test_a_budget_ends_the_connection(self, server: HttpsCanary, settings: RunSettings) -> None:
        server.respond = lambda *request: (200, {}, bytes(300_000))
        place = f"{ALLOWED}:{server.port}"
        policy = Policy([place], allow_addresses=[f"127.0.0.1:{server.port}"], budgets=["100kB"])
        done = Sandbox(policy, settings).run(["curl", "-sSk", f"https://{place}/"], capture_output=True)
        assert done.returncode
        assert 0 < len(done.stdout) <= 100_000
        assert [denial.reason for denial in done.denied] == ["budget"]
