"""`netsandbox profile list` and `show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.cli.profile_show import Row, table


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for folder in ("home", "project", "bin", "config/netsandbox/profiles"):
        (tmp_path / folder).mkdir(parents=True)
    npm = tmp_path / "bin" / "npm"
    npm.write_text("#!/bin/sh\necho https://default.test/\n")
    npm.chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert dispatch(["profile", *words]) == 0
    return capsys.readouterr().out


def test_the_table_in_columns() -> None:
    rows = [Row("a", "built in", "", "one", "/a"), Row("long-name", "yours", "package.json", "two\x1b[1m", "/b")]
    assert table(rows) == [
        "NAME       FROM      DETECTED BY   ABOUT",
        "a          built in  -             one",
        "long-name  yours     package.json  two\\x1b[1m",
    ]


def test_list_says_whose_each_is_and_what_is_detected(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "package.json").touch()
    (project / ".sandbox" / "profiles").mkdir(parents=True)
    (project / ".sandbox" / "profiles" / "shop.toml").write_text('[profile]\nabout = "the shop"\n')
    own = tmp_path / "config" / "netsandbox" / "profiles" / "mine.profile.toml"
    own.write_text('[network]\nmode = "offline"\n')
    text = shown(capsys, "list")
    assert "\nnode          built in       package.json  Node.js with npm: its registries\n" in text
    assert "\nshop          the project's  -             the shop\n" in text
    broken = project / ".sandbox" / "profiles" / "broken.toml"
    broken.write_text("[profil]\n")
    assert f"  cannot be used: {broken}:1: unknown table 'profil'; did you mean profile?\n" in shown(capsys, "list")
    told = {each["name"]: each for each in json.loads(shown(capsys, "list", "--json"))["profiles"]}
    assert told["mine"] == {"name": "mine", "owner": "yours", "here": None, "about": "", "path": str(own)}
    assert told["node"]["here"] == "package.json"


def test_show_prints_the_registries_that_were_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "package.json").touch()
    (project / ".npmrc").write_text("registry=https://evil.test/\n")
    lines = shown(capsys, "show", "node").splitlines()
    assert lines[0] == "# node: Node.js with npm: its registries"
    assert lines[1].startswith("# built in: /")
    assert lines[2] == "# detected by package.json; package.json is here"
    assert '    "default.test:443",  # npm (npm config get registry)' in lines
    file = project / ".npmrc"
    assert lines[-1] == f"# ignored until you run `netsandbox trust {file}`: evil.test:443  # {file}:1"
    told = json.loads(shown(capsys, "show", "node", "--json"))
    assert (told["name"], told["owner"], told["here"], told["trusted"]) == ("node", "built in", "package.json", True)
    assert [(each["value"], each["origin"]) for each in told["values"] if each["key"] == "allow_domains"] == [
        ("default.test:443", "npm (npm config get registry)")
    ]
    assert told["untrusted"] == [{"value": "evil.test:443", "origin": f"{file}:1"}]


def test_show_of_a_profile_that_says_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown(capsys, "show", "base").splitlines()) == 2


def test_trust_shows_what_a_tools_own_file_opens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / ".npmrc"
    file.write_text("registry=https://company.test/\n")
    assert dispatch(["trust", "--yes", str(file)]) == 0
    assert f"{file}:1: npm fetches from company.test:443\n" in capsys.readouterr().out
    assert '"company.test:443"' in shown(capsys, "show", "node")
    file.write_text("registry=https://other.test/\n")
    assert '"company.test:443"' not in shown(capsys, "show", "node")


def test_trust_shows_what_a_projects_profile_opens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / ".sandbox" / "profiles" / "shop.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[profile]\nregistries = ["npm"]\n[network]\nallow_domains = ["s.test"]\n')
    assert '"s.test"' not in shown(capsys, "show", "shop")
    assert dispatch(["trust", "--yes", str(file)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"{file}: profile.registries: 'npm'", f"{file}:4: network.allow_domains: 's.test'"]
    assert '"s.test"' in shown(capsys, "show", "shop")


def test_config_show_names_profiles_and_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "package.json").touch()
    assert dispatch(["config", "show"]) == 0
    assert capsys.readouterr().out.startswith("# profile node: detected by package.json\n[network]\n")
    assert dispatch(["config", "show", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["profiles"] == [{"name": "node", "why": "detected by package.json"}]


def test_config_show_of_tables_in_two_files(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user = tmp_path / "config" / "netsandbox" / "config.toml"
    user.write_text("[shell]\nset_env = { A = '1' }\n[profiles.detect]\nnode = []\n")
    named = project / "named.toml"
    named.write_text("[shell]\nset_env = { B = '2' }\n")
    assert dispatch(["config", "show", "--config", str(named)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert f'set_env.A = "1"  # {user}:2' in said
    assert f'set_env.B = "2"  # {named}:2' in said
    assert f"detect.node = []  # {user}:3" in said


def test_explain_names_profiles_and_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "package.json").touch()
    assert dispatch(["explain", "--profile", "claude"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("profile   node: detected by package.json")
    assert lines[first + 1] == "          claude: named on the command line"
    assert dispatch(["explain", "--json", "--no-detect"]) == 0
    assert json.loads(capsys.readouterr().out)["profiles"] == []
    assert dispatch(["explain", "default.test:443"]) == 0
    assert dispatch(["explain", "default.test:443", "--no-detect"]) == 1
    assert dispatch(["explain", "default.test:443", "--no-config"]) == 1
    assert dispatch(["explain", "default.test:443", "--profile", "offline"]) == 1
