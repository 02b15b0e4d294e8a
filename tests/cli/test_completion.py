"""`netsandbox completion`: a script for each shell, and the words that it asks for while the user types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.cli.completion import ALIASES, SHELLS, main, script
from netsandbox.cli.help import ABOUT
from netsandbox.cli.main import COMMANDS
from netsandbox.config.profiles.profile_files import own
from netsandbox.errors import UsageError
from tests.rig.completing import needs

LIGHT = """
import sys
from netsandbox.cli.completion import main
main(["--complete", *sys.argv[1:]])
heavy = {"subprocess", "asyncio", "tomllib", "netsandbox.backends.seatbelt.profile.raw_rules", "netsandbox.cli.doctor"}
print(*sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_can_be_parsed(shell: str, tmp_path: Path) -> None:
    text = script(shell, aliases=True, prompt=True)
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
    "words", [[], ["tcsh"], ["bash", "zsh"], ["bash", "--", "x"], ["--complete"], ["--complete=run"]]
)
def test_anything_else_is_an_error(words: list[str]) -> None:
    with pytest.raises(UsageError):
        main(words)


def test_a_shell_that_is_not_known_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"^completion does not know the shell 'tcsh'; write `netsandbox completion bash`"
    ):
        main(["tcsh"])
    with pytest.raises(UsageError, match=r"^completion takes one shell; write .*, `completion fish`$"):
        main([])


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["--complete", *words]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


def test_every_command_and_its_options_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys, "")[1:] == list(ABOUT)
    assert set(COMMANDS) == set(ABOUT)
    for name in COMMANDS:
        assert "--help" in offered(capsys, name, "--")


def test_words_are_looked_up(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOWN_TO_NOBODY", "x")
    assert {"node", "online"} <= set(offered(capsys, "run", ""))
    assert offered(capsys, "run", "--pass-env", "SHOWN_TO") == [":", "SHOWN_TO_NOBODY"]
    assert offered(capsys, "run", "--files=o") == [":", "--files=open"]
    assert offered(capsys, "no-such-command", "") == [":"]


@pytest.mark.parametrize("words", [("stop", ""), ("audit", "show", ""), ("audit", "show", "--host", "")])
def test_the_words_are_looked_up_without_loading_the_rest(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == "\n"
