"""The rules for requests of the command line and of files."""

from __future__ import annotations

import pytest

from netsandbox.cli import run
from netsandbox.cli.inspection_options import inspection_of, unreached_lines
from netsandbox.cli.run_options import policy_of, settings_of
from netsandbox.config.file_settings import FileSettings
from netsandbox.errors import UsageError
from netsandbox.policy.inspection import HttpRequest, Inspection
from netsandbox.runtime.option_parser import parse

FILE = FileSettings(
    allow_http=(("GET https://file.test/**", "file:1"),),
    deny_http=(("GET https://option.test/x", "file:2"),),
    inspect=(("seen.test", "file:3"),),
    record_query=True,
)


def made(words: list[str], file: FileSettings | None, opening: FileSettings | None) -> Inspection:
    found = inspection_of(parse(words, run.OPTIONS, "netsandbox run"), file, opening, None, (443,))
    assert found is not None
    return found


def allows(inspection: Inspection, host: str, target: str) -> bool:
    return inspection.decide(host, 443, HttpRequest("https", "GET", target)).allowed


def test_rules_of_files_and_options_add_up() -> None:
    both = made(["--allow-http", "GET https://option.test/**"], FILE, FILE)
    assert both.records_query
    assert allows(both, "file.test", "/a")
    assert allows(both, "option.test", "/a")
    assert not allows(both, "option.test", "/x"), "the file's deny wins"
    assert both.covers("seen.test", 443)


def test_in_a_closed_mode_files_only_deny() -> None:
    closed = made(["--allow-http", "GET https://option.test/**"], FILE, None)
    assert not closed.covers("file.test", 443)
    assert not allows(closed, "option.test", "/x")
    assert allows(closed, "option.test", "/a")


def test_an_option_keeps_a_host_from_inspection_and_records_queries() -> None:
    words = ["--inspect", "*", "--inspect-except", "pinned.test"]
    without = made(words, None, None)
    assert (without.covers("a.test", 443), without.covers("pinned.test", 443)) == (True, False)
    assert (without.records_query, made([*words, "--record-query"], None, None).records_query) == (False, True)


@pytest.mark.parametrize(
    ("host", "excepted"),
    [("a.test", "a.test"), ("a.test", "*.test"), ("a.test:443", "a.test"), ("*.a.test", "*.a.test")],
)
def test_a_host_that_is_to_be_inspected_and_exempted_is_a_mistake(host: str, excepted: str) -> None:
    with pytest.raises(UsageError, match="--inspect-except exempts this host; leave one of them out"):
        made(["--inspect", host, "--inspect-except", excepted], None, None)


@pytest.mark.parametrize(("host", "excepted"), [("*", "a.test"), ("*.test", "a.test"), ("a.test", "a.test:8443")])
def test_an_exception_of_a_wider_host_is_none(host: str, excepted: str) -> None:
    made(["--inspect", host, "--inspect-except", excepted], None, None)


def test_queries_are_recorded_only_where_requests_are_inspected() -> None:
    def settings(*words: str) -> object:
        return settings_of(parse(words, run.OPTIONS, "netsandbox run"), None)

    with pytest.raises(UsageError, match="--record-query records queries of inspected requests, and none is; add"):
        settings("--record-query")
    for words in (("--inspect", "a.test"), ("--allow-http", "GET https://a.test/"), ("--secret", "X@a.test")):
        assert settings("--record-query", *words)


def test_a_host_that_is_inspected_and_not_allowed_gets_a_line() -> None:
    def lines(*words: str) -> list[str]:
        return unreached_lines(policy_of(parse(words, run.OPTIONS, "netsandbox run"), None))

    inspect = ("--inspect", "a.test", "--inspect", "*.b.test", "--inspect", "*")
    line = "no rule allows a.test, so --inspect records nothing there; allow it with --allow-domain a.test"
    assert lines(*inspect) == lines(*inspect, "--allow-domain", "c.test") == [line]
    for rule in (("--online",), ("--allow-domain", "a.test"), ("--allow-http", "GET https://a.test/")):
        assert lines(*inspect, *rule) == []


@pytest.mark.parametrize(
    ("host", "rule"), [("a.test", "a.test:8443"), ("x.a.test", "*.a.test:8443"), ("*.b.test", "*.b.test:8443")]
)
def test_a_host_without_a_port_is_inspected_where_its_rules_allow_it(host: str, rule: str) -> None:
    def inspected(*rules: str) -> tuple[bool, bool]:
        words = ["--inspect", host, *(word for each in rules for word in ("--allow-domain", each))]
        policy = policy_of(parse(words, run.OPTIONS, "netsandbox run"), None)
        assert policy.inspection is not None
        assert unreached_lines(policy) == []
        name = host.replace("*", "x")
        return policy.inspection.covers(name, 443), policy.inspection.covers(name, 8443)

    assert inspected(rule) == (False, True)
    assert inspected(rule.removesuffix(":8443")) == inspected(rule, rule.removesuffix(":8443")) == (True, False)
