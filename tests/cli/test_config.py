"""`netsandbox config`: what the files say together, where it comes from, and whether they can be used."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from netsandbox.cli import config as command
from netsandbox.config.key_docs import schema
from netsandbox.errors import UsageError


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The user's and the project's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "netsandbox").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    user, project = tmp_path / "config" / "netsandbox" / "config.toml", tmp_path / "project" / ".netsandbox.toml"
    user.write_text('[network]\nallow_domains = ["u.test"]\n')
    project.write_text("[network]\nproxy_env = false\ndeny_domains = [\n 'p.test']\nallow_domains = ['x.test']\n")
    return user, project


def test_show_names_the_line_of_every_value(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    user, project = files
    assert command.main(["show"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines() == [
        "[network]",
        "allow_domains = [",
        f'    "u.test",  # {user}:2',
        "]",
        "deny_domains = [",
        f'    "p.test",  # {project}:4',
        "]",
        f"proxy_env = false  # {project}:2",
        f"# ignored until you run `netsandbox trust`: network.allow_domains  # {project}:5",
    ]
    assert tomllib.loads(shown) == {
        "network": {"allow_domains": ["u.test"], "deny_domains": ["p.test"], "proxy_env": False}
    }


def test_show_for_programs(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    user, project = files
    assert command.main(["show", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"table": "network", "key": "allow_domains", "value": "u.test", "origin": f"{user}:2"} in told["values"]
    assert told["ignored"] == [
        {"table": "network", "key": "allow_domains", "value": "x.test", "origin": f"{project}:5"}
    ]


def test_show_names_the_line_of_an_empty_list(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    user, project = files
    user.write_text("[localhost]\npublish = []\n")
    project.write_text("[filesystem]\nallow_write = []\n")
    assert command.main(["show"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *("[filesystem]", f"allow_write = []  # {project}:2", ""),
        *("[localhost]", f"publish = []  # {user}:2"),
    ]
    user.write_text("[filesystem]\nallow_write = ['/opt']\n")
    assert command.main(["show"]) == 0
    shown = ["allow_write = [", f'    "/opt",  # {user}:2', f"    # an empty list: {project}:2", "]"]
    assert capsys.readouterr().out.splitlines()[1:] == shown
    assert command.main(["show", "--json"]) == 0
    said = {"table": "filesystem", "key": "allow_write", "value": [], "origin": f"{project}:2"}
    assert said in json.loads(capsys.readouterr().out)["values"]


def test_show_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert command.main(["show"]) == 0
    assert capsys.readouterr().out == "# no file sets anything; the defaults apply: nothing leaves\n"
    assert command.main(["validate"]) == 0
    assert capsys.readouterr().out == "there is no configuration\n"


def test_validate_says_which_files_can_be_used(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    user, project = files
    assert command.main(["validate"]) == 0
    assert capsys.readouterr().out == f"{user}: can be used\n{project}: can be used\n"
    project.write_text("[network]\nmode = 'open'\n")
    with pytest.raises(UsageError, match=f"{project}:2: mode 'open' is unknown"):
        command.main(["validate"])
    assert command.main(["validate", str(user)]) == 0


def test_validate_refuses_an_unknown_profile(files: tuple[Path, Path]) -> None:
    user, _ = files
    user.write_text('[sandbox]\nprofiles = ["pyhton"]\n')
    for words in (["validate"], ["validate", str(user)]):
        with pytest.raises(UsageError, match="unknown profile 'pyhton'; did you mean python"):
            command.main(words)


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == schema()
    assert command.main(["schema", "--path"]) == 0
    assert Path(capsys.readouterr().out.rstrip("\n")).read_text("utf-8") == printed


@pytest.mark.parametrize("words", [[], ["list"], ["show", "x"], ["validate", "a", "b"], ["schema", "x"]])
def test_other_words_are_an_error(words: list[str]) -> None:
    with pytest.raises(UsageError, match="config takes a subcommand"):
        command.main(words)


def test_a_verb_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match=r"'shw' is none; did you mean show\?"):
        command.main(["shw"])
