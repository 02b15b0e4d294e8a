"""Which option opens a refused file, and which refusals are not told."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.file_denials import hint_for, is_quiet, is_secret, opened_path, option_for, shell_path
from netsandbox.policy.file_rules import is_within

HOME = "/h/ann"
PATHS = st.lists(st.text(min_size=1).filter(lambda name: "/" not in name and "\0" not in name), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        (f"{HOME}/Documents/plan.md", f"{HOME}/Documents"),
        (f"{HOME}/other/src/a/b.c", f"{HOME}/other/src/a"),
        (f"{HOME}/.npmrc", f"{HOME}/.npmrc"),
        (f"{HOME}/.ssh/id_rsa", f"{HOME}/.ssh/id_rsa"),
        (f"{HOME}/.config/thing.toml", f"{HOME}/.config/thing.toml"),
        (f"{HOME}/.config/tool/thing.toml", f"{HOME}/.config/tool"),
        ("/srv/data.db", "/srv/data.db"),
        ("/srv/shop/data.db", "/srv/shop"),
        ("/h/bob", "/h/bob"),
        ("/data", "/data"),
    ],
)
def test_the_folder_is_proposed_unless_it_shows_too_much(path: str, opened: str) -> None:
    assert opened_path(path, HOME) == opened


def test_reading_and_writing_have_their_options() -> None:
    assert option_for(f"{HOME}/a/b", "read", HOME) == ("--allow-read", f"{HOME}/a")
    assert option_for(f"{HOME}/a/b", "execute", HOME)[0] == "--allow-read"
    for operation in ("change", "make", "folder"):
        assert option_for(f"{HOME}/a/b", operation, HOME) == ("--allow-write", f"{HOME}/a")
    assert hint_for(f"{HOME}/a b/c", "read", HOME) == "--allow-read '/h/ann/a b'"
    assert hint_for(f"{HOME}/a/c", "read", HOME) == "--allow-read ~/a"


@given(PATHS)
def test_an_option_never_opens_the_home_or_a_folder_above_it(names: list[str]) -> None:
    for base in ("", HOME):
        opened = opened_path(f"{base}/{'/'.join(names)}", HOME)
        assert not is_within(HOME, opened) or f"{base}/{'/'.join(names)}" == opened


@given(PATHS)
def test_a_shell_reads_the_path_back(names: list[str]) -> None:
    path = f"{HOME}/{'/'.join(names)}"
    (read,) = shlex.split(shell_path(path, HOME))
    assert read in (path, f"~{path[len(HOME) :]}")


def test_secrets_are_known() -> None:
    assert is_secret(f"{HOME}/.ssh/id_rsa", HOME)
    assert not is_secret(f"{HOME}/.sshd/x", HOME)


def test_start_up_files_and_bytecode_are_quiet_and_nothing_else() -> None:
    for quiet in (f"{HOME}/.bashrc", f"{HOME}/.zshrc", "/usr/lib/python3/__pycache__/a.pyc", f"{HOME}/.config/fish/x"):
        assert is_quiet(quiet, HOME)
    for told in (f"{HOME}/.npmrc", f"{HOME}/code/.bashrc", f"{HOME}/.bashrc.d/x", f"{HOME}/Documents/plan.md"):
        assert not is_quiet(told, HOME)


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        (f"{HOME}/.npmrc", "read"),
        (f"{HOME}/.m2/settings.xml", "read"),
        ("/var/lib/sss/mc/passwd", "read"),
        ("/run/user/1000/x", "read"),
        ("/var/cache/man/cat1/x", "make"),
    ],
)
def test_what_a_program_only_tries_is_told_if_the_command_fails(path: str, operation: str) -> None:
    assert is_quiet(path, HOME, operation, succeeded=True)
    assert not is_quiet(path, HOME, operation)


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        (f"{HOME}/.npmrc", "make"),
        (f"{HOME}/.npmrc/x", "read"),
        (f"{HOME}/.ssh/id_rsa", "read"),
        (f"{HOME}/.aws/credentials", "read"),
        (f"{HOME}/.claude/.credentials.json", "read"),
        (f"{HOME}/Documents/plan.md", "read"),
        ("/var/lib/x", "make"),
        ("/variable/x", "read"),
        ("/run/tool", "execute"),
        ("/home/bob/.npmrc", "read"),
    ],
)
def test_other_refusals_are_told_though_the_command_succeeds(path: str, operation: str) -> None:
    assert not is_quiet(path, HOME, operation, succeeded=True)
