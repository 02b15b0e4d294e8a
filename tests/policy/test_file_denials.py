"""Which option opens a refused file, and which refusals are not told."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netsandbox.policy.file_denials import (
    KEYS_STAY,
    TOOLS_STAY,
    Advice,
    DenyRules,
    is_quiet,
    is_secret,
    not_advised,
    opened_path,
    removal,
    shell_path,
)
from netsandbox.policy.file_rules import FileRules, PathRule, is_within
from netsandbox.runtime.protection import OwnPaths

HOME = "/h/ann"


def advice_with(hidden: tuple[str, ...] = (), read_only: tuple[str, ...] = ()) -> Advice:
    return Advice(HOME, str, lambda: OwnPaths(hidden, read_only))


PATHS = st.lists(st.text(min_size=1).filter(lambda name: "/" not in name and "\0" not in name), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        (f"{HOME}/Documents/plan.md", f"{HOME}/Documents"),
        (f"{HOME}/other/src/a/b.c", f"{HOME}/other/src/a"),
        (f"{HOME}/.npmrc", f"{HOME}/.npmrc"),
        (f"{HOME}/.aws/credentials", f"{HOME}/.aws/credentials"),
        (f"{HOME}/.config/thing.toml", f"{HOME}/.config/thing.toml"),
        (f"{HOME}/.config/tool/thing.toml", f"{HOME}/.config/tool"),
        ("/srv/data.db", "/srv/data.db"),
        ("/srv/shop/data.db", "/srv/shop"),
        ("/h/bob", "/h/bob"),
        ("/data", "/data"),
    ],
)
def test_the_folder_is_proposed_for_several_files_unless_it_shows_too_much(path: str, opened: str) -> None:
    assert opened_path(path, HOME) == opened
    assert opened_path(path, HOME, alone=True) == path
    assert advice_with().option(path, "read", several=True) == ("--allow-read", opened)
    assert advice_with().option(path, "read") == ("--allow-read", path)


def test_reading_and_writing_have_their_options() -> None:
    advice = advice_with()
    assert advice.option(f"{HOME}/a/b", "read") == ("--allow-read", f"{HOME}/a/b")
    assert advice.option(f"{HOME}/a/b", "execute") == ("--allow-read", f"{HOME}/a/b")
    assert advice.option(f"{HOME}/a/b", "change") == ("--allow-write", f"{HOME}/a/b")
    for operation in ("make", "folder"):  # these need the folder
        assert advice.option(f"{HOME}/a/b", operation) == ("--allow-write", f"{HOME}/a")
    assert advice.option("/p/.vscode/x", "change") == ("--allow-write", "/p/.vscode")


def test_a_hint_opens_the_folder_from_its_second_file_on() -> None:
    advice = advice_with()
    assert advice.hint(f"{HOME}/a b/c", "read") == "--allow-read '/h/ann/a b/c'"
    assert advice.hint(f"{HOME}/a/c", "read") == advice.hint(f"{HOME}/a/c", "execute") == "--allow-read ~/a/c"
    assert advice.hint(f"{HOME}/a/c", "change") == "--allow-write ~/a/c"
    assert advice.hint(f"{HOME}/a/d", "read") == "--allow-read ~/a"
    assert advice.hint(f"{HOME}/a/d", "change") == "--allow-write ~/a"
    assert advice.hint(f"{HOME}/a/b/d", "read") == "--allow-read ~/a/b/d"


def test_the_advice_for_a_link_is_where_it_leads() -> None:
    advice = Advice(HOME, lambda path: path.replace("/p/link", f"{HOME}/data"), OwnPaths)
    assert advice.option("/p/link/x", "read") == ("--allow-read", f"{HOME}/data/x")
    assert advice.hint("/p/link/x", "make") == "--allow-write ~/data"


def test_nothing_is_advised_for_what_no_rule_opens() -> None:
    advice = advice_with(hidden=(f"{HOME}/state/own",), read_only=(f"{HOME}/venv",))
    assert advice.option(f"{HOME}/venv/bin/x", "make") is None
    assert advice.option(f"{HOME}/venv/bin/x", "read") == ("--allow-read", f"{HOME}/venv/bin/x")
    assert advice.hint(f"{HOME}/state/own/log", "read") is advice.hint(f"{HOME}/state/own/log", "make") is None
    assert advice.option(f"{HOME}/state/x", "make") == ("--allow-write", f"{HOME}/state/x")  # its folder holds ours
    assert advice.option(f"{HOME}/state/x", "read", several=True) == ("--allow-read", f"{HOME}/state")


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
        (f"{HOME}/.aws/credentials", "read"),
        (f"{HOME}/.claude/.credentials.json", "read"),
        (f"{HOME}/Documents/plan.md", "read"),
        ("/var/lib/x", "make"),
        ("/variable/x", "read"),
        ("/run/tool", "execute"),
        ("/home/other/.npmrc", "read"),
    ],
)
def test_other_refusals_are_told_though_the_command_succeeds(path: str, operation: str) -> None:
    assert not is_quiet(path, HOME, operation, succeeded=True)


def test_no_option_opens_a_file_that_redirects_git() -> None:
    for path in ("/p/.git/commondir", "/p/.git/modules/a/commondir"):
        assert advice_with().option(path, "change") is advice_with().hint(path, "make") is None
        assert is_quiet(path, HOME, "change")
    assert advice_with().option("/p/commondir", "change") is not None
    assert not is_quiet("/p/src/commondir", HOME, "change")
    assert not is_quiet("/p/.git/config", HOME, "change")


def test_the_removal_of_a_rule() -> None:
    assert removal("--deny-write ~/a") == "leave out --deny-write ~/a"
    assert removal("deny_write ~/a (f.toml:3)") == "remove deny_write ~/a (f.toml:3)"


RULES = FileRules(
    deny_read=(PathRule(f"{HOME}/a b", "--deny-read"),),
    deny_write=(PathRule("/srv/keep", f"{HOME}/f.toml:3"), PathRule(f"{HOME}/a b/c", "--deny-write")),
)


@pytest.mark.parametrize(
    ("path", "operation", "rule"),
    [
        (f"{HOME}/a b/c", "read", "--deny-read '/h/ann/a b'"),
        (f"{HOME}/a b/c", "change", "--deny-read '/h/ann/a b'"),  # leaving out the other would not help
        ("/srv/keep/x", "make", "deny_write /srv/keep (~/f.toml:3)"),
        ("/srv/keep/x", "read", None),
        ("/srv/keeper", "make", None),
    ],
)
def test_the_rule_that_denies(path: str, operation: str, rule: str | None) -> None:
    assert DenyRules(RULES, HOME).text_for(path, operation) == rule


@given(PATHS, st.sampled_from(["read", "change"]))
def test_a_rule_denies_what_is_within_it_and_nothing_else(names: list[str], operation: str) -> None:
    path = f"/{'/'.join(names)}"
    own = DenyRules(FileRules(deny_read=(PathRule(path, "--deny-read"),)), HOME)
    assert own.text_for(path, operation) == own.text_for(f"{path}/x", operation) is not None
    assert own.text_for(f"{path}x", operation) is None


KEYS = (
    f"{HOME}/.ssh",
    f"{HOME}/.gnupg",
    f"{HOME}/.ssh/id_ed25519",
    f"{HOME}/.gnupg/private-keys-v1.d/x",
    "/srv/keys/id_rsa",
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(KEYS), PATHS, st.sampled_from(["read", "execute", "change", "make"]), st.booleans())
def test_no_line_advises_a_private_key(key: str, names: list[str], operation: str, several: bool) -> None:
    """Whatever was refused there or beside it, no option opens the key."""
    advice = advice_with()
    assert advice.option(key, operation, several=several) is None
    assert advice.hint(key, operation) is None
    assert not_advised(key, HOME) == KEYS_STAY
    other = f"{HOME}/{'/'.join(names)}"
    option = advice.option(other, operation, several=several)
    if option is not None and HOME in key:
        assert not is_within(key, option[1]), "nor a folder around it"


@pytest.mark.parametrize("name", [".local/bin/words", ".local/share/uv/tools/words", ".cargo/bin/x", ".npm-global/lib"])
def test_no_line_opens_programs_that_the_host_runs_for_writing(name: str) -> None:
    advice, path = advice_with(), f"{HOME}/{name}"
    for operation in ("change", "make"):
        assert advice.option(path, operation) is None
        assert not_advised(path, HOME, operation) == TOOLS_STAY
    assert advice.option(path, "read") == ("--allow-read", path), "the twin: to read them harms nobody"


def test_a_public_key_and_other_files_are_advised() -> None:
    advice = advice_with()
    for path in ("/srv/keys/id_rsa.pub", f"{HOME}/.gnupg/gpg.conf", f"{HOME}/Documents/plan.md"):
        assert advice.option(path, "read") == ("--allow-read", path)


def test_a_key_that_a_command_only_tried_is_not_told() -> None:
    assert is_quiet(f"{HOME}/.ssh/id_rsa", HOME, succeeded=True)
    assert not is_quiet(f"{HOME}/.ssh/id_rsa", HOME)
