from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.config.registries.discovery import (
    MAX_FILE_SIZE,
    Discovery,
    Setting,
    is_set,
    read_file,
    split_values,
    strongest,
)
from netsandbox.config.registries.python import uv_toml
from netsandbox.config.registries.readers import BadFile
from tests.config.registries.conftest import Scene
from tests.rig.file_clock import begin_sessions, settle, trust_place


def test_the_project_reaches_up_to_the_home_and_not_into_it(scene: Scene) -> None:
    assert list(scene.discovery().folders_upward()) == [str(scene.project), str(scene.home / "work")]


def test_outside_of_the_home_the_project_reaches_up_to_the_root(scene: Scene, tmp_path: Path) -> None:
    folders = list(Discovery("/srv/a/b", {}, str(scene.home)).folders_upward())
    assert folders == ["/srv/a/b", "/srv/a", "/srv"]


def test_in_the_home_itself_nothing_is_the_projects(scene: Scene) -> None:
    file = scene.write("~/.npmrc", "registry=https://a.example")
    discovery = Discovery(str(scene.home), {}, str(scene.home))
    assert list(discovery.folders_upward()) == []
    text = discovery.read(str(file))
    assert text is not None
    assert not text.project


def test_a_file_in_the_project_is_the_projects_whoever_names_it(scene: Scene) -> None:
    inside = scene.write("pip.conf", "")
    (scene.home / "link.conf").symlink_to(inside)
    mine = scene.write("~/pip.conf", "")
    discovery = scene.discovery()
    found = [discovery.read(str(path)) for path in (inside, scene.home / "link.conf", mine)]
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
    discovery = Discovery(str(scene.project / "part"), {**scene.environment, "PATH": path}, str(scene.home))
    assert discovery.query("pip") == f"{scene.bin}:/bin"
    assert not canary.exists()
    text = discovery.read(str(conf))
    assert text is not None
    assert text.project


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_a_stranger_does_not_count(scene: Scene) -> None:
    file = scene.write("~/.npmrc", "")
    os.chown(file, 65534, 65534)
    text = scene.discovery().read(str(file))
    assert text is not None
    assert text.project


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (2 << 20)], ids=["no text", "giant"])
def test_a_file_that_is_not_read_is_noted(scene: Scene, content: bytes) -> None:
    (scene.project / "x").write_bytes(content)
    discovery = scene.discovery()
    assert discovery.settings_in("x", lambda file: [file.setting("k", file.text, 1)], project=True) is None
    assert "passed over" in discovery.notes[0]


def test_bad_toml_is_noted(scene: Scene) -> None:
    scene.write("uv.toml", "a = " + "[" * 9999)
    discovery = scene.discovery()
    assert discovery.settings_in("uv.toml", uv_toml) is None
    assert "TOML" in discovery.notes[0]


def test_notes_have_an_end_and_come_once(scene: Scene) -> None:
    discovery = scene.discovery()
    for number in range(1000):
        discovery.note(f"{number // 2}")
    assert discovery.notes == [str(number) for number in range(20)]


def test_every_input_is_recorded(scene: Scene) -> None:
    scene.environment["A"] = "hunter2"
    discovery = scene.discovery()
    discovery.variable("A")
    discovery.variables("npm_config_")
    discovery.read("none")
    discovery.program("npm")
    list(discovery.expanded([Setting("k", "${B?}", "o", project=False)]))
    names = ["$A", "$npm_config_*", f"{scene.project}/none", "$PATH", f"{scene.bin}/npm", "$B"]
    assert list(discovery.inputs) == names
    assert "hunter2" not in str(discovery.inputs)


def test_an_origin_is_printable(scene: Scene) -> None:
    scene.write("a\x1b[2J\n/x", "")
    text = scene.discovery().read("a\x1b[2J\n/x")
    assert text is not None
    assert text.setting("k", "v", 3).origin.isprintable()


def test_a_tool_that_fails_leaves_a_gap_and_one_that_is_missing_does_not(scene: Scene) -> None:
    discovery = scene.discovery()
    assert discovery.query("npm", "x") == ""
    assert discovery.complete
    scene.tool("npm", "exit 1")
    assert discovery.query("npm", "x") == ""
    assert not discovery.complete
    assert discovery.notes == ["npm x gave no answer in its session"]


