"""The profiles that come with us: each can be used, says why, and keeps the promises of docs/profiles.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from netsandbox.config.merging import merge
from netsandbox.config.profiles.profile import Library, Profile, profile_of
from netsandbox.config.profiles.profile_files import BUILT_IN, BUILT_IN_FOLDER, listed
from netsandbox.paths import home
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.home_paths import EVERYWHERE
from netsandbox.policy.secret_rules import parse_secret

ROOT = Path(__file__).resolve().parents[3]
NAMES = [each.name for each in listed(BUILT_IN_FOLDER, BUILT_IN)]
SHARED = "agent-os"  # detected for a folder of the user's, not for a language
AGENTS = ("aider", "claude", "codex", "copilot", "gemini", "opencode")


def profile(name: str) -> Profile:
    path = str(Path(BUILT_IN_FOLDER) / f"{name}.toml")
    return profile_of(name, path, *Library().tables(name, path))


def test_the_shipped_profiles_are_these() -> None:
    assert " ".join(NAMES) == (
        "agent-os aider base bun claude codex copilot docker-build filtered gemini git-ssh git go gpg gradle java "
        "jupyter localhost nix node npm-publish offline online opencode pdm pipenv playwright pnpm poetry postgresql "
        "python ruby rust uv yarn"
    )


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_for_in_one_line(name: str) -> None:
    about = profile(name).about
    assert about
    assert len(about) <= 100
    assert about.isprintable()


@pytest.mark.usefixtures("scene")
def test_the_page_shows_each_and_no_other() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| ([^|]*?) \| ([^|]*)\|$", (ROOT / "docs" / "profiles.md").read_text(), re.MULTILINE
    )
    assert [(name, about, re.findall(r"`([^`]+)`", files)) for name, about, files in rows] == [
        (name, profile(name).about, list(profile(name).detect)) for name in NAMES
    ]


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_detected_passes_no_secret_and_opens_no_socket_and_sets_no_mode(name: str) -> None:
    """A project's files choose these, so they must be harmless wherever they are."""
    found = profile(name)
    if found.detect:
        values = {".".join(place) for place in merge([found.layer]).values}
        assert values <= (
            {"filesystem.allow_read", "filesystem.allow_execute"} if name == SHARED else {"filesystem.cache"}
        )
        assert bool(found.registries) is (name != SHARED)
    assert not (found.detect and name in AGENTS)


RUN_BY_THE_HOST = (
    *(".bun/bin", ".cache/pypoetry/virtualenvs", ".cargo/bin", ".gem/ruby/3.1.0/bin", ".local/bin"),
    *(".local/share/gem/ruby/3.1.0/bin", ".local/share/pdm/venvs", ".local/share/pnpm/bin", ".local/share/uv"),
    *(".local/share/virtualenvs", ".rustup", ".yarn/bin", "go/bin", "node_modules/.bin"),
)


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_detected_opens_no_folder_of_programs(name: str) -> None:
    """A project's files choose it, and where caches are no copies the host would run what is written there:
    environments, tools, interpreters."""
    values = merge([profile(name).layer]).values.get(("filesystem", "cache"))
    rules: Any = values.value if values is not None and profile(name).detect else ()
    assert rules or name in (SHARED, "gradle") or not profile(name).detect
    programs = [f"{home()}/{place}" for place in RUN_BY_THE_HOST]
    opened = [rule.path for rule in rules for place in programs if is_within(place, rule.path)]
    assert not opened
    assert not [rule.path for rule in rules for place in programs if is_within(rule.path, place)]


@pytest.mark.usefixtures("scene")
def test_the_shared_standards_are_one_folder_and_no_secret() -> None:
    (rule,) = merge([profile(SHARED).layer]).values["filesystem", "allow_read"].value
    assert rule.path == f"{home()}/.agent-os"
    secrets = [f"{home()}/{place}" for place in EVERYWHERE]
    assert not [place for place in secrets if is_within(place, rule.path) or is_within(rule.path, place)]


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("mode", ["online", "localhost", "offline"])
def test_three_set_the_mode(mode: str) -> None:
    assert merge([profile(mode).layer]).values["network", "mode"].value == mode


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_gets_its_keys_and_its_vendors_hosts(name: str) -> None:
    values = merge([profile(name).layer]).values
    assert values["shell", "pass_env"].items
    assert values["network", "allow_domains"].items
    assert not profile(name).registries


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("name", NAMES)
def test_a_secret_is_offered_for_hosts_and_variables_of_the_profile(name: str) -> None:
    """Where inspection is not installed, an agent's variable is passed as before."""
    values = merge([profile(name).layer]).values
    rules: Any = values["network", "secrets"].value if ("network", "secrets") in values else ()
    assert not (rules and profile(name).detect)
    for text, origin in rules:
        rule = parse_secret(text, origin)
        assert rule.is_optional
        if name in AGENTS:
            assert rule.name in [variable for variable, _ in values["shell", "pass_env"].items]
            assert {host.text for host in rule.hosts} <= {host for host, _ in values["network", "allow_domains"].items}


@pytest.mark.usefixtures("scene")
def test_the_page_names_the_hosts_of_each_agent() -> None:
    """With the package that they were looked up in, so that a change of either is seen."""
    page = (ROOT / "docs" / "profiles.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| `[^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert {name: re.findall(r"`([^`]+)`", hosts) for name, hosts in rows} == {
        name: [text for text, _ in merge([profile(name).layer]).values["network", "allow_domains"].items]
        for name in AGENTS
    }
