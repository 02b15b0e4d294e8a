"""`netsandbox explain` without a host: files, trust, profiles, rules and settings, each with its origin."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netsandbox.cli import explain, trust
from netsandbox.policy.variables import VariableRules

PROJECT = """\
[network]
mode = "filtered"
allow_domains = ["a.test"]
upstream_proxy = "http://me:secret@p.test:3128"
deny_domains = ["b.test"]

[localhost]
connect_host = [5432]
publish = ["3000"]
"""
USER = "[network]\nallow_domains = ['mine.test']\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in filter(lambda name: not VariableRules().passes(os.fsencode(name)), tuple(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user = tmp_path / "config" / "netsandbox" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(USER)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".netsandbox.toml").write_text(PROJECT)
    return folder


def shown(capsys: pytest.CaptureFixture[str], project: Path, *arguments: str) -> list[str]:
    assert explain.main(list(arguments)) == 0
    lines = capsys.readouterr().out.replace(str(project.parent), "~").splitlines()
    return [line for line in lines if "denied: " not in line and not line.startswith(("read", "write"))]


def test_what_an_untrusted_file_would_open_is_listed_and_does_not_hold(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, project) == [
        "file      ~/config/netsandbox/config.toml: yours",
        "          ~/project/.netsandbox.toml: the project's, not trusted; `netsandbox trust` puts it into effect",
        "            ignored: network.mode, line 2",
        "            ignored: network.allow_domains, line 3",
        "            ignored: network.upstream_proxy, line 4",
        "            ignored: localhost.connect_host, line 8",
        "            ignored: localhost.publish, line 9",
        "mode      filtered: what a rule allows, and nothing else",
        "allow     mine.test                        ports 80, 443    ~/config/netsandbox/config.toml:2",
        "deny      b.test                           every port       ~/project/.netsandbox.toml:5",
        "address   no address",
        "ports     ports 80, 443 where an allow rule names none",
        "          ~/project writable         the project",
        "localhost strategy isolate, by the kernel",
        "          every port that listens is published on the host",
        "          ports of the host's localhost and of other sessions that it reaches: none",
        "log       ~/state/netsandbox/sessions/SESSION/audit.jsonl",
    ]


def test_trusted_it_holds_and_each_word_has_its_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trust.main(["--yes"]) == 0
    capsys.readouterr()
    lines = shown(capsys, project)
    assert "          ~/project/.netsandbox.toml: the project's, trusted as it is now" in lines
    assert "          ports of the host's localhost and of other sessions that it reaches: 5432" in lines
    assert "          shown on the host: 3000" in lines
    assert lines[-4:] == [
        'setting   network.mode = "filtered"                        ~/project/.netsandbox.toml:2',
        '          network.upstream_proxy = "http://p.test:3128"    ~/project/.netsandbox.toml:4',
        "          localhost.connect_host = 5432                    ~/project/.netsandbox.toml:8",
        '          localhost.publish = "3000"                       ~/project/.netsandbox.toml:9',
    ]


def test_programs_read_the_same_and_no_password(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust.main(["--yes"])
    capsys.readouterr()
    assert explain.main(["--json"]) == 0
    text = capsys.readouterr().out
    found = json.loads(text)
    assert "secret" not in text
    assert [(each["owner"], each["trusted"]) for each in found["configuration"]] == [
        ("yours", True),
        ("the project's", True),
    ]
    assert found["localhost"]["connect_host"] == ["5432"]
    assert {"key": "network.mode", "value": "filtered", "origin": f"{project}/.netsandbox.toml:2"} in found["settings"]


def test_what_is_left_out_is_left_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, project, "--no-config")[0] == "file      there is no configuration file"
    (project / "package.json").touch()
    assert any(line.startswith("profile   node") for line in shown(capsys, project, "--offline"))
    assert not any(line.startswith("profile") for line in shown(capsys, project, "--offline", "--no-detect"))


def test_an_empty_list_has_its_line_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".netsandbox.toml").write_text("[filesystem]\nallow_write = []\n")
    confined = "setting   filesystem.allow_write = []                      ~/project/.netsandbox.toml:2"
    assert shown(capsys, project)[-1] == confined
    (project.parent / "config" / "netsandbox" / "config.toml").write_text("[filesystem]\nallow_write = ['/opt']\n")
    assert shown(capsys, project)[-1] == confined
    (project / ".netsandbox.toml").unlink()
    assert not any(line.startswith("setting") for line in shown(capsys, project))