def test_a_script_is_run_only_if_its_interpreter_is_trusted_too(scene: Scene) -> None:
    """A session that cannot write npm may still put a node before the true one."""
    npm = scene.tool("npm", "")
    npm.write_text("#!/usr/bin/env node\necho https://a.example\n")
    first = scene.home / "first" / "bin"
    scene.tool("node", 'exec /bin/sh "$@"', first)
    scene.environment["PATH"] = f"{scene.home}/early:{scene.bin}:{first}:/bin"
    settle_first_session(scene)
    assert scene.discovery().trusted_program("npm") == str(npm)
    planted = scene.tool("node", "echo https://evil.example", scene.home / "early")
    discovery = scene.discovery()
    assert discovery.trusted_program("npm") is None
    assert discovery.untrusted_places == [str(planted.parent)]
    planted.unlink()
    assert scene.discovery().trusted_program("npm") == str(npm)


def test_of_several_tools_the_first_that_is_trusted_is_queried(scene: Scene) -> None:
    old = scene.tool("pip", "echo old")
    settle_first_session(scene)
    new = scene.tool("pip", "echo new", scene.home / "bin")
    scene.environment["PATH"] = f"{new.parent}:{scene.bin}"
    discovery = scene.discovery()
    assert discovery.query("pip") == "old"
    assert discovery.untrusted_places == []
    old.unlink()
    assert discovery.query("pip") == ""
    assert discovery.untrusted_places == [str(new.parent)]
    trust_place(new.parent)
    assert scene.discovery().query("pip") == "new"


def test_a_program_that_is_gone_is_not_trusted(scene: Scene) -> None:
    settle_first_session(scene)
    assert not scene.discovery().trusts_program(str(scene.bin / "none"))


def settle_first_session(scene: Scene) -> None:
    """From now on what is written is new; what was written is not."""
    settle(scene.home.parent)
    begin_sessions()


def test_an_ordinary_file_is_read_also_by_a_link(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MAX_FILE_SIZE)
    (tmp_path / "link").symlink_to(file)
    assert read_file(str(tmp_path / "link")) == b"x" * MAX_FILE_SIZE


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    assert read_file(str(tmp_path / "none")) is read_file(str(tmp_path / "file" / "x")) is None
    assert read_file(str(tmp_path / "dangling")) is read_file("/a\0b") is None


def hostile(folder: Path, kind: str) -> Path:
    place = folder / "file"
    if kind == "giant":
        place.write_bytes(b"registry=https://a.example\n" * 400_000)
    elif kind == "endless":
        place.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(place)
    return place


@pytest.mark.parametrize("kind", ["giant", "endless", "pipe", "folder", "loop"])
def test_what_is_no_small_ordinary_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadFile):
        read_file(str(hostile(tmp_path, kind)))


def test_a_file_that_is_swapped_for_a_pipe_after_the_first_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.touch()
    os.mkfifo(pipe)
    honest = os.stat

    def late(path: str) -> os.stat_result:
        seen = honest(path)
        pipe.rename(file)
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", late)
        with pytest.raises(BadFile, match="ordinary"):
            read_file(str(file))


def setting(key: str, text: str, project: bool = False) -> Setting:
    return Setting(key, text, "origin", project)


def test_the_first_setting_of_a_key_counts():
    assert strongest([setting("a", "1"), setting("a", "2"), setting("b", "3")]) == [
        setting("a", "1"),
        setting("b", "3"),
    ]


def test_a_project_does_not_hide_the_users_setting():
    settings = [setting("a", "1", True), setting("a", "2", True), setting("a", "3"), setting("a", "4")]
    assert strongest(settings) == [setting("a", "1", True), setting("a", "3")]


def test_a_project_sets_nothing_where_the_user_is_stronger():
    assert strongest([setting("a", "1"), setting("a", "2", True)]) == [setting("a", "1")]


def test_a_setting_of_the_project_is_not_the_users():
    assert not is_set([setting("a", "1", True)], "a")
    assert is_set([setting("a", "1", True), setting("a", "1")], "a")
    assert not is_set([setting("b", "1")], "a")


def test_values_are_split_at_blanks_and_separators():
    assert [each.value for each in split_values([setting("a", " x,y|z  w\n")], ",|")] == ["x", "y", "z", "w"]
    assert [each.value for each in split_values([setting("a", "x,y z")])] == ["x,y", "z"]
