"""Which options and files make a session ask about names and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.cli import run
from netsandbox.cli.run_options import read_config, settings_of
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import parse
from netsandbox.settings import RunSettings
from netsandbox.system import IS_MACOS

RULES = "[network]\nallow_domains = ['a.test']\nallow_addresses = ['192.0.2.7']\n"
ASK = "[approvals]\nask = true\nwait = 5\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(project: Path, words: list[str], text: str) -> RunSettings:
    (project / "said.toml").write_text(text)
    parsed = parse(["--no-config", "--config", str(project / "said.toml"), *words], run.OPTIONS, "netsandbox run")
    return settings_of(parsed, read_config(parsed))


@pytest.mark.skipif(IS_MACOS, reason="files cannot wait on macOS")
@pytest.mark.parametrize(
    ("words", "text", "names", "files"),
    [
        ([], RULES, None, None),
        (["--ask"], RULES, 60, 60),
        (["--mode", "dynamic", "--ask-wait", "7"], RULES, 7, 7),
        (["--ask", "--online"], RULES, None, 60),
        (["--ask", "--files", "readable"], RULES, 60, None),
        (["--ask", "--backend", "seatbelt"], RULES, 60, None),
        ([], ASK, 5, None),
        ([], ASK + "files = true\n", 5, 5),
        (["--offline"], "[approvals]\nfiles = true\n", None, 60),
        (["--mode", "static"], ASK + "files = true\n", None, None),
    ],
)
def test_names_and_files_are_asked_about_where_they_can_wait(
    project: Path, words: list[str], text: str, names: int | None, files: int | None
) -> None:
    found = settings(project, words, text)
    assert (found.ask, found.ask_files) == (names, files)
    assert found.asks_files == (files is not None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mode", "dynamic", "--backend", "seatbelt"], "--mode dynamic: files cannot wait for an answer on macOS"),
        (["--mode", "static", "--ask"], "--ask and --mode static exclude each other"),
        (["--mode", "open"], "--mode 'open' is unknown; use dynamic, which asks you, or static"),
        (["--mode", "static", "--ask-wait", "5"], "--ask-wait has no meaning where nobody is asked"),
    ],
)
def test_what_cannot_be_asked_is_an_error(project: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        settings(project, words, RULES)
    assert str(raised.value).startswith(said)
