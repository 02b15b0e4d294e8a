"""A folder's name is chosen by whoever made the archive or repository: no command writes it to a terminal as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.cli import config, explain, init, learn, profile, run, trust
from netsandbox.learn.project_text import ProjectText
from netsandbox.learn.proposed import Proposed

EVIL = "sh\x1b]0;owned\x07\u202eop\n[y]"
OPENS = """\
[sandbox]
profiles = ['base']
[network]
allow_domains = ['a.test']
deny_domains = ['b.test']
[filesystem]
deny_read = ['notes']
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    found = tmp_path / EVIL
    found.mkdir()
    monkeypatch.chdir(found)
    (found / ".netsandbox.toml").write_text(OPENS)
    return found


@pytest.mark.attack(172)
@pytest.mark.parametrize(
    "asked",
    [
        lambda: config.main(["show"]),
        lambda: config.main(["validate"]),
        lambda: config.main(["list-paths"]),
        lambda: explain.main([]),
        lambda: explain.main(["b.test"]),
        lambda: init.main(["--force"]),
        lambda: profile.main(["list"]),
        lambda: profile.main(["show", "node"]),
        lambda: run.main(["--dry-run", "--", "true"]),
        lambda: run.main(["--dry-run", "-v", "--allow-read", "..", "--", "true"]),
        lambda: trust.main(["--yes"]),
        lambda: trust.main(["--list"]),
        lambda: learn._offer_change(Proposed(), ProjectText(os.path.abspath(".netsandbox.toml")), write=False),
    ],
)
def test_172_no_command_lets_a_folders_name_reach_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], asked: object
) -> None:
    assert callable(asked)
    trust.main(["--yes"])
    capsys.readouterr()
    asked()
    told = capsys.readouterr()
    text = told.out + told.err
    assert text
    assert all(char == "\n" or char.isprintable() for char in text)
    assert "\n[y]" not in text
