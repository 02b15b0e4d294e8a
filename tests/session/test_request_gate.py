"""The gate for requests."""

from __future__ import annotations

from typing import Any

from netsandbox_proxy.contract import Attempt, Grant

from netsandbox.policy.budgets import Budgets, Meter, parse_budgets
from netsandbox.policy.inspection import HttpRequest, inspection
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import verdict
from netsandbox.session.request_gate import judge

HOST = "api.example.com"


class Records:
    def __init__(self, *, writes: bool = True) -> None:
        self.written: list[tuple[str, HttpRequest, str | None]] = []
        self.faults: list[Exception] = []
        self._writes = writes

    def request(self, grant: Grant, number: int, decided: Any, request: HttpRequest, hint: str | None) -> bool:
        self.written.append((decided.reason, request, hint))
        return self._writes

    def fault(self, error: Exception) -> None:
        self.faults.append(error)


def judged(
    records: Records, method: str, target: str, policy: Policy | None = None, meter: Meter | None = None
) -> str | None:
    rules = inspection([(f"GET https://{HOST}/v1/**", "here")])
    grant = Grant(
        Attempt("connect", HOST.encode(), 443, ("", 0)), HOST, (), named=True, verdict=verdict("rule", HOST, 443)
    )
    grant.meter = meter
    asked = HttpRequest("https", method, target)
    found = judge(policy or Policy(inspection=rules), records, grant, 1, asked)  # type: ignore[arg-type]
    return None if found is None else f"{found.reason}: {found.hint}"


def test_an_allowed_request_is_recorded_and_goes_on() -> None:
    """INV-5."""
    records = Records()
    assert judged(records, "GET", "/v1/a?secret") is None
    assert records.written == [("rule", HttpRequest("https", "GET", "/v1/a?secret"), None)]


def test_a_denied_one_names_the_option_that_would_allow_it() -> None:
    records = Records()
    found = judged(records, "PUT", "/v1/a?secret")
    assert found is not None
    assert found.startswith("request-not-allowed: ")
    assert f"--allow-http 'PUT https://{HOST}/v1/a'" in found
    assert "secret" not in found
    assert records.written[0][2] == f"--allow-http 'PUT https://{HOST}/v1/a'"


def test_without_a_record_nothing_goes_on() -> None:
    """INV-1, INV-5."""
    found = judged(Records(writes=False), "GET", "/v1/a")
    assert found is not None
    assert found.startswith("audit-unwritable: ")


def test_a_fault_is_a_refusal() -> None:
    """INV-1."""
    records = Records()
    found = judged(records, "GET", "/v1/a", Policy())
    assert found is not None
    assert found.startswith("internal: ")
    assert records.faults


def test_a_spent_budget_refuses_a_request_that_rules_allow() -> None:
    budgets = Budgets(parse_budgets([("up=1kB", "--budget")]))
    meter = budgets.meter(HOST, 443)
    records = Records()
    assert judged(records, "GET", "/v1/a", meter=meter) is None
    budgets.accounts[0].up = 1000
    found = judged(records, "GET", "/v1/a", meter=meter)
    assert found is not None
    assert found.startswith("budget: --budget up=1kB is used up (1 kB up and 0 B down)")
    assert (judged(records, "PUT", "/v1/a", meter=meter) or "").startswith("request-not-allowed")
    assert [reason for reason, _, _ in records.written] == ["rule", "budget", "request-not-allowed"]
    unwritten = judged(Records(writes=False), "GET", "/v1/a", meter=meter)
    assert (unwritten or "").startswith("audit-unwritable")
