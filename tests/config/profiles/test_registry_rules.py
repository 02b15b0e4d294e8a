"""Registries become rules: those of the user and of the tool, and a project's only where its file is trusted."""

from __future__ import annotations

import os
import sys
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from netsandbox.config.profiles import registry_rules as module
from netsandbox.config.profiles.profile_files import is_configuration, is_project_profile
from netsandbox.config.profiles.registry_rules import (
    PLACE,
    SHOWN,
    Progress,
    RegistryRules,
    registries_of,
    registry_rules,
)
from netsandbox.config.registries.lookup import recall
from netsandbox.config.trust import distrust, is_trusted, named_host, trust
from tests.config.profiles.conftest import Scene
from tests.rig.file_clock import begin_sessions, trust_place


def rules(answer: RegistryRules) -> list[tuple[str, str]]:
    value: Any = answer.layer.values[PLACE].value if PLACE in answer.layer.values else ()
    return [(rule.text, rule.origin) for rule in value]


def test_the_tools_own_default(scene: Scene) -> None:
    found = registry_rules("npm", os.environ)
    assert rules(found) == [("default.test:443", "npm (npm config get registry)")]
    assert found.untrusted == ()
    assert found.layer.trusted


def test_the_users_file_with_its_line(scene: Scene) -> None:
    scene.file("~/.npmrc", "; mine\nregistry=https://company.test:8443/npm/\n")
    assert rules(registry_rules("npm", os.environ)) == [("company.test:8443", "npm (~/.npmrc:2)")]


def test_the_users_file_that_names_a_registry_is_shown_and_no_other(scene: Scene) -> None:
    """It may hold a token, so it is shown only where the tool needs it to find the registry."""
    scene.file("~/.npmrc", "//default.test/:_authToken=secret\n")
    assert SHOWN not in registry_rules("npm", os.environ).layer.values
    file = scene.file("~/.npmrc", "registry=https://company.test/\n")
    trust(str(file), file.read_bytes())
    assert registry_rules("npm", os.environ).layer.values[SHOWN].items == ((str(file), "npm (~/.npmrc:1)"),)


def test_a_projects_file_cannot_show_itself(scene: Scene, cloned: Path) -> None:
    trust(str(cloned), cloned.read_bytes())
    assert SHOWN not in registry_rules("npm", os.environ).layer.values


def test_the_layer_is_made_of_what_is_shown(scene: Scene) -> None:
    layer = registry_rules("npm", os.environ).layer
    assert layer.values[PLACE].items == (("default.test:443", "npm (npm config get registry)"),)


