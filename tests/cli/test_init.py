"""`netsandbox init`: a first file that can be used as it is, and no file is lost."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from netsandbox.cli import init
from netsandbox.config.document import layer_of
from netsandbox.errors import UsageError


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project / ".netsandbox.toml"


def test_what_the_projects_files_call_for_is_named_and_what_to_do_next_is_told(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path.parent / "package.json").touch()
    assert init.main([]) == 0
    assert capsys.readouterr().out == (
        f"{path} is written.\n"
        "Next: read it, then `netsandbox trust` puts it into effect; it asks again whenever the file changes.\n"
        "`netsandbox learn -- CMD` adds the hosts and paths that a command needs."
        " `netsandbox explain` shows what holds.\n"
    )
    assert tomllib.loads(path.read_text())["sandbox"] == {"profiles": ["node"]}
    assert "Found: node by package.json." in path.read_text()
    assert "`netsandbox man` has every key." in path.read_text()  # it works after every kind of install


def test_a_project_of_no_known_kind_gets_a_minimal_file(path: Path) -> None:
    assert init.main([]) == 0
    assert tomllib.loads(path.read_text())["sandbox"] == {}


def test_a_file_is_replaced_only_by_force(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"is there already; edit it, or replace it with `netsandbox init --force`"):
        init.main([])
    assert path.read_text() == "mine"
    assert init.main(["--force"]) == 0
    assert path.read_text() == init.first_text({})


def test_every_line_that_is_commented_out_is_a_setting_that_works() -> None:
    """Taken for what they say, the examples make a file that can be used."""
    lines = init.first_text({}).splitlines()
    text = "\n".join(line.removeprefix("# ") if " = [" in line else line for line in lines)
    layer = layer_of("x.toml", text.encode())
    assert {("sandbox", "profiles"), ("network", "deny_domains"), ("localhost", "connect_host")} <= set(layer.values)
    assert len(layer.values) == 9


def test_words_are_no_places(path: Path) -> None:
    with pytest.raises(UsageError, match="init takes no words"):
        init.main(["folder"])
    assert not path.exists()
