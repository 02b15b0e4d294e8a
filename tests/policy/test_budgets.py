"""Budgets: which texts are one, whom they cover, and that no sequence of charges passes a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.budgets import UNLIMITED, Budgets, parse_budget, parse_budgets


@pytest.mark.parametrize(
    ("text", "host", "limits"),
    [
        ("example.com=10MB", "example.com", (10_000_000, None, None)),
        ("example.com=10MB,up=1MB", "example.com", (10_000_000, 1_000_000, None)),
        ("example.com=up=1MiB, down=2GiB", "example.com", (None, 1 << 20, 2 << 30)),
        ("*.example.com:8443=1.5kB", "example.com", (1500, None, None)),
        ("https://example.com=500B", "example.com", (500, None, None)),
        ("up=1MB", None, (None, 1_000_000, None)),
        ("10MB", None, (10_000_000, None, None)),
        ("10MB,up=1mb", None, (10_000_000, 1_000_000, None)),
        ("1TB", None, (10**12, None, None)),
        (" Down = 3 GB ", None, (None, None, 3 * 10**9)),
        ("git:*=1MB", "git", (1_000_000, None, None)),
        ("0.5KiB", None, (512, None, None)),
    ],
)
def test_one_grammar_with_and_without_a_host(text: str, host: str | None, limits: tuple[int | None, ...]) -> None:
    rule = parse_budget(text, "--budget")
    assert (rule.domain and rule.domain.name, (rule.both, rule.up, rule.down)) == (host, limits)
    assert (rule.text, rule.origin) == (text, "--budget")


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "10", "example.com", "example.com=", "example.com=10", "example.com=MB", "example.com=0MB"),
        *("example.com=-1MB", "example.com=1e3MB", "example.com=10MB,", "example.com=,10MB", "example.com=10MB,20MB"),
        *("up=1MB,up=2MB", "dwon=1MB", "example.com=left=1MB", "example.com=up=down=1MB", "up=0B"),
        *("1,5MB", "10XB", "9999999999999999999999MB", "2000000TB"),
        *("exa mple.com=1MB", "example.com:0=1MB", "192.0.2.7=1MB", "**.example.com except a.example.com=1MB"),
    ],
)
def test_anything_else_is_refused_in_one_line_that_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_budget(text, "file:3")
    line = str(error.value)
    assert line.startswith("file:3: ")
    assert "; " in line
    assert "\n" not in line


@given(st.text(max_size=30))
def test_every_text_is_a_budget_or_a_usage_error(text: str) -> None:
    try:
        rule = parse_budget(text, "--budget")
    except UsageError:
        return
    given_limits = [limit for limit in (rule.both, rule.up, rule.down) if limit is not None]
    assert given_limits
    assert all(0 < limit <= 1 << 60 for limit in given_limits)


def test_a_pattern_covers_names_as_rules_do_and_every_port_unless_it_has_one() -> None:
    rule = parse_budget("*.example.com=1MB", "")
    assert rule.covers("a.example.com", 22)
    assert not rule.covers("example.com", 443)
    assert not rule.covers("a.example.com.test", 443)
    assert parse_budget("example.com:443=1MB", "").covers("example.com", 443)
    assert not parse_budget("example.com:443=1MB", "").covers("example.com", 80)
    assert parse_budget("1MB", "").covers("192.0.2.7", 5432)


def test_without_a_budget_for_a_host_there_is_no_meter() -> None:
    budgets = Budgets(parse_budgets([("example.com=1kB", "")]))
    assert budgets.meter("example.org", 443) is None
    assert budgets.spent("example.org", 443) is None
    assert Budgets(()).meter("example.com", 443) is None


def test_hosts_of_a_pattern_and_connections_share_a_budget() -> None:
    budgets = Budgets(parse_budgets([("*.example.com=1kB,up=600B", "--budget"), ("10kB", "f:1")]))
    first, second = (budgets.meter(f"{name}.example.com", 443) for name in "ab")
    assert first is not None
    assert second is not None
    first.charge_up(600)
    assert (second.left_up(), second.left_down()) == (0, 400)
    assert second.is_spent
    assert second.scarcest.rule.text == "*.example.com=1kB,up=600B"
    other = budgets.meter("example.org", 80)
    assert other is not None
    assert (other.left_up(), other.is_spent) == (9400, False)
    assert budgets.spent("c.example.com", 443) is second.scarcest
    assert budgets.used() == [
        {"budget": "*.example.com=1kB,up=600B", "bytes_up": 600, "bytes_down": 0},
        {"budget": "10kB", "bytes_up": 600, "bytes_down": 0},
    ]


def test_the_advice_names_the_option_the_use_and_the_remedy() -> None:
    budgets = Budgets(parse_budgets([("example.com=up=1500B", "--budget"), ("example.com=1MB", "f.toml:3")]))
    meter = budgets.meter("example.com", 443)
    assert meter is not None
    meter.charge_up(1500)
    assert meter.scarcest.advice == (
        "--budget example.com=up=1500B is used up (1.5 kB up and 0 B down); the user can start the session with a"
        " larger one."
    )
    assert budgets.accounts[1].advice.startswith("the budget of f.toml:3, example.com=1MB is used up")


SPENDING = st.lists(st.tuples(st.booleans(), st.sampled_from(("a.test", "b.test", "c.org")), st.integers(0, 900)))


@given(SPENDING)
def test_charges_within_what_is_left_never_pass_a_limit(spending: list[tuple[bool, str, int]]) -> None:
    texts = ("a.test=1kB,up=300B", "2kB", "*.test=down=700B")
    budgets = Budgets(parse_budgets((text, "") for text in texts))
    passed = {True: 0, False: 0}
    for up, host, wanted in spending:
        meter = budgets.meter(host, 443)
        assert meter is not None
        if up:
            count = min(wanted, meter.left_up())
            meter.charge_up(count)
        else:
            count = min(wanted, meter.left_down())
            meter.charge_down(count)
        passed[up] += count
    assert sum(passed.values()) <= 2000
    for account in budgets.accounts:
        assert min(account.left_up, account.left_down) >= 0
        assert account.up <= (account.rule.up or UNLIMITED)
        assert account.down <= (account.rule.down or UNLIMITED)
        assert account.up + account.down <= (account.rule.both or UNLIMITED)


def test_more_than_the_limit_leaves_nothing_rather_than_less() -> None:
    budgets = Budgets(parse_budgets([("1kB", "")]))
    meter = budgets.meter("a.test", 443)
    assert meter is not None
    meter.charge_down(5000)
    assert (meter.left_up(), meter.left_down(), meter.is_spent) == (0, 0, True)
