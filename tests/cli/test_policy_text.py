"""The policy as people and programs read it: every rule with its ports and origin, and no password."""

from __future__ import annotations

import json

import pytest

from netsandbox.cli.policy_text import labelled, policy_json, policy_lines, without_password
from netsandbox.policy.budgets import parse_budgets
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.inspection import inspection
from netsandbox.policy.policy import Policy
from netsandbox.settings import RunSettings


def test_a_label_stands_before_the_first_line_alone() -> None:
    assert labelled("mode", ["a", "b"]) == ["mode      a", "          b"]
    assert labelled("mode", []) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [("http://me:secret@proxy.test:3128", "http://proxy.test:3128"), ("http://proxy.test", "http://proxy.test")],
)
def test_the_password_of_a_proxy_is_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_lines_and_values_name_every_rule_with_its_ports_and_origin() -> None:
    policy = Policy(["a.test", "b.test:*"], ["c.test"], ["192.0.2.7:5432"])
    text = "\n".join(policy_lines(policy, RunSettings(mode=policy.mode), ["MY_TOKEN"]))
    for rule, ports, origin in (
        ("a.test", "ports 80, 443", "allow_domains"),
        ("b.test:*", "every port", "allow_domains"),
        ("192.0.2.7:5432", "port 5432", "allow_addresses"),
    ):
        assert any(rule in line and ports in line and origin in line for line in text.splitlines()), (rule, text)
    assert "c.test" in text
    assert "MY_TOKEN" in text
    values = repr(policy_json(policy, RunSettings(mode=policy.mode), ["MY_TOKEN"]))
    assert all(name in values for name in ("a.test", "b.test:*", "c.test", "192.0.2.7:5432", "MY_TOKEN"))


def test_inspected_hosts_and_denied_requests_are_listed() -> None:
    rules = inspection((), [("POST https://a.test/up", "here")], [("b.test", "there")], [("c.test", "--x")])
    policy = Policy(["a.test"], inspection=rules)
    lines = [" ".join(line.split()) for line in policy_lines(policy, RunSettings(mode=policy.mode), [])]
    first = lines.index("inspect POST https://a.test/up denied here")
    assert lines[first + 1 : first + 3] == ["b.test recorded there", "c.test not inspected --x"]
    assert not any(line.startswith("inspect") for line in policy_lines(Policy(), RunSettings(mode="offline"), []))


def test_the_rules_for_files_are_values_too() -> None:
    files = FileRules((PathRule("/a", "--allow-read"),), mode="readable", share_tmp=True)
    values = policy_json(Policy(), RunSettings(files=files), [])["files"]
    assert isinstance(values, dict)
    assert values["allow_read"] == [{"path": "/a", "origin": "--allow-read"}]
    assert (values["mode"], values["share_tmp"], values["deny_read"]) == ("readable", True, [])
    json.dumps(values)


@pytest.mark.parametrize(
    ("mode", "texts"),
    [
        ("project", ("a private home that is kept for it, own temporary folders", "/c  ", "private changes")),
        ("readable", ("everything but the places of secrets", "the working folder, temporary folders and /dev")),
        ("open", ("everything but the places of secrets", "as you may")),
    ],
)
def test_the_lines_say_what_a_mode_shows_and_what_rules_change(mode: str, texts: tuple[str, ...]) -> None:
    rule = (PathRule("/k", "--deny-write"),)
    files = FileRules(deny_write=rule, caches=(PathRule("/c", "f:1"),), mode=mode)
    text = "\n".join(policy_lines(Policy(), RunSettings(files=files), []))
    assert all(each in text for each in (*texts, "read-only        --deny-write"))
    assert ("private changes" in text) is (mode == "project")


def test_a_variable_that_tells_about_the_session_is_not_listed_as_set() -> None:
    settings = RunSettings(set_env=(("A", "1"), ("SANDBOX_MODE", "active")))
    lines = "\n".join(policy_lines(Policy(), settings, []))
    assert "set       A=1\n          SANDBOX_MODE is set by netsandbox, so the value active is ignored\n" in lines


def test_budgets_are_listed_with_their_origin() -> None:
    policy = Policy(["a.test"], budgets=parse_budgets([("a.test=1kB", "--budget"), ("up=1MB", "f.toml:3")]))
    text = policy_lines(policy, RunSettings(mode=policy.mode), [])
    assert [line.split() for line in text if "=1" in line] == [
        ["budget", "a.test=1kB", "bytes", "--budget"],
        ["up=1MB", "bytes", "f.toml:3"],
    ]
    assert policy_json(policy, RunSettings(mode=policy.mode), [])["budgets"] == [
        {"budget": "a.test=1kB", "origin": "--budget"},
        {"budget": "up=1MB", "origin": "f.toml:3"},
    ]