def test_without_the_tool_there_is_a_note_and_no_rule(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = registry_rules("npm", os.environ)
    assert found.layer.values == {}
    assert "no registry of npm is known; allow it with --allow-domain" in found.notes


@pytest.fixture
def cloned(scene: Scene) -> Path:
    return scene.file(".npmrc", "registry=https://evil.test/\n")


def test_a_projects_file_does_not_count_and_hides_nothing(scene: Scene, cloned: Path) -> None:
    found = registry_rules("npm", os.environ)
    assert rules(found) == [("default.test:443", "npm (npm config get registry)")]
    assert found.untrusted == (("evil.test:443", f"{cloned}:1"),)


def test_a_trusted_host_counts_whatever_else_is_in_the_file(scene: Scene, cloned: Path) -> None:
    trust(str(cloned), named_host("evil.test:443"))
    assert ("evil.test:443", "npm (~/project/.npmrc:1)") in rules(registry_rules("npm", os.environ))
    cloned.write_text("# new\nregistry=https://evil.test/other\n@me:registry=https://worse.test/\n")
    found = registry_rules("npm", os.environ)
    assert [text for text, _ in rules(found)] == ["evil.test:443", "default.test:443"]
    assert [host for host, _ in found.untrusted] == ["worse.test:443"]
    elsewhere = scene.file("deep/.npmrc", "registry=https://evil.test/\n")
    assert not is_trusted(str(elsewhere), named_host("evil.test:443")), "nor for another file"


def test_a_file_that_is_put_back_after_it_was_read_does_not_count(
    scene: Scene, cloned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trusted content is there when it is looked at, but the answer is from another one."""
    good = b"registry=https://evil.test/\n"
    trust(str(cloned), named_host("evil.test:443"))
    cloned.write_text("registry=https://worse.test/\n")
    registry_rules("npm", os.environ)
    recalled = recall("npm", os.path.realpath("."), os.environ, str(scene.home))
    assert recalled is not None
    cloned.write_bytes(good)
    monkeypatch.setattr(module, "recall", lambda *_: recalled)
    found = registry_rules("npm", os.environ)
    assert [text for text, _ in rules(found)] == ["default.test:443"]
    assert [host for host, _ in found.untrusted] == ["worse.test:443"]


def test_a_warm_answer_starts_no_program(scene: Scene) -> None:
    first = rules(registry_rules("npm", os.environ))
    scene.tool("npm", f"{scene.trace.command}; echo https://default.test/")
    os.utime(scene.bin / "npm", ns=(1, 1))
    trust_place(scene.bin)
    assert rules(registry_rules("npm", os.environ)) == first
    assert scene.trace.lines(), "the twin: a tool that changed is asked again"
    assert rules(registry_rules("npm", os.environ)) == first
    assert scene.trace.lines() == []


def test_a_tool_that_a_session_may_have_put_there_is_not_queried_until_it_is_trusted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{scene.bin}:/bin")
    begin_sessions()
    scene.tool("npm", f"{scene.trace.command}; echo https://evil.test/")
    path = scene.bin / "npm"
    found = registry_rules("npm", os.environ)
    assert [text for text, _ in rules(found) if "evil" in text] == []
    assert scene.trace.lines() == []
    if not Path("/bin/npm").exists():
        assert found.untrusted == (("the registry that npm in it names", f"{path.parent}:1"),)
    trust_place(path.parent)
    assert rules(registry_rules("npm", os.environ)) == [("evil.test:443", "npm (npm config get registry)")]
    assert scene.trace.lines(), "the twin"
    begin_sessions()
    scene.tool("npm", "echo https://worse.test/")
    assert [text for text, _ in rules(registry_rules("npm", os.environ)) if "worse" in text] == []


def test_a_file_that_a_session_may_have_written_counts_once_it_is_trusted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(scene.home / "state"))  # so no session can move the home
    monkeypatch.setenv("PATH", str(scene.bin))
    scene.file("~/.yarnrc", 'registry "https://before.test/"\n')
    registry_rules("npm", os.environ)
    begin_sessions()
    file = scene.file("~/.npmrc", "registry=https://later.test/\n")
    found = registry_rules("npm", os.environ)
    assert [text for text, _ in rules(found)] == ["default.test:443"]
    assert found.untrusted == (("later.test:443", f"{file}:1"),)
    assert registries_of(str(file))
    assert "before.test:443" in [text for text, _ in rules(registry_rules("yarn", os.environ))]
    trust(str(file), file.read_bytes())
    assert rules(registry_rules("npm", os.environ)) == [("later.test:443", "npm (~/.npmrc:1)")]
    distrust(str(file))
    assert [text for text, _ in rules(registry_rules("npm", os.environ))] == ["default.test:443"]


@pytest.mark.parametrize(
    ("path", "configuration", "profile"),
    [
        (".netsandbox.toml", True, False),
        ("deep/.netsandbox.toml", True, False),
        (".sandbox/profiles/shop.toml", True, True),
        (".netsandbox/profiles/shop.profile.toml", True, True),
        ("profiles/shop.toml", False, False),
        (".npmrc", False, False),
        ("pyproject.toml", False, False),
    ],
)
def test_a_file_is_configuration_by_its_place(scene: Scene, path: str, configuration: bool, profile: bool) -> None:
    assert (is_configuration(path), is_project_profile(path)) == (configuration, profile)


def test_registries_that_only_this_file_names(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(scene.bin))
    path = scene.file(".npmrc", "registry=https://shop.test/\n@me:registry=https://default.test/\n")
    found = registries_of(".npmrc")
    assert ("npm", "shop.test:443", f"{path}:1") in found
    assert ("npm", "default.test:443", f"{path}:2") not in found, "npm says so itself"
    assert registries_of("package.json") == []


def test_a_remote_of_git(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(scene.bin))
    path = scene.file(".git/config", '[remote "origin"]\n\turl = https://git.test/shop.git\n')
    assert registries_of(".git/config") == [("git", "git.test:443", f"{path}:2")]
    trust(".git/config", named_host("git.test:443"))
    assert registries_of(".git/config") == []
    path.write_text(path.read_text() + '[branch "x"]\n\tremote = origin\n[remote "b"]\n\turl = https://git.test/b\n')
    assert registries_of(".git/config") == [], "a branch, and a remote at the same host"
    assert [text for text, _ in rules(registry_rules("git", os.environ))] == ["git.test:443"]
    path.write_text(path.read_text() + '[remote "c"]\n\turl = https://other.test/c\n')
    assert registries_of(".git/config") == [("git", "other.test:443", f"{path}:8")]


class Screen(StringIO):
    """A terminal, or not, that tells when something was written."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal
        self.written = threading.Event()

    def isatty(self) -> bool:
        return self._terminal

    def flush(self) -> None:
        self.written.set()


def timers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_a_long_query_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=True))
    with Progress("asking npm", seconds=0):
        assert screen.written.wait(20)
    assert screen.getvalue() == "netsandbox: asking npm …\n"


def test_a_quick_query_is_not_shown_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=True))
    with Progress("asking npm", seconds=600):
        (timer,) = timers()
        assert timer.is_alive()
    assert not timer.is_alive()
    assert screen.getvalue() == ""


@pytest.mark.parametrize("stream", [None, Screen(terminal=False)])
def test_without_a_terminal_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, stream: Screen | None) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("asking npm", seconds=600):
        assert timers() == []
