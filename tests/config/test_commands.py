"""Commands that select a profile: by a bare name that the user typed, and by nothing else."""

from __future__ import annotations

import pytest

from netsandbox.config.commands import PROFILES, selecting_name, without_own_sandbox
from netsandbox.config.profiles.profile_files import BUILT_IN_FOLDER, listed


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["npx", "cowsay"], "npx"),
        (["cargo", "install", "x"], "cargo"),
        (["python", "-m", "pip", "install", "x"], "pip"),
        (["python3.12", "-m", "pipx"], "pipx"),
        (["python3", "-m"], ""),
        (["python3", "pip"], ""),
        (["python3", "-m", "http.server"], ""),
        (["./python3", "-m", "pip"], ""),
        (["pythonista", "-m", "pip"], ""),
        (["./npx"], ""),
        (["/usr/bin/npx"], ""),
        (["sh", "-c", "npx cowsay"], ""),
        (["env", "npx"], ""),
        (["claude"], ""),
        ([], ""),
        ([""], ""),
        (None, ""),
    ],
)
def test_only_a_bare_name_selects(command: list[str] | None, name: str) -> None:
    assert selecting_name(command) == name


@pytest.mark.parametrize(
    ("command", "profiles", "wanted"),
    [
        (["codex", "exec", "x"], ["codex"], ["codex", "-c", 'sandbox_mode="danger-full-access"', "exec", "x"]),
        (["/opt/codex"], ["node", "codex"], ["/opt/codex", "-c", 'sandbox_mode="danger-full-access"']),
        (["claude"], ["claude"], ["claude", "--settings", '{"sandbox":{"enabled":false}}']),
        (["copilot", "-p", "x"], ["copilot"], ["copilot", "--no-sandbox", "-p", "x"]),
        (["codex", "exec"], ["claude"], ["codex", "exec"]),
        (["sh", "-c", "codex"], ["codex"], ["sh", "-c", "codex"]),
        (["gemini"], ["gemini"], ["gemini"]),
        ([], ["codex"], []),
    ],
)
def test_an_agent_is_told_that_it_has_a_sandbox_if_its_profile_is_used(
    command: list[str], profiles: list[str], wanted: list[str]
) -> None:
    assert without_own_sandbox(command, profiles) == wanted


def test_each_profile_exists() -> None:
    assert set(PROFILES.values()) <= {each.name for each in listed(BUILT_IN_FOLDER, "")}
