"""A path that a failed command names, and that only the host sees, gets a line with the option that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.api.sandbox import file_rules
from netsandbox.cli.unseen_paths import MAX_PATHS, unseen_lines
from netsandbox.policy.file_rules import READABLE, FileRules


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside the project, in the user's home."""
    home = tmp_path.resolve() / "home"
    for name in ("work/.git", "other.git"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    return home / "other.git"


def told(*words: str, rules: FileRules = FileRules(), known: tuple[str, ...] = ()) -> list[str]:  # noqa: B008 (frozen)
    return unseen_lines(words, rules, {}, known)


@pytest.mark.parametrize("word", ["../other.git", "{0}", "--git-dir={0}", "--git-dir=../other.git"])
def test_a_path_beside_the_project_is_named_with_its_option(other: Path, word: str) -> None:
    expected = "~/other.git exists, but this session does not see it; show it with --allow-read ~/other.git"
    assert told("clone", word.format(other)) == [expected]


def test_what_the_session_saw_or_nobody_has_is_no_news(other: Path) -> None:
    assert told(".", str(other.parent / "work"), "/usr/bin", "../none", "x/y", "--", "-C", "a=b", "") == []
    assert told(str(other), rules=file_rules(allow_read=[str(other)])) == []
    assert told(str(other), rules=FileRules(mode=READABLE)) == []
    assert told(str(other), known=(f"{other}/HEAD",)) == []


def test_the_user_s_own_rule_is_named(other: Path) -> None:
    (line,) = told(str(other), rules=file_rules(deny_read=[str(other)]))
    assert "remove deny_read ~/other.git" in line
    assert "--allow-read" not in line


def test_a_link_that_the_command_made_advises_nothing(other: Path) -> None:
    (other.parent / ".ssh").mkdir()
    Path("link").symlink_to(other.parent / ".ssh")
    assert told(str(Path("link").absolute()), f"{Path('link').absolute()}/../.ssh") == []
    assert told("../.ssh") == [], "no line advises a private key"


def test_few_lines_and_never_the_whole_home(other: Path) -> None:
    assert told(str(other.parent), "..") == []
    many = [other.parent / name for name in "abcdef"]
    for path in many:
        path.mkdir()
    assert len(told(*map(str, many))) == MAX_PATHS
