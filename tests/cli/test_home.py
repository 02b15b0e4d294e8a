"""`netsandbox home`: what sessions left in the private home, copied out only after it was shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.cli import home as subject
from netsandbox.cli.home import main
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import state_home

Put = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home"
    (folder / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(folder / "work")
    return folder


@pytest.fixture
def put(home: Path) -> Put:
    """A file in the private home of the project."""

    def made(name: str, text: str = "x\n") -> Path:
        path = Path(PrivateFolders(state_home(), str(home / "work")).home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return made


def test_files_are_listed_for_their_project_only(
    put: Put, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(".config/gh/hosts.yml")
    put(".cache/big")
    assert main([]) == 0
    titles, row = capsys.readouterr().out.splitlines()
    assert titles.split() == ["PATH", "BYTES", "CHANGED"]
    assert row.split()[:2] == ["~/.config/gh/hosts.yml", "2"]
    assert main(["list", "--json"]) == 0
    assert [each["path"] for each in json.loads(capsys.readouterr().out)["files"]] == [f"{home}/.config/gh/hosts.yml"]
    (home / "other").mkdir()
    monkeypatch.chdir(home / "other")
    main([])
    assert capsys.readouterr().out == ""


def test_a_file_is_shown_escaped_and_then_copied(put: Put, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(".config/tool.toml", "a\x1b[2J\nb\n")
    assert main(["keep", "~/.config/tool.toml", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert shown.endswith("\nb\n")
    assert "\x1b" not in shown
    copied = home / ".config/tool.toml"
    assert copied.read_text() == "a\x1b[2J\nb\n"
    assert copied.stat().st_mode & 0o777 == 0o600


def test_without_a_yes_nothing_is_copied(put: Put, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(".npmrc")
    assert main(["keep", ".npmrc"]) == 1  # nobody is there to answer
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(subject, "confirm", lambda question: False)
    assert main(["keep", ".npmrc"]) == 1
    assert not (home / ".npmrc").exists()
    monkeypatch.setattr(subject, "confirm", lambda question: True)
    assert main(["keep", ".npmrc"]) == 0
    assert (home / ".npmrc").read_text() == "x\n"


def test_a_file_of_the_user_is_not_replaced(put: Put, home: Path) -> None:
    put(".npmrc", "theirs\n")
    (home / ".npmrc").write_text("mine\n")
    with pytest.raises(NetsandboxError, match="not replaced"):
        main(["keep", ".npmrc", "--yes"])
    assert (home / ".npmrc").read_text() == "mine\n"


def test_a_link_that_a_session_left_leads_nowhere(put: Put, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "secret").write_text("canary-19a")
    inner = put("x").parent
    (inner / "link").symlink_to(home / "secret")
    (inner / "folder").symlink_to(home)
    os.mkfifo(inner / "pipe")
    for name in ("link", "folder/secret", "pipe", "../secret", "none"):
        with pytest.raises((NetsandboxError, UsageError)):
            main(["keep", name, "--yes"])
    assert "canary-19a" not in capsys.readouterr().out


@pytest.mark.parametrize("word", ["/etc/passwd", "~", "~/../x"])
def test_only_paths_of_the_home(home: Path, word: str) -> None:
    with pytest.raises(UsageError):
        main(["keep", word, "--yes"])


def test_clear_removes_it_after_a_yes(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("a/b")
    assert main(["clear"]) == 1
    assert path.exists()
    monkeypatch.setattr(subject, "live_sessions", lambda: [{"name": "shop", "folder": os.getcwd()}])
    with pytest.raises(NetsandboxError, match="stop it first"):
        main(["clear", "--yes"])
    assert path.exists()
    monkeypatch.setattr(subject, "live_sessions", lambda: [{"name": "shop", "folder": "/elsewhere"}])
    assert main(["clear", "--yes"]) == 0
    assert not path.exists()
    assert main(["clear", "--yes"]) == 0


@pytest.mark.parametrize("words", [["keep"], ["keep", "a", "b"], ["remove"], ["clear", "x"]])
def test_other_words_are_mistakes(home: Path, words: list[str]) -> None:
    with pytest.raises(UsageError):
        main(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["keep"], "home keep takes one path; write"),
        (["clear", "x"], "home clear takes no arguments; write"),
        (["kep", "x"], "home 'kep' is not a command; did you mean keep?"),
        (["zzz"], "home 'zzz' is not a command; write `netsandbox home`"),
    ],
)
def test_a_slip_is_answered_with_what_to_write(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        main(words)
    assert str(caught.value).startswith(said)
