"""What is told about the rules for files before a command runs: one line each, with what it means and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.cli.file_notices import file_view_lines, rule_lines, secrets_in, wide_lines
from netsandbox.cli.notices import shown_path
from netsandbox.config.paths import profile_folder
from netsandbox.config.profiles.profile_files import BUILT_IN_FOLDER
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import OPEN, PROJECT, READABLE, FileRules, PathRule, path_rule
from netsandbox.runtime.effective_rules import effective


@pytest.fixture(autouse=True)
def project(home_project: Path) -> Path:
    return home_project


def rules(mode: str = PROJECT, **lists: str) -> FileRules:
    """Lists of `PATH@ORIGIN`, separated by blanks; without an origin it is the option's."""
    made = {}
    for name, texts in lists.items():
        pairs = [text.partition("@")[::2] for text in texts.split()]
        option = f"--{name.replace('_', '-')}"
        made[name] = tuple(
            path_rule(path, origin or option, str(Path.cwd()), lambda: str(Path.home())) for path, origin in pairs
        )
    return FileRules(**made, mode=mode)


def lines(mode: str = PROJECT, *, verbose: bool = False, **lists: str) -> list[str]:
    return rule_lines(effective(rules(mode, **lists)), verbose=verbose)


def test_a_missing_path_says_what_it_will_mean(project: Path) -> None:
    assert lines(allow_read="~/a") == [
        "--allow-read: ~/a is missing, so not shown, even if it appears later; make it first"
    ]
    assert lines(allow_write="~/a") == [
        "--allow-write: ~/a is missing, so not writable, even if it appears later;"
        " end it with / to have a folder made, or make it first"
    ]
    assert lines(allow_write="~/a/") == []  # is made
    assert lines(allow_read="~/project", allow_write="~/project") == []


def test_a_missing_program_is_named_if_programs_are_listed(project: Path) -> None:
    (project / "tool").touch()
    listed = copy_with(rules(allow_execute="tool git no/*"), listed_only=True)
    assert rule_lines(effective(listed), verbose=False) == [
        f"--allow-execute: ~/project/{name} is {what}, so not listed, even if it appears later;"
        " write the path of a program or folder, such as /usr/bin/git"
        for name, what in (("git", "missing"), ("no/*", "matched by nothing"))
    ]
    assert lines(allow_execute="git") == []  # there is no list


def test_missing_paths_of_a_file_share_a_line(project: Path) -> None:
    assert lines(allow_read="~/a@rules.toml:3 ~/b@rules.toml:5 ~/c") == [
        "rules.toml: ~/a (line 3), ~/b (line 5) are missing, so not shown, even if they appear later; make them first",
        "--allow-read: ~/c is missing, so not shown, even if it appears later; make it first",
    ]


