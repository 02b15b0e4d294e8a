"""`netsandbox profile`: its subcommands, one line for each finding of lint, and a status that scripts can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netsandbox.cli import profile as command
from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError


def test_of_a_profile_without_mistakes_lint_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["profile", "lint", "node"]) == 0
    assert capsys.readouterr().out == "node: nothing found\n"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "profile takes a subcommand"),
        (["lint"], "profile lint takes the name of one profile; write `netsandbox profile lint NAME`"),
        (["lint", "a", "b"], "profile lint takes the name of one profile"),
        (["show"], "profile show takes the name of one profile; write `netsandbox profile show NAME`"),
        (["lst"], "profile takes a subcommand, and 'lst' is none; did you mean list?"),
        (["show", "nod"], "unknown profile 'nod'; did you mean node"),
        (["show", "../x"], "unknown profile '../x'"),
        (["list", "node"], "profile list takes no arguments"),
        (["lint", "--", "a"], "profile lint takes the name of one profile"),
        (["lint", "/nowhere/a.sb"], "unknown profile '/nowhere/a.sb'"),
        (["lint", "a\0b"], "unknown profile"),
        (["lint", "--jsn", "a"], "did you mean --json"),
    ],
)
def test_wrong_use_is_one_error_and_status_2(words: list[str], part: str) -> None:
    with pytest.raises(UsageError, match=part) as caught:
        dispatch(["profile", *words])
    assert caught.value.status == 2


def test_the_help_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["profile", "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: netsandbox profile list")
    assert all(f"--{option.name}" in out for option in command.OPTIONS)


RAW = """\
[seatbelt]
raw = '(deny file-read* (subpath "/private/tmp/x"))'
"""


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (RAW, 0, ""),
        (RAW.replace("/private/tmp/x", "/tmp/x"), 2, ':1: error: "/tmp/x" is not resolved'),
        ("[seatbelt]\nraw = '(allow network*)'\n", 2, ":1: error: raw rules open no network"),
        (RAW.replace("deny", "define"), 2, ":1: error: raw rules begin with (allow or (deny"),
        ("[network]\nmode = 'offline'\n", 0, ""),
    ],
)
def test_the_raw_rules_of_a_profile_by_its_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    status: int,
    said: str,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = tmp_path / "netsandbox" / "profiles" / "shop.toml"
    own.parent.mkdir(parents=True)
    own.write_text(text)
    assert dispatch(["profile", "lint", "shop"]) == status
    shown = capsys.readouterr().out
    assert said in shown
    assert bool(said) is shown.startswith(f"{own}:2")
    assert dispatch(["profile", "lint", "--json", "shop"]) == status
    answer = json.loads(capsys.readouterr().out)
    assert (answer["v"], answer["profile"]) == (1, "shop")
    assert [list(each) for each in answer["findings"]] == [["source", "line", "severity", "text"]] * bool(said)


def test_raw_rules_are_in_the_profile_of_a_mac(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", "/Users/me")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    named = tmp_path / "named.toml"
    named.write_text('[seatbelt]\nraw = \'(deny file-read* (subpath (string-append (param "home") "/x")))\'\n')
    dry = ["run", "--backend", "seatbelt", "--dry-run", "--config", str(named)]
    assert dispatch([*dry, "--", "true"]) == 0
    assert '\n(deny file-read* (subpath "/Users/me/x"))\n' in capsys.readouterr().out
    named.write_text("[seatbelt]\nraw = '(allow network*)'\n")
    with pytest.raises(UsageError, match=r"named\.toml:2: raw, line 1: raw rules open no network"):
        dispatch([*dry, "--", "true"])
