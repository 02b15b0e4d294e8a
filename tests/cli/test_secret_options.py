"""Which secrets apply to a session."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("the engine needs seccomp", allow_module_level=True)

from netsandbox_proxy.inspect.installed import INSTALL

from netsandbox.cli import secret_options
from netsandbox.cli.run import OPTIONS
from netsandbox.cli.run_options import policy_of, settings_of
from netsandbox.config.document import layer_of
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.merging import file_settings, merge
from netsandbox.errors import UsageError
from netsandbox.policy.rules import parse_domain
from netsandbox.runtime.option_parser import parse
from netsandbox.runtime.session_secrets import SessionSecrets

VALUE = "ghp_cAnArYvAlUe0123456789"
OFFERED = """
[network]
allow_domains = ["api.example.com"]
[shell]
pass_env = ["TOKEN_X"]
[[secret]]
name = "TOKEN_X"
hosts = ["api.example.com", "other.example.com"]
optional = true
"""


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_X", VALUE)
    monkeypatch.setattr("netsandbox_proxy.inspect.sealing.hide_memory", lambda: None)
    monkeypatch.setattr(secret_options, "_missing_engine", lambda: "")


def found(*words: str, text: str = "") -> tuple[SessionSecrets | None, list[str]]:
    parsed = parse([*words, "--", "true"], OPTIONS, "run")
    file: FileSettings | None = file_settings(merge([layer_of("f.toml", text.encode())])) if text else None
    settings = settings_of(parsed, file)
    return secret_options.session_secrets(parsed, file, settings) if settings.secret_rules else (None, [])


def names(*words: str, text: str = "") -> list[str]:
    secrets = found(*words, text=text)[0]
    return [] if secrets is None else [f"{rule.name}@{host.text}" for rule in secrets.rules for host in rule.hosts]


def test_an_option_makes_its_host_inspected_and_allows_nothing() -> None:
    secrets, lines = found("--secret", "TOKEN_X@api.example.com")
    assert secrets is not None
    assert lines == [
        "no rule allows api.example.com, so TOKEN_X is of no use; allow it with --allow-domain api.example.com"
    ]
    parsed = parse(["--secret", "TOKEN_X@api.example.com", "--", "true"], OPTIONS, "run")
    policy = policy_of(parsed, None, secrets)
    assert policy.inspection is not None
    assert policy.inspection.covers("api.example.com", 443)
    assert policy.allow_domains == ()
    assert found("--secret", "TOKEN_X@api.example.com", "--allow-domain", "api.example.com")[1] == []


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (["api.example.com:8443"], ["TOKEN_X@api.example.com:8443"]),
        (
            ["*.example.com:8443", "api.example.com:9443"],
            ["TOKEN_X@api.example.com:8443", "TOKEN_X@api.example.com:9443"],
        ),
        (["api.example.com:8443", "api.example.com"], ["TOKEN_X@api.example.com"]),
        (["api.example.com:*"], ["TOKEN_X@api.example.com"]),
        (["other.example.com:8443"], ["TOKEN_X@api.example.com"]),
    ],
)
def test_a_host_without_a_port_is_meant_where_its_rules_allow_it(rules: list[str], wanted: list[str]) -> None:
    """A value that went to no port left the placeholder in the request."""
    words = ["--secret", "TOKEN_X@api.example.com", *(word for rule in rules for word in ("--allow-domain", rule))]
    assert names(*words) == wanted
    secrets, lines = found(*words)
    policy = policy_of(parse([*words, "--", "true"], OPTIONS, "run"), None, secrets)
    assert policy.inspection is not None
    is_other = wanted[0].endswith("443")
    assert policy.inspection.covers("api.example.com", 8443) is is_other
    assert (lines == []) is ("other" not in rules[0])
    assert secrets is not None
    assert bool(secrets.messages("api.example.com", 8443)) is is_other
    assert bool(secrets.messages("api.example.com", 443)) is not is_other


def test_a_port_that_was_named_stays() -> None:
    words = ("--secret", "TOKEN_X@api.example.com:443", "--allow-domain", "api.example.com:8443")
    assert names(*words) == ["TOKEN_X@api.example.com:443"]


def test_an_offer_applies_with_a_value_and_an_allowed_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(text=OFFERED) == ["TOKEN_X@api.example.com"]
    assert names("--offline", text=OFFERED) == []
    assert names("--inspect-except", "api.example.com", text=OFFERED) == []
    assert names("--online", text=OFFERED) == ["TOKEN_X@api.example.com", "TOKEN_X@other.example.com"]
    monkeypatch.setenv("TOKEN_X", "short")
    assert names(text=OFFERED) == []
    monkeypatch.delenv("TOKEN_X")
    assert names(text=OFFERED) == []


def test_an_offer_gives_way_to_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base URL that the user set leads the key elsewhere."""
    text = OFFERED + 'unless = ["BASE_URL_X"]\n'
    assert names(text=text) == ["TOKEN_X@api.example.com"]
    monkeypatch.setenv("BASE_URL_X", "https://gateway.example.com/")
    assert names(text=text) == []


