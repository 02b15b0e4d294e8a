"""`netsandbox profile lint`: one line a finding, and a status that scripts can use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from netsandbox.cli import profile as command
from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError

CLEAN = '(version 1)\n(deny default)\n(allow file-read* (subpath (param "PROJECT")))\n'


def write(folder: Path, text: str | bytes, name: str = "a.sb") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_of_a_clean_profile_it_says_so_and_has_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = write(tmp_path, CLEAN)
    assert dispatch(["profile", "lint", name]) == 0
    assert capsys.readouterr().out == f"{name}: nothing found\n"
    assert dispatch(["profile", "lint", "node"]) == 0
    assert capsys.readouterr().out == "node: nothing found\n"


def test_findings_are_lines_as_compilers_print_them_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(tmp_path, CLEAN + "(allow lsopen)\n(allow network-bind)\n")
    assert dispatch(["profile", "lint", name]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{name}:4: error: lsopen ")
    assert second.startswith(f"{name}:5: warning: ")


def test_the_same_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = write(tmp_path, CLEAN + "(allow lsopen)\n")
    assert dispatch(["profile", "lint", name, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    (finding,) = told.pop("findings")
    assert told == {"v": 1, "file": name}
    assert finding.pop("text").endswith("do not allow it")
    assert finding == {"line": 4, "severity": "error", "check": "outside", "source": ""}
    assert dispatch(["profile", "lint", write(tmp_path, CLEAN), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.parametrize(
    ("data", "line", "part"),
    [
        (b"(version 1)\n(deny default", 2, "never closed"),
        (b"(version 1)\n\xff", 2, "UTF-8"),
        (b'\n\n"\\x41"', 3, "escape"),
    ],
)
def test_what_is_no_profile_is_status_2_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, line: int, part: str
) -> None:
    name = write(tmp_path, data)
    assert dispatch(["profile", "lint", name]) == 2
    out = capsys.readouterr().out
    assert out.startswith(f"{name}:{line}: error: ")
    assert part in out


def test_parameters_can_be_given_and_otherwise_stand_for_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(tmp_path, CLEAN)
    assert dispatch(["profile", "lint", name, "-D", "PROJECT=/tmp/x=y"]) == 1
    assert '"/tmp/x=y" is not resolved' in capsys.readouterr().out
    assert dispatch(["profile", "lint", name, "--define", "PROJECT=/Users/me/src"]) == 0


def test_imports_come_from_the_system_or_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SYSTEM_PROFILES", (tmp_path / "none", tmp_path / "system"))
    (tmp_path / "system").mkdir()
    write(tmp_path / "system", "(allow lsopen)", "base.sb")
    name = write(tmp_path, CLEAN + '(import "base.sb")\n(import "other.sb")\n(import "../a.sb")\n')
    assert dispatch(["profile", "lint", name]) == 1
    lines = sorted(line.rpartition("/")[2].partition("; ")[0] for line in capsys.readouterr().out.splitlines())
    assert lines[0].startswith('a.sb" is not at hand')
    assert lines[1].startswith('a.sb:4: warning: the rules of "base.sb" differ')
    assert lines[2].startswith('a.sb:5: warning: "other.sb" is not at hand')
    assert lines[3].startswith("base.sb:1: error: lsopen")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "profile takes a verb"),
        (["lint"], "profile takes a verb"),
        (["lint", "a", "b"], "profile takes a verb"),
        (["show"], "profile takes a verb"),
        (["show", "nod"], "unknown profile 'nod'; did you mean node"),
        (["show", "../x"], "unknown profile '../x'"),
        (["list", "node"], "profile takes a verb"),
        (["lint", "--", "a"], "profile takes a verb"),
        (["lint", "/nowhere/a.sb"], "cannot be read: No such file"),
        (["lint", "/"], "cannot be read: Is a directory"),
        (["lint", "a\0b"], "cannot be read: not a file name"),
        (["lint", "--jsn", "a"], "did you mean --json"),
    ],
)
def test_wrong_use_is_one_error_and_status_2(words: list[str], part: str) -> None:
    with pytest.raises(UsageError, match=part) as caught:
        dispatch(["profile", *words])
    assert caught.value.status == 2


@pytest.mark.parametrize("word", ["HOME", "=x"])
def test_a_parameter_needs_a_name_and_a_value(tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match="-D NAME=VALUE"):
        dispatch(["profile", "lint", write(tmp_path, CLEAN), "-D", word])


def test_a_file_too_large_for_a_profile_is_not_read_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_CHARACTERS", 10)
    with pytest.raises(UsageError, match="larger than"):
        dispatch(["profile", "lint", write(tmp_path, CLEAN)])


WARNED = """(version 1)
(deny default)
(allow network-outbound (local ip "localhost:*"))
(allow network-outbound (remote udp "*:53"))
(allow network*)
(allow network-outbound (remote tcp "127.0.0.1:80"))
(allow file-execute (literal "/bin/sh"))
"""


def test_each_mistake_that_profiles_are_known_for_is_told_at_its_line_with_reason_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(tmp_path, WARNED)
    assert dispatch(["profile", "lint", name]) == 1
    told = capsys.readouterr().out
    for line, says in (
        (3, "error: `local` on an outbound rule has been seen to open every way out, .*; use `remote`"),
        (4, r"error: \*:53 reaches any name server, and so anybody, in DNS questions; allow only"),
        (5, "error: an unfiltered network allow opens every way out; allow only"),
        (6, "error: .* the host is neither . nor localhost, which voids the profile; use localhost"),
        (7, "error: there is no operation file-execute, which voids the profile; did you mean process-exec."),
    ):
        assert re.search(f"^{re.escape(name)}:{line}: {says}", told, re.MULTILINE), (line, told)


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
        (RAW.replace("/private/tmp/x", "/tmp/x"), 1, ':1: error: "/tmp/x" is not resolved'),
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
    assert bool(json.loads(capsys.readouterr().out)["findings"]) is bool(said)


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
