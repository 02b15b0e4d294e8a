"""The reader of git's configuration files agrees with git itself, and an edit changes one setting only."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.git_config import Line, header, parse, quoted, values, with_values

SAMPLE = """\
# first
[core]
\tbare = false
\tsharedRepository
[remote "origin"]
\turl = https://example.com/a.git ; where it is
\tfetch = +refs/heads/*:refs/remotes/origin/*
[Branch "Main"] remote = origin
\tmerge = "refs/heads/\\"main"
[alias]
\tlong = one \\
  two
[branch.Old]
x=1
"""

pieces = st.sampled_from(
    (
        *("[a]", '[a "b"]', "[a.B]", '[a "\\\\x\\""]', "\n", "\r\n", " ", "\t", "k", "=", "v", '"', "\\", "\\n"),
        *("\\\n", "#", ";", "k = v\n", "K = \n", "key\n", "[", "]", "b = c d\n", "é", "\ufeff", "0", "-", "."),
    )
)
plain = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"), max_size=12)


def listed_by_git(path: Path) -> list[tuple[str, str | None]] | None:
    done = subprocess.run(["git", "config", "-f", path, "--list", "-z"], capture_output=True, check=False)
    if done.returncode:
        return None
    settings = [item.split("\n", 1) for item in done.stdout.decode().split("\0") if item]
    return [(item[0], item[1] if len(item) > 1 else None) for item in settings]


def listed(text: str) -> list[tuple[str, str | None]] | None:
    try:
        return [(f"{line.prefix}.{line.key}", line.value) for line in parse(text) if line.key]
    except ValueError:
        return None


def test_settings_are_read_with_their_sections() -> None:
    assert listed(SAMPLE) == [
        ("core.bare", "false"),
        ("core.sharedrepository", None),
        ("remote.origin.url", "https://example.com/a.git"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("branch.Main.remote", "origin"),
        ("branch.Main.merge", 'refs/heads/"main'),
        ("alias.long", "one   two"),
        ("branch.old.x", "1"),
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
class TestAgainstGit:
    def test_the_sample(self, tmp_path: Path) -> None:
        file = tmp_path / "config"
        file.write_text(SAMPLE)
        assert listed(SAMPLE) == listed_by_git(file)

    @given(parts=st.lists(pieces, max_size=14))
    def test_what_is_read_is_what_git_reads(self, parts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
        """What git refuses may be refused or not, but nothing is read differently from git."""
        text = "[x]\n" + "".join(parts)
        file = tmp_path_factory.getbasetemp() / "fuzzed"
        file.write_bytes(text.encode())
        ours = listed(text)
        if ours is not None:
            theirs = listed_by_git(file)
            spaces = [(name, None if value is None else value.replace("\t", " ")) for name, value in theirs or ()]
            assert theirs is not None
            assert ours == spaces

    @given(value=plain, name=plain.filter(lambda text: "\n" not in text))
    def test_what_is_written_is_what_git_reads(
        self, value: str, name: str, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        text = with_values(SAMPLE, f"branch.{name}", "description", [value])
        file = tmp_path_factory.getbasetemp() / "written"
        file.write_bytes(text.encode())
        assert (f"branch.{name}.description", value) in (listed_by_git(file) or [])


@given(
    parts=st.lists(pieces, max_size=14),
    prefix=st.sampled_from(["a", "a.b", "a.x.y", "remote.z"]),
    key=st.sampled_from(["k", "b", "new"]),
    wanted=st.lists(plain, max_size=3),
)
def test_an_edit_changes_that_setting_and_nothing_else(
    parts: list[str], prefix: str, key: str, wanted: list[str]
) -> None:
    text = "[x]\n" + "".join(parts)
    try:
        before = values(parse(text))
    except ValueError:
        return
    after = values(parse(with_values(text, prefix, key, wanted)))
    before.pop((prefix, key), None)
    assert after.pop((prefix, key), []) == wanted
    assert after == before


def test_comments_and_other_settings_stay_as_they_are_written() -> None:
    text = with_values(SAMPLE, "remote.origin", "url", ["https://example.com/b.git"])
    assert text == SAMPLE.replace("url = https://example.com/a.git ; where it is", "url = https://example.com/b.git")


def test_a_section_goes_with_its_last_setting() -> None:
    text = '[core]\n\tbare = false\n[branch "x"]\n\tremote = origin\n[user]\n\tname = n\n'
    assert with_values(text, "branch.x", "remote", []) == "[core]\n\tbare = false\n[user]\n\tname = n\n"


def test_headers_and_values_are_quoted() -> None:
    assert header('branch.a"b\\c') == '[branch "a\\"b\\\\c"]'
    assert header("core") == "[core]"
    assert quoted("plain") == "plain"
    assert quoted(" a#b\n") == '" a#b\\n"'


@pytest.mark.parametrize(
    "text", ["k = v\n", "[x\n", '[x "y\n', '[x "y" ]', "[x]\n-k = v", "[x]\nk : v", '[x]\nk = "v\n']
)
def test_what_git_refuses_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r" at | before "):
        parse(text)


@pytest.mark.parametrize(
    ("value", "expected"), [(None, True), ("Yes", True), ("1", True), ("false", False), ("", False)]
)
def test_booleans(value: str | None, expected: bool) -> None:
    assert Line("core", "bare", value, 0, 0).is_true is expected
