"""The profiles that come with us: each can be used, says why, and keeps the promises of docs/profiles.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netsandbox.configuration.merging import merge
from netsandbox.profiles.library import Library
from netsandbox.profiles.profile import Profile, profile_of
from netsandbox.profiles.shelf import BUILT_IN, OURS, listed

ROOT = Path(__file__).resolve().parents[2]
NAMES = [each.name for each in listed(OURS, BUILT_IN)]
AGENTS = ("aider", "claude", "codex", "copilot", "gemini", "opencode")


def profile(name: str) -> Profile:
    path = str(Path(OURS) / f"{name}.toml")
    return profile_of(name, path, *Library().tables(name, path))


def test_the_list() -> None:
    assert " ".join(NAMES) == (
        "aider base bun claude codex copilot docker-build gemini git go gpg java localhost node offline online "
        "opencode pdm pipenv pnpm poetry python ruby rust uv yarn"
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
        said = {".".join(place) for place in merge([found.layer]).values}
        assert said <= {"filesystem.allow_write"}
        assert found.registries
    assert not (found.detect and name in AGENTS)


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("mode", ["online", "localhost", "offline"])
def test_three_set_the_mode(mode: str) -> None:
    assert merge([profile(mode).layer]).values["network", "mode"].value == mode


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_gets_its_keys_and_its_vendors_hosts(name: str) -> None:
    said = merge([profile(name).layer]).values
    assert said["shell", "pass_env"].items
    assert said["network", "allow_domains"].items
    assert not profile(name).registries


@pytest.mark.usefixtures("scene")
def test_the_page_names_the_hosts_of_each_agent() -> None:
    """With the package that they were looked up in, so that a change of either is seen."""
    page = (ROOT / "docs" / "profiles.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| `[^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert {name: re.findall(r"`([^`]+)`", hosts) for name, hosts in rows} == {
        name: [text for text, _ in merge([profile(name).layer]).values["network", "allow_domains"].items]
        for name in AGENTS
    }
