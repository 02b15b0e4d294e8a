"""What options and files say about files, together, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.cli import config, explain, run
from netsandbox.cli.run_options import read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.option_parser import parse
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import file


@pytest.fixture(autouse=True)
def project(home_project: Path) -> Path:
    return home_project


def files(*words: str) -> FileRules:
    parsed = parse(words, run.OPTIONS, "netsandbox run")
    return settings_of(parsed, read_config(parsed)).files


def paths(rules: tuple[PathRule, ...] | None) -> list[tuple[str, str]]:
    return [(rule.path, rule.origin) for rule in rules or ()]


def test_options_come_behind_the_files_word_and_each_has_its_origin(project: Path) -> None:
    rules = project / "rules.toml"
    rules.write_text(
        '[filesystem]\nallow_read = ["~/.ssh"]\nallow_write = [\n  "build",\n]\n'
        'deny_read = ["/a"]\nallow_execute = ["bin"]\n'
    )
    (project / "out").mkdir()
    found = files("--config", str(rules), "--allow-write", "out", "--deny-read", "../b", "--allow-read", ".")
    home = str(project.parent)
    assert paths(found.allow_read) == [(f"{home}/.ssh", f"{rules}:2"), (str(project), "--allow-read")]
    assert paths(found.allow_write) == [(f"{project}/build", f"{rules}:4"), (f"{project}/out", "--allow-write")]
    assert paths(found.deny_read) == [("/a", f"{rules}:6"), (f"{project}/../b", "--deny-read")]
    assert paths(found.allow_execute) == [(f"{project}/bin", f"{rules}:7")]


def test_a_list_opens_nothing_and_no_list_opens_nothing(project: Path) -> None:
    rules = project / "rules.toml"
    rules.write_text("[filesystem]\nallow_write = []\n")
    assert files("--config", str(rules)) == FileRules()
    assert files() == FileRules()
    assert files().mode == "project"


def test_an_untrusted_project_hides_and_confines_but_opens_nothing(project: Path) -> None:
    own = project / ".netsandbox.toml"
    own.write_text(
        '[filesystem]\nmode = "open"\nshare_tmp = true\nallow_read = ["~/.ssh"]\nallow_write = ["/"]\n'
        'cache = ["~/.ssh"]\nallow_execute = ["y"]\ndeny_read = ["x"]\ndeny_write = ["y"]\n'
    )
    found = files()
    assert paths(found.deny_read) == [(f"{project}/x", f"{own}:8")]
    assert paths(found.deny_write) == [(f"{project}/y", f"{own}:9")]
    assert copy_with(found, deny_read=(), deny_write=()) == FileRules()


def test_an_untrusted_project_can_close_what_the_users_file_opens(project: Path) -> None:
    own = project.parent / ".config/netsandbox/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[filesystem]\nmode = "readable"\n')
    assert files().mode == "readable"
    (project / ".netsandbox.toml").write_text('[filesystem]\nmode = "project"\n')
    assert files().mode == "project"
    assert files("--files", "open").mode == "open"


def test_removing_the_last_path_of_a_list_opens_nothing(project: Path) -> None:
    config.main(["add-path", "/srv"])
    assert [rule.path for rule in files().allow_write] == ["/srv"]
    config.main(["remove-path", "/srv"])
    assert files() == FileRules()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('allow_read = "x"', r":2: allow_read has a value of the wrong type"),
        ("deny_read = [\n1]", r":3: deny_read has a value of the wrong type"),
        ('allow_write = ["~you/x"]', r":2: '~you/x' names another user's home"),
        ('allow_write = [""]', r":2: '' is not a path"),
        ('allow_wrte = ["x"]', "did you mean allow_write"),
    ],
)
def test_a_slip_is_an_error_with_file_and_line(project: Path, text: str, message: str) -> None:
    rules = project / "rules.toml"
    rules.write_text(f"[filesystem]\n{text}\n")
    with pytest.raises(UsageError, match=message):
        files("--config", str(rules))


def test_an_option_may_name_what_does_not_exist(project: Path) -> None:
    for option, field in (
        ("--allow-read", "allow_read"),
        ("--allow-write", "allow_write"),
        ("--deny-read", "deny_read"),
    ):
        assert paths(getattr(files(option, "absent"), field)) == [(f"{project}/absent", option)]
    assert files("--allow-write", "absent/").allow_write[0].folder


def test_wildcards_are_kept_for_the_start_of_a_session(project: Path) -> None:
    (rule,) = files("--allow-read", "~/code/*/docs").allow_read
    home = str(project.parent)
    assert (rule.path, rule.path[: rule.wild]) == (f"{home}/code/*/docs", f"{home}/code")
    with pytest.raises(UsageError, match=r"^--deny-read: .* has \*\* or \.\. among wildcards"):
        files("--deny-read", "**/.env")


def test_the_whole_policy_shows_the_rules(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["--no-config", "--deny-read", "/a", "--allow-write", "."]) == 0
    told = capsys.readouterr().out
    assert "/a                               hidden           --deny-read\n" in told
    assert f"{project}" in told
    assert "project: the system" in told
    assert explain.main(["--no-config", "--files", "open"]) == 0
    assert "as you may" in capsys.readouterr().out


def test_a_macs_profile_follows_the_same_rules(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, rules = "/Users/me", project / "rules.toml"
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    rules.write_text(
        '[filesystem]\nallow_read = ["~/.ssh", "~/.aws", "~/data"]\nallow_write = ["~/extra"]\ndeny_read = ["~/.aws"]\n'
        'allow_execute = ["~/tool"]\n'
    )

    def judged(*options: str) -> Profile:
        assert run.main(["--no-config", *options, "--backend", "seatbelt", "--dry-run", "--", "true"]) == 0
        return load(capsys.readouterr().out)

    plain, ruled = judged(), judged("--config", str(rules))
    opened = [("file-read-data", ".ssh/id"), ("file-read-data", "data/x"), ("file-write-create", "extra/x")]
    for operation, name in (*opened, ("process-exec*", "tool/x")):
        assert denied_under_all(plain, file(operation, f"{home}/{name}"))
        assert allowed_under_all(ruled, file(operation, f"{home}/{name}"))
    for name in (".aws/config", ".gnupg/key"):
        assert denied_under_all(ruled, file("file-read-data", f"{home}/{name}"))
    assert denied_under_all(ruled, file("file-write-create", f"{home}/.ssh/x"))
    named, wide = judged("--allow-write", "~/.gnupg"), judged("--allow-write", "~/.config")
    for operation in ("file-read-data", "file-write-create"):
        assert allowed_under_all(named, file(operation, f"{home}/.gnupg/x"))
        assert denied_under_all(wide, file(operation, f"{home}/.config/gh/x"))
        assert allowed_under_all(wide, file(operation, f"{home}/.config/tool/x"))
