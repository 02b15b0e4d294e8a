"""What options and files say about files, together, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.cli import explain, run
from netsandbox.cli.notices import file_view_lines, shown_path, wide_read_lines
from netsandbox.cli.run_options import read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.option_parser import parse
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import file


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home" / "project"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


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


def test_an_empty_list_confines_and_no_list_does_not(project: Path) -> None:
    rules = project / "rules.toml"
    rules.write_text("[filesystem]\nallow_write = []\n")
    assert files("--config", str(rules)).allow_write == ()
    rules.write_text("[filesystem]\nallow_read = []\n")
    assert files("--config", str(rules)).allow_write is None
    assert files() == FileRules()


def test_an_untrusted_project_hides_and_confines_but_opens_nothing(project: Path) -> None:
    own = project / ".netsandbox.toml"
    own.write_text(
        '[filesystem]\nallow_read = ["~/.ssh"]\nallow_write = []\ndeny_read = ["x"]\nallow_execute = ["y"]\n'
    )
    found = files()
    assert (found.allow_read, found.allow_write, found.allow_execute) == ((), (), ())
    assert paths(found.deny_read) == [(f"{project}/x", f"{own}:4")]
    own.write_text('[filesystem]\nallow_write = ["/"]\n')
    assert files().allow_write is None


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


def test_what_an_option_allows_must_be_there(project: Path) -> None:
    for option in ("--allow-read", "--allow-write"):
        with pytest.raises(UsageError, match=f"^{option}: .* does not exist"):
            files(option, "absent")
    assert paths(files("--allow-write", "absent/").allow_write) == [(f"{project}/absent", "--allow-write")]  # is made
    assert paths(files("--deny-read", "absent").deny_read) == [(f"{project}/absent", "--deny-read")]


def test_one_word_that_shows_every_secret_is_told(project: Path) -> None:
    home = str(project.parent)
    for path in (home, "/", str(project.parent.parent)):
        assert wide_read_lines(FileRules(allow_read=(PathRule(path, "--allow-read"),)))
    for path in (f"{home}/.ssh", str(project)):
        assert wide_read_lines(FileRules(allow_read=(PathRule(path, "--allow-read"),))) == []


def test_what_is_hidden_confined_or_missing_is_told(project: Path) -> None:
    (project.parent / ".ssh").mkdir()
    rules = FileRules(
        allow_read=(PathRule("/absent/read", "rules.toml:2"),),
        allow_write=(
            PathRule("/absent", "rules.toml:3"),
            PathRule(str(project), "rules.toml:4"),
            PathRule(f"{project}/b", "rules.toml:5"),
        ),
        deny_read=(PathRule("/absent/denied", "rules.toml:6"),),
    )
    hidden, confined, missing = file_view_lines(rules)
    assert hidden == "hidden: ~/.ssh; --allow-read PATH shows a secret"
    assert confined.startswith("writing is confined to /dev, /proc")
    assert missing == (
        "rules.toml: to write, but missing: /absent (line 3), ~/project/b (line 5);"
        " make it first if the command needs it"
    )


def test_a_path_is_told_without_anything_that_a_terminal_obeys(project: Path) -> None:
    assert shown_path(f"{project.parent}/a\x1b[2J") == "~/a\\x1b[2J"


def test_the_whole_policy_shows_the_rules(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["--no-config", "--deny-read", "/a", "--allow-write", "."]) == 0
    told = capsys.readouterr().out
    assert "/a                               hidden           --deny-read\n" in told
    assert f"{project}" in told
    assert explain.main(["--no-config"]) == 0
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
