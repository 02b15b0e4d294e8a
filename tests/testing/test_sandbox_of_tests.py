"""How options, marks and the configuration of pytest become a sandbox, and denials become text."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from netsandbox.errors import UsageError
from netsandbox.testing import sandbox_of_tests
from netsandbox.testing.sandbox_of_tests import denial_texts, sandbox_of


def line(host: str | None, port: int | None = None, flag: str | None = None, pids: tuple[int, ...] = ()) -> str:
    return json.dumps({"host": host, "port": port, "reason": "not-allowed", "flag": flag, "pids": pids})


def test_a_denial_is_told_once_with_the_option_of_pytest() -> None:
    lines = [line("a.test", 443, "--allow-domain a.test"), line("a.test", 443, "--allow-domain a.test")]
    lines += [line("192.0.2.1", 9, "--allow-address 192.0.2.1:9"), line("\x1b[31m", None, None), line(None)]
    assert denial_texts(lines) == [
        "netsandbox: denied a.test:443 (not-allowed); allow it with --netsandbox-allow a.test",
        "netsandbox: denied 192.0.2.1:9 (not-allowed); allow it with --netsandbox-allow 192.0.2.1:9",
        r"netsandbox: denied \x1b[31m (not-allowed)",
        "netsandbox: denied more than can be listed (not-allowed)",
    ]


def test_an_allowed_host_that_was_not_found_is_not_told_as_a_rule() -> None:
    line = json.dumps({"host": "a.test", "port": 443, "reason": "lookup-failed", "flag": None, "pids": [1]})
    (text,) = denial_texts([line])
    assert text == (
        "netsandbox: a.test:443 is allowed but was not reached (lookup-failed);"
        " check the name and the host's own network"
    )


def test_denials_are_chosen_by_their_processes() -> None:
    lines = [line("a.test", pids=(7, 2)), line("b.test", pids=(8, 3))]
    assert denial_texts(lines, lambda pids: 3 in pids) == ["netsandbox: denied b.test (not-allowed)"]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Config:
    """The configuration of a run in *tmp_path* with an ini file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    ini = "[pytest]\nnetsandbox_allow =\n  a.test\n  192.0.2.0/24:*\nnetsandbox_options = --connect-host 5432\n"
    (tmp_path / "pytest.ini").write_text(ini)
    (tmp_path / "test_x.py").write_text("")
    from _pytest.config import get_config

    made = get_config(["--netsandbox-allow=[2001:db8::1]:80", "--netsandbox-options=--pass-env A_TOKEN", "-q"])
    made.parse(["--netsandbox-allow=[2001:db8::1]:80", "--netsandbox-options=--pass-env A_TOKEN", "-q"])
    return made


def test_files_options_and_marks_add_up(config: pytest.Config, tmp_path: Path) -> None:
    box = sandbox_of(config, ["b.test:8080"], str(tmp_path / "folder"))
    assert [rule.text for rule in box.policy.allow_domains] == ["a.test", "b.test:8080"]
    assert [rule.text for rule in box.policy.allow_addresses] == ["192.0.2.0/24:*", "[2001:db8::1]:80"]
    assert [port.inside for port in box.settings.localhost.connect_host] == [5432]
    assert box.settings.variables[-1].passed == ("A_TOKEN",)
    assert box.settings.denial_file == str(tmp_path / "folder/denials")
    assert box.settings.files.share_tmp
    assert {sys.prefix, sys.base_prefix} <= {rule.path for rule in box.settings.files.allow_read}


def test_what_the_interpreter_loads_is_shown_and_what_is_above_the_project_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "library").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    monkeypatch.setattr(sys, "path", ["", "app", str(tmp_path), str(tmp_path / "library"), str(tmp_path / "missing")])
    found = sandbox_of_tests._interpreter()
    assert str(tmp_path / "library") in found
    assert not {str(tmp_path), str(tmp_path / "missing"), "", "/"} & set(found)


def test_a_command_is_no_option(config: pytest.Config, tmp_path: Path) -> None:
    config.option.netsandbox_options = "-- true"
    with pytest.raises(UsageError, match="leave it out"):
        sandbox_of(config, (), str(tmp_path))


@pytest.mark.parametrize("options", ["--foo", "postgresql --foo"])
def test_the_help_of_run_lists_the_options(config: pytest.Config, tmp_path: Path, options: str) -> None:
    config.option.netsandbox_options = options
    with pytest.raises(UsageError, match="unknown option '--foo'; see `netsandbox run --help`"):
        sandbox_of(config, (), str(tmp_path))


def test_a_word_among_the_options_is_a_profile(config: pytest.Config, tmp_path: Path) -> None:
    config.option.netsandbox_options = "ls"
    with pytest.raises(UsageError, match="unknown profile 'ls'; "):
        sandbox_of(config, (), str(tmp_path))


def test_a_host_that_is_no_rule_is_refused_by_the_name_that_pytest_has(config: pytest.Config, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^@pytest\.mark\.netsandbox\(allow\): 'a b' "):
        sandbox_of(config, ["a b"], str(tmp_path))
    config.option.netsandbox_allow = ["*"]
    advice = "use --netsandbox-options=--online to allow everything"
    with pytest.raises(UsageError, match=rf"^--netsandbox-allow: '\*' matches every name; {advice}$"):
        sandbox_of(config, (), str(tmp_path))


def test_a_secret_is_no_option(config: pytest.Config, tmp_path: Path) -> None:
    config.option.netsandbox_options = "--secret TOKEN@api.example.com"
    with pytest.raises(UsageError, match="netsandbox run --secret"):
        sandbox_of(config, (), str(tmp_path))
