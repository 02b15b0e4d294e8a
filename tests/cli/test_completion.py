"""`netsandbox completion`: a script for each shell, and the words that it asks for while the user types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.cli.completion import ALIASES, SHELLS, main, script
from netsandbox.cli.main import COMMANDS
from netsandbox.config.profiles.profile_files import own
from netsandbox.errors import UsageError
from tests.rig.completing import needs

LIGHT = """
import sys
from netsandbox.cli.completion import main
main(["--words", sys.argv[1]])
heavy = {"subprocess", "asyncio", "tomllib",
         "netsandbox.backends.seatbelt.profile.raw_rules", "netsandbox.cli.run", "netsandbox.cli.grammar"}
print(*sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_can_be_parsed_and_has_every_command(shell: str, tmp_path: Path) -> None:
    text = script(shell, aliases=True, prompt=True)
    assert all(name in text for name in COMMANDS)
    assert all(name in text for name in ALIASES)
    assert "SANDBOX_MODE" in text
    file = tmp_path / "script"
    file.write_text(text, "utf-8")
    subprocess.run([needs(shell), "-n", file], check=True, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_aliases_and_prompt_are_for_those_who_ask(shell: str) -> None:
    assert "alias nso" not in script(shell, aliases=False, prompt=True)
    assert "SANDBOX_MODE" not in script(shell, aliases=True, prompt=False)


def test_aliases_name_profiles_that_there_are() -> None:
    for meaning in ALIASES.values():
        assert meaning.split()[:2] == ["netsandbox", "run"]
        assert set(meaning.split()[2:]) <= set(own())


@pytest.mark.parametrize(
    "words", [[], ["tcsh"], ["bash", "zsh"], ["bash", "--", "x"], ["--words"], ["--words=profiles"]]
)
def test_anything_else_is_an_error(words: list[str]) -> None:
    with pytest.raises(UsageError):
        main(words)


def test_words_are_printed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--words", "profiles"]) == 0
    assert {"node", "online"} <= set(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("kind", ["profiles", "sessions", "logs", "domains"])
def test_the_words_are_looked_up_without_loading_the_rest(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, kind],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == "\n"
