"""`netsandbox explain PATH`: what, why, and the option."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from netsandbox.cli import explain
from netsandbox.cli.explain_path import is_path
from netsandbox.paths import PACKAGE

WORK = "~/work"  # the working folder of a test, as messages show it

pytestmark = pytest.mark.usefixtures("no_session")


@pytest.fixture
def no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(os.path.realpath(tmp_path)) / "home"
    for name in ("work", "Documents", ".ssh"):
        (home / name).mkdir(parents=True)
    (home / "Documents/plan.md").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    return home


def test_a_file_that_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["~/Documents/plan.md"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "~/Documents/plan.md"
    assert lines[1].startswith("  read         denied   the home inside is private")
    assert lines[2].strip() == "to allow it: --allow-read ~/Documents/plan.md"
    assert lines[4].strip() == "to allow it: --allow-write ~/Documents/plan.md"


def test_a_missing_file_is_made_in_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["~/Documents/new"]) == 1
    assert capsys.readouterr().out.splitlines()[4].strip() == "to allow it: --allow-write ~/Documents"


def test_the_named_option_turns_the_answer(capsys: pytest.CaptureFixture[str], no_session: Path) -> None:
    assert explain.main(["--allow-read", f"{no_session}/Documents", "~/Documents/plan.md", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["read"] == {"allowed": True, "change": None}
    assert found["write"] == {"allowed": False, "change": "--allow-write ~/Documents/plan.md"}


@pytest.mark.parametrize("word", [".", "./new", "../work/new", ".hidden"])
def test_the_project(capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert explain.main([word]) == 0
    assert "write        allowed" in capsys.readouterr().out


def test_too_much_and_secrets_have_other_advice(capsys: pytest.CaptureFixture[str]) -> None:
    explain.main(["~"])
    shown = capsys.readouterr().out
    assert "name the folders in it, or use --files readable" in shown
    assert "name the folders in it, or use --files open" in shown
    explain.main(["~/.ssh"])
    shown = capsys.readouterr().out
    assert "--allow-read ~/.ssh" not in shown
    assert "private keys stay closed; use your agent with the profile git-ssh" in shown
    assert "a place of secrets" in shown
    explain.main(["/var/tmp/x"])
    assert "--share-tmp" in capsys.readouterr().out
    explain.main([PACKAGE])
    assert "no option does, because it belongs to netsandbox" in capsys.readouterr().out


def test_a_rule_that_denies_is_named(capsys: pytest.CaptureFixture[str], no_session: Path) -> None:
    (no_session / "work/keep").mkdir()
    assert explain.main(["--deny-write", "keep", "keep/x"]) == 0
    shown = capsys.readouterr().out
    assert f"write        denied   --deny-write {WORK}/keep keeps it as it is\n" in shown
    assert f"to allow it: leave out --deny-write {WORK}/keep\n" in shown
    assert explain.main(["--deny-read", "keep", "./keep/x"]) == 1
    shown = capsys.readouterr().out
    assert f"read         denied   --deny-read {WORK}/keep hides it\n" in shown
    assert "--allow-" not in shown


@pytest.mark.parametrize(
    ("word", "note"),
    [
        ("~/missing", "if it appears, a session still does not see it: a rule holds for what exists"),
        ("./missing", "a session sees it as soon as it appears, and may make it"),
        ("/usr/missing", "a session sees it as soon as it appears"),
        (
            "/tmp/missing",
            "if it appears, a session still does not see it: it has a folder of its own",
        ),
    ],
)
def test_a_missing_file_says_what_happens_if_it_appears(
    capsys: pytest.CaptureFixture[str], word: str, note: str
) -> None:
    explain.main([word])
    assert f"  note: there is no such file now; {note}" in capsys.readouterr().out


def test_what_is_written_to_the_home_stays_inside(capsys: pytest.CaptureFixture[str]) -> None:
    explain.main(["~/new"])
    shown = capsys.readouterr().out
    assert "write        denied   what a session writes there stays in its private home" in shown


def test_a_host_with_the_name_of_a_file_is_explained_with_the_way_to_the_file(
    capsys: pytest.CaptureFixture[str], no_session: Path
) -> None:
    for name in ("package.json", "a b"):
        (no_session / "work" / name).write_text("")
    note = "note: this is about the host; for the file of this name write ./package.json"
    assert explain.main(["package.json"]) == 1
    assert note in capsys.readouterr().out
    assert explain.main(["other.json"]) == 1
    assert "note" not in capsys.readouterr().out
    assert explain.main(["a b"]) == 0  # no host has this name
    assert "  read         allowed" in capsys.readouterr().out


def test_a_path_without_a_dot_or_a_slash_in_front_is_one_if_it_exists(no_session: Path) -> None:
    (no_session / "work/src").mkdir()
    assert is_path("src/new")
    assert not is_path("src")  # a host
    assert not is_path("src:80/x")


@pytest.mark.parametrize(
    "word", ["example.com", "example.com/a", "example.com:443", "[::1]", "https://example.com/a", "*.example.com"]
)
def test_a_host_is_no_path(word: str) -> None:
    assert not is_path(word)


@pytest.mark.parametrize(
    ("mode", "change"),
    [
        (stat.S_IFCHR, "to allow it: --allow-device /dev/gone"),
        (stat.S_IFBLK, "to allow it: no option should, because a program that reads a disk reads every file on it"),
        (stat.S_IFDIR, None),
    ],
)
def test_a_device_has_an_option_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mode: int, change: str | None
) -> None:
    real = os.stat

    def found(path: object, *rest: object, **more: object) -> object:
        return os.stat_result((mode, *(0,) * 9)) if path == "/dev/gone" else real(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", found)
    assert explain.main(["/dev/gone"]) == 1
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line.startswith("to allow it")] == ([change] * 2 if change else [])
