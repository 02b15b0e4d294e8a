"""What nobody has said yes to is told file by file, with the words to say it."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.untrusted_notice import ignored_lines, shell_word


def test_a_line_a_file_with_what_to_do() -> None:
    assert ignored_lines(
        [
            ("network.allow_domains", "/p/.netsandbox.toml:3"),
            ("shell.set_env", "/p/.netsandbox.toml:5"),
            ("network.allow_domains", "/p/.netsandbox.toml:3"),
            ("evil.test:443", "/p/.npmrc:1"),
        ]
    ) == [
        "/p/.netsandbox.toml would open network.allow_domains, shell.set_env; ignored until you run `netsandbox trust`",
        "/p/.npmrc would open evil.test:443; ignored until you run `netsandbox trust /p/.npmrc`",
    ]


def test_a_hostile_path_is_printed_harmlessly() -> None:
    (line,) = ignored_lines([("x.test:443", "/p\x1b[2J/.npmrc:1")])
    assert line.isprintable()


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_the_words_to_say_it_are_one_word_of_the_shell_whatever_the_folder_is_called(name: str) -> None:
    (line,) = ignored_lines([("x.test:443", f"/p/{name}/.npmrc:1")])
    words = line.partition("; ignored until you run `")[2][:-1]
    assert shlex.split(words) == ["netsandbox", "trust", f"/p/{name}/.npmrc"]


def test_a_path_that_needs_no_quotes_begins_with_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert shell_word("/home/me/.npmrc") == "~/.npmrc"
    assert shell_word("/home/me/a;b/.npmrc") == "'/home/me/a;b/.npmrc'"