def test_on_a_mac_a_rule_holds_for_a_path_that_appears_later(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.cli.file_notices.IS_MACOS", True)
    assert lines(deny_write="hooks", allow_write="~/a") == []
    assert len(lines(deny_write="hooks/*")) == 1


def test_a_missing_deny_is_told_where_the_command_could_make_it(project: Path) -> None:
    assert lines(deny_read="secret") == [
        "--deny-read: ~/project/secret is missing, so not hidden: the command can read what appears there;"
        " make it first"
    ]
    assert lines(deny_write="hooks") == [
        "--deny-write: ~/project/hooks is missing, so not read-only: the command can make it; make it first"
    ]
    assert lines(deny_read="~/elsewhere", deny_write="~/elsewhere") == [
        "--deny-read: ~/elsewhere is missing, so the rule closes nothing; correct it, or leave it out",
        "--deny-write: ~/elsewhere is missing, so the rule closes nothing; correct it, or leave it out",
    ]
    assert lines(deny_read="~/elsewhere@f.toml:1", deny_write="~/elsewhere@f.toml:2") == []  # other machines have it
    (project.parent / "data").mkdir()
    assert len(lines(deny_read="~/data/x", allow_write="~/data")) == 1
    for mode in (READABLE, OPEN):
        assert len(lines(mode, deny_read="~/elsewhere")) == 1


def test_profiles_may_name_what_this_machine_does_not_have(project: Path) -> None:
    assert lines(allow_read=f"~/a@{BUILT_IN_FOLDER}/x.toml:3 ~/b@{profile_folder()}/y.toml:1") == []


def test_wildcards_that_match_nothing_are_told(project: Path) -> None:
    assert lines(allow_read="~/w*/docs") == [
        "--allow-read: ~/w*/docs is matched by nothing, so not shown, even if it appears later; make it first"
    ]
    assert len(lines(deny_read="*.pem")) == 1
    assert lines(deny_read="~/elsewhere/*@f.toml:1") == []
    assert len(lines(deny_read="~/elsewhere/*")) == 1
    (project / "a.pem").touch()
    assert lines(deny_read="*.pem") == []


def test_rules_that_contradict_each_other_are_both_named(project: Path) -> None:
    (project / "x").mkdir()
    assert lines(allow_read="x", deny_read="x@rules.toml:4") == [
        "--allow-read: ~/project/x is denied by rules.toml:4 (~/project/x), which wins; leave one of them out"
    ]
    assert lines(allow_write="x@a.toml:1", deny_write="x@b.toml:2") == [
        "a.toml:1: ~/project/x is denied by b.toml:2 (~/project/x), which wins; leave one of them out"
    ]


def test_a_secret_that_an_option_opens_is_named(project: Path) -> None:
    home = project.parent
    for name in (".ssh", ".config/gh", ".config/nvim"):
        (home / name).mkdir(parents=True)
    assert lines(allow_read="~/.ssh") == ["--allow-read: the command can read ~/.ssh, which may hold secrets"]
    assert lines(allow_write="~/.ssh") == [
        "--allow-write: the command can read and change ~/.ssh, which may hold secrets"
    ]
    assert lines(allow_read="~/.config") == ["--allow-read: the command can read ~/.config/gh, which may hold secrets"]
    assert lines(allow_read="~/.config/nvim ~/project", allow_write="~/.config") == []
    from_file = "~/.ssh@config.toml:3"
    assert lines(allow_read=from_file) == []
    assert lines(allow_read=from_file, verbose=True) == [
        "config.toml:3: the command can read ~/.ssh, which may hold secrets"
    ]


def test_the_places_of_secrets_in_a_path(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project.parent
    (home / ".ssh").mkdir()
    (home / ".ssh/id").touch()
    assert secrets_in(f"{home}/.ssh/id") == [f"{home}/.ssh/id"]
    assert secrets_in(f"{home}/.ssh/absent") == []
    assert secrets_in(str(home)) == secrets_in("/") == secrets_in("/usr") == []
    (home / "moved").mkdir()
    monkeypatch.setenv("GNUPGHOME", f"{home}/moved")
    assert secrets_in(f"{home}/moved") == [f"{home}/moved"]


def test_a_rule_that_shows_every_secret_is_told(project: Path) -> None:
    home = str(project.parent)
    for path in (home, "/", str(project.parent.parent)):
        assert len(wide_lines(FileRules(allow_read=(PathRule(path, "--allow-read"),)))) == 1
    for path in (f"{home}/.ssh", str(project)):
        assert wide_lines(FileRules(allow_read=(PathRule(path, "--allow-read"),))) == []


def test_a_rule_that_opens_the_home_for_writing_is_told_where_it_opens_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    rules = FileRules(allow_write=(PathRule(str(tmp_path), "--allow-write"),))
    (line,) = wide_lines(rules)
    assert line == "--allow-write: ~ lets the command change nearly everything in your home; name what it needs"
    assert wide_lines(copy_with(rules, mode="open")) == []
    assert wide_lines(FileRules(allow_write=(PathRule(f"{tmp_path}/x", "--allow-write"),))) == []


def test_verbose_tells_what_is_hidden_and_confined(project: Path) -> None:
    (project.parent / ".ssh").mkdir()
    hidden, confined = file_view_lines(rules(READABLE, allow_write="."))
    assert hidden.startswith("hidden: ")
    assert hidden.endswith("~/.ssh; --allow-read PATH shows a secret")  # after the system's, if we could read them
    assert confined.startswith("writing is confined to /dev, ")
    assert file_view_lines(rules(OPEN)) == [hidden]


def test_verbose_tells_what_a_closed_session_sees(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data", "out", ".npm"):
        (project.parent / name).mkdir()
    assert file_view_lines(rules(allow_read="~/data ~/absent", allow_write="~/out", caches="~/.npm")) == [
        "files: system and toolchains, a private home; writable ~/project, and ~/out, shown ~/data, cached ~/.npm;"
        " `--dry-run` lists all"
    ]
    assert file_view_lines(rules(), "broker") == ["files: system and toolchains, a private home; writable ~/project"]
    monkeypatch.chdir(project.parent)
    assert "writable no project" in file_view_lines(rules())[0]


def test_a_path_is_told_without_anything_that_a_terminal_obeys(project: Path) -> None:
    assert shown_path(f"{project.parent}/a\x1b[2J") == "~/a\\x1b[2J"
    (line,) = lines(allow_read="~/a\x1b[2J")
    assert "\x1b" not in line
