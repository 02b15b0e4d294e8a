from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.config.registries.discovery import Discovery
from netsandbox.config.registries.setting import Setting
from netsandbox.config.trust import trust
from netsandbox.paths import session_state_home
from tests.config.registries.conftest import Scene


def test_the_project_reaches_up_to_the_home_and_not_into_it(scene: Scene) -> None:
    assert list(scene.inquiry().upward()) == [str(scene.project), str(scene.home / "work")]


def test_outside_of_the_home_the_project_reaches_up_to_the_root(scene: Scene, tmp_path: Path) -> None:
    folders = list(Discovery("/srv/a/b", {}, str(scene.home)).upward())
    assert folders == ["/srv/a/b", "/srv/a", "/srv"]


def test_in_the_home_itself_nothing_is_the_projects(scene: Scene) -> None:
    file = scene.write("~/.npmrc", "registry=https://a.example")
    inquiry = Discovery(str(scene.home), {}, str(scene.home))
    assert list(inquiry.upward()) == []
    text = inquiry.text(str(file))
    assert text is not None
    assert not text.project


def test_a_file_in_the_project_is_the_projects_whoever_names_it(scene: Scene) -> None:
    inside = scene.write("pip.conf", "")
    (scene.home / "link.conf").symlink_to(inside)
    mine = scene.write("~/pip.conf", "")
    inquiry = scene.inquiry()
    found = [inquiry.text(str(path)) for path in (inside, scene.home / "link.conf", mine)]
    assert [text.project for text in found if text] == [True, True, False]


def test_in_a_folder_of_a_repository_the_whole_of_it_is_the_project(scene: Scene) -> None:
    """A session that was started at its root may have written its virtual environment."""
    canary = scene.home / "canary"
    scene.tool("pip", f": > {canary}; echo planted", scene.project / ".venv" / "bin")
    scene.tool("pip", 'echo "$PATH"')
    conf = scene.write(".venv/pip.conf", "[global]\nindex-url = https://evil.example/simple\n")
    (scene.project / "part" / ".git").mkdir(parents=True)  # a repository within
    path = f"{scene.project}/.venv/bin:{scene.bin}:/bin"
    (scene.project / ".git").mkdir()
    inquiry = Discovery(str(scene.project / "part"), {**scene.environment, "PATH": path}, str(scene.home))
    assert inquiry.ask("pip") == f"{scene.bin}:/bin"
    assert not canary.exists()
    text = inquiry.text(str(conf))
    assert text is not None
    assert text.project


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_a_stranger_is_not_believed(scene: Scene) -> None:
    file = scene.write("~/.npmrc", "")
    os.chown(file, 65534, 65534)
    text = scene.inquiry().text(str(file))
    assert text is not None
    assert text.project


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (2 << 20)], ids=["no text", "giant"])
def test_a_file_that_is_not_read_is_noted(scene: Scene, content: bytes) -> None:
    (scene.project / "x").write_bytes(content)
    inquiry = scene.inquiry()
    assert inquiry.text("x", project=True) is None
    assert "passed over" in inquiry.notes[0]


def test_bad_toml_is_noted(scene: Scene) -> None:
    scene.write("uv.toml", "a = " + "[" * 9999)
    inquiry = scene.inquiry()
    assert inquiry.toml("uv.toml") is None
    assert "TOML" in inquiry.notes[0]


def test_notes_have_an_end_and_come_once(scene: Scene) -> None:
    inquiry = scene.inquiry()
    for number in range(1000):
        inquiry.note(f"{number // 2}")
    assert inquiry.notes == [str(number) for number in range(20)]


def test_each_thing_that_is_looked_at_is_remembered(scene: Scene) -> None:
    scene.environment["A"] = "hunter2"
    inquiry = scene.inquiry()
    inquiry.variable("A")
    inquiry.variables("npm_config_")
    inquiry.text("none")
    inquiry.program("npm")
    list(inquiry.expanded([Setting("k", "${B?}", "o", project=False)]))
    names = ["$A", "$npm_config_*", f"{scene.project}/none", "$PATH", f"{scene.bin}/npm", "$B"]
    assert list(inquiry.consulted) == names
    assert "hunter2" not in str(inquiry.consulted)


def test_an_origin_is_printable(scene: Scene) -> None:
    scene.write("a\x1b[2J\n/x", "")
    text = scene.inquiry().text("a\x1b[2J\n/x")
    assert text is not None
    assert text.said("k", "v", 3).origin.isprintable()


def test_a_tool_that_fails_leaves_a_gap_and_one_that_is_missing_does_not(scene: Scene) -> None:
    inquiry = scene.inquiry()
    assert inquiry.ask("npm", "x") == ""
    assert inquiry.complete
    scene.tool("npm", "exit 1")
    assert inquiry.ask("npm", "x") == ""
    assert not inquiry.complete
    assert inquiry.notes == ["npm x gave no answer in a session of its own"]


def test_a_script_is_asked_only_if_what_starts_it_is_believed_too(scene: Scene) -> None:
    """A session that cannot write npm may still put a node before the true one."""
    npm = scene.tool("npm", "")
    npm.write_text("#!/usr/bin/env node\necho https://a.example\n")
    first = scene.home / "first" / "bin"
    scene.tool("node", 'exec /bin/sh "$@"', first)
    scene.environment["PATH"] = f"{scene.home}/early:{scene.bin}:{first}:/bin"
    settle_first_session(scene)
    assert scene.inquiry().asked_program("npm") == str(npm)
    planted = scene.tool("node", "echo https://evil.example", scene.home / "early")
    inquiry = scene.inquiry()
    assert inquiry.asked_program("npm") is None
    assert inquiry.unasked == [str(npm)]
    planted.unlink()
    assert scene.inquiry().asked_program("npm") == str(npm)


def test_of_several_tools_the_first_that_is_believed_is_asked(scene: Scene) -> None:
    old = scene.tool("pip", "echo old")
    settle_first_session(scene)
    new = scene.tool("pip", "echo new", scene.home / "bin")
    scene.environment["PATH"] = f"{new.parent}:{scene.bin}"
    inquiry = scene.inquiry()
    assert inquiry.ask("pip") == "old"
    assert inquiry.unasked == []
    old.unlink()
    assert inquiry.ask("pip") == ""
    assert inquiry.unasked == [str(new)]
    trust(str(new), new.read_bytes())
    assert scene.inquiry().ask("pip") == "new"


def test_a_program_that_is_gone_or_too_large_is_not_believed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    settle_first_session(scene)
    monkeypatch.setattr("netsandbox.config.document.SIZE_LIMIT", 10)
    large = scene.tool("pip", "echo more than ten bytes")
    trust(str(large), large.read_bytes())
    assert not scene.inquiry().believes_program(str(large))
    assert not scene.inquiry().believes_program(str(scene.bin / "none"))


def settle_first_session(scene: Scene) -> None:
    """From now on what is written is new; what was written is not."""
    tick, last = scene.home / "tick", max(path.stat().st_ctime_ns for path in scene.home.parent.rglob("*"))
    tick.touch()
    while tick.stat().st_ctime_ns <= last:
        tick.touch()
    session_state_home()