def test_without_mitmproxy_an_offer_is_one_note(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = f"inspection needs mitmproxy; run {INSTALL}"
    monkeypatch.setattr(secret_options, "_missing_engine", lambda: missing)
    assert found(text=OFFERED) == (
        None,
        [f"the command gets TOKEN_X; to keep the value outside run {INSTALL}"],
    )
    assert found(text=OFFERED.replace("pass_env", "deny_env")) == (None, [])  # it is withheld anyway
    with pytest.raises(UsageError, match="pip install"):
        found("--secret", "TOKEN_X@api.example.com")


def test_an_option_takes_the_place_of_an_offer() -> None:
    assert names("--secret", "TOKEN_X@b.example.com", text=OFFERED) == ["TOKEN_X@b.example.com"]


def test_one_variable_has_one_source() -> None:
    both = "[[secret]]\nname = 'TOKEN_X'\nhosts = ['b.example.com']\nfile = '/dev/null'\n"
    with pytest.raises(UsageError, match="leave one of them out"):
        found("--secret", "TOKEN_X@a.example.com", text=both)
    places = ("--secret", "TOKEN_X@a.example.com", "--secret", "TOKEN_X@a.example.com,query=key")
    assert len(names(*places)) == 2


def test_a_host_that_is_not_inspected_gets_no_secret() -> None:
    with pytest.raises(UsageError, match="is not inspected"):
        found("--secret", "TOKEN_X@api.example.com", "--inspect-except", "*.example.com")


def test_registries_of_a_tool_are_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[[secret]]\nname = 'TOKEN_X'\nregistries = ['npm']\noptional = true\n"
    parsed = parse(["--", "true"], OPTIONS, "run")
    rules: Any = (
        parse_domain("packages.example.com", "npm (~/.npmrc:1)"),
        parse_domain("npm.example.com", "f.toml:1"),
    )
    file = FileSettings(allow_domains=rules, secrets=file_settings(merge([layer_of("f.toml", text.encode())])).secrets)
    secrets, _ = secret_options.session_secrets(parsed, file, settings_of(parsed, file))
    assert secrets is not None
    assert secrets.hosts == [("packages.example.com:443", "f.toml:1")]


def test_the_program_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the project's is taken, and the folders of the project are no part of its PATH."""
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        folder.mkdir()
        (folder / "get-token").write_bytes(b"#!/bin/sh\n")
        (folder / "get-token").chmod(0o755)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f".:{project}:{home}:/bin")
    path, variables = secret_options.find_program("get-token")
    assert (path, variables["PATH"]) == (str(home / "get-token"), f"{home}:/bin")
    assert secret_options.find_program("./get-token")[0] == f"{home}/./get-token"
    with pytest.raises(UsageError, match="no program is at '/does/not/exist'; check its path"):
        secret_options.find_program("/does/not/exist")
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(UsageError, match="no program 'get-token' is in PATH outside of the project"):
        secret_options.find_program("get-token")
