"""The private copy of an agent's settings file, and its way back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import agent_files
from netsandbox.backends.linux.agent_files import MAX_SIZE, AgentFile, fill, give_new, make_copy, refresh, take_over
from netsandbox.errors import HostError

PROJECT = "/home/me/shop"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    path = tmp_path / ".claude.json"
    path.write_text(json.dumps({"theme": "dark", "mcpServers": {"mine": {"command": "true"}}}))
    path.chmod(0o640)
    return path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    return tmp_path / "private" / ".claude.json"


def change(copy: Path, **values: object) -> None:
    copy.write_text(json.dumps({**json.loads(copy.read_text()), **values}))


def test_harmless_changes_reach_the_host_and_commands_do_not(host: Path, copy: Path) -> None:
    file = make_copy(str(host), str(copy))
    change(copy, theme="light", mcpServers={"planted": {"command": "evil"}})
    lines = take_over(file, PROJECT)
    assert json.loads(host.read_text()) == {"theme": "light", "mcpServers": {"mine": {"command": "true"}}}
    assert host.stat().st_mode & 0o777 == 0o640
    assert len(lines) == 1
    assert "mcpServers.planted" in lines[0]
    again = make_copy(str(host), str(copy))
    assert set(again.before["mcpServers"]) == {"mine", "planted"}, "the project keeps it"


def test_an_unchanged_copy_leaves_the_host_alone(host: Path, copy: Path) -> None:
    before = host.stat()
    assert take_over(make_copy(str(host), str(copy)), PROJECT) == []
    assert host.stat().st_ino == before.st_ino


def test_changes_of_the_host_meanwhile_stay(host: Path, copy: Path) -> None:
    file = make_copy(str(host), str(copy))
    host.write_text('{"theme": "dark", "numStartups": 9}')
    change(copy, theme="light")
    take_over(file, PROJECT)
    assert json.loads(host.read_text()) == {"theme": "light", "numStartups": 9}


@pytest.mark.parametrize("content", ["", "[", "[]", '"x"', "\x00", "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000])
def test_a_broken_copy_changes_nothing(host: Path, copy: Path, content: str) -> None:
    file = make_copy(str(host), str(copy))
    text = host.read_text()
    copy.write_text(content)
    take_over(file, PROJECT)
    assert host.read_text() == text
    assert make_copy(str(host), str(copy)).before["theme"] == "dark"


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "large", "gone"])
def test_what_a_session_put_in_place_of_the_copy_is_never_followed(host: Path, copy: Path, kind: str) -> None:
    file = make_copy(str(host), str(copy))
    text, secret = host.read_text(), host.parent / "secret.json"
    secret.write_text('{"theme": "secret"}')
    copy.unlink()
    if kind == "link":
        copy.symlink_to(secret)
    elif kind == "folder":
        copy.mkdir()
        (copy / "file").touch()
    elif kind == "fifo":
        os.mkfifo(copy)
    elif kind == "large":
        copy.write_bytes(b'{"theme": "' + b"x" * MAX_SIZE + b'"}')
    assert len(take_over(file, PROJECT)) == 1
    assert host.read_text() == text
    assert isinstance(make_copy(str(host), str(copy)), AgentFile)
    assert (copy.is_symlink(), copy.is_file(), secret.read_text()) == (False, True, '{"theme": "secret"}')


def test_a_file_of_the_host_that_is_no_json_is_an_error(host: Path, copy: Path) -> None:
    host.write_text("{")
    with pytest.raises(HostError, match="repair or remove"):
        make_copy(str(host), str(copy))


def test_a_host_file_that_became_unreadable_is_reported(host: Path, copy: Path) -> None:
    file = make_copy(str(host), str(copy))
    change(copy, theme="light")
    host.write_text("{")
    assert "stays as it was" in take_over(file, PROJECT)[0]
    assert host.read_text() == "{"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1e999", "[" + "1," * 1000 + "1]"])
def test_nothing_that_other_programs_cannot_read_reaches_the_host(
    host: Path, copy: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_files, "MAX_WRITTEN", 4096)
    file = make_copy(str(host), str(copy))
    text = host.read_text()
    copy.write_text(f'{{"theme": {value}}}')
    assert "stays as it was" in take_over(file, PROJECT)[0]
    assert host.read_text() == text


def test_half_a_character_stays_text_that_the_next_session_reads(host: Path, copy: Path) -> None:
    file = make_copy(str(host), str(copy))
    change(copy, theme="\ud83d")
    assert take_over(file, PROJECT) == []
    assert json.loads(host.read_text("utf-8"))["theme"] == "\ud83d"
    assert make_copy(str(host), str(copy)).before["theme"] == "\ud83d"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """An agent's folder of the host, and the folder of its copy."""
    for name in ("host/agents", "copy"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "host/settings.json").write_text("of the host")
    (tmp_path / "host/agents/x.md").write_text("of the host")
    return tmp_path / "host", tmp_path / "copy"


def newer(path: Path, text: str) -> None:
    """Write until the clock of files has ticked."""
    before = max((each.lstat().st_ctime_ns for each in path.parents[1].rglob("*")), default=0)
    path.write_text(text)
    while path.stat().st_ctime_ns <= before:
        path.write_text(text)


def test_what_the_host_changed_later_is_taken_from_the_copy(folders: tuple[Path, Path]) -> None:
    host, copy = folders
    newer(copy / "settings.json", "inside")
    (copy / "new").write_text("inside")
    refresh(str(host), str(copy), [])
    assert (copy / "settings.json").read_text() == "inside"
    newer(host / "settings.json", "later")
    refresh(str(host), str(copy), [])
    assert [path.name for path in copy.iterdir()] == ["new"]


def test_nothing_is_in_the_way_of_what_is_mounted(folders: tuple[Path, Path], tmp_path: Path) -> None:
    host, copy = folders
    (host / "projects/a").mkdir(parents=True)
    for name in ("projects", "settings.json"):
        (copy / name).symlink_to(tmp_path)
    (copy / "agents").write_text("no folder")
    written = [f"{host}/{name}" for name in ("projects/a", "settings.json", "agents/x.md")]
    refresh(str(host), str(copy), written)
    assert not list(copy.iterdir())
    (copy / "settings.json").write_text("plain")
    refresh(str(host), str(copy), written)
    assert (copy / "settings.json").read_text() == "plain", "the twin: a mount covers it"


def test_small_files_are_copied_and_links_lead_to_what_is_written(folders: tuple[Path, Path]) -> None:
    host, copy = folders
    (host / "sessions").mkdir()
    (host / "large").write_bytes(bytes(agent_files.MAX_COPIED + 1))
    (host / "link").symlink_to("/etc/passwd")
    for _ in range(2):
        fill(str(host), str(copy), [f"{host}/sessions"])
        assert {path.name for path in copy.iterdir()} == {"agents", "settings.json", "sessions"}
        assert os.readlink(copy / "sessions") == f"{host}/sessions"
        assert (copy / "agents/x.md").read_text() == "of the host"
    newer(copy / "agents/x.md", "inside")
    fill(str(host), str(copy), [])
    assert (copy / "agents/x.md").read_text() == "inside"
    newer(host / "agents/x.md", "later")
    fill(str(host), str(copy), [])
    assert (copy / "agents/x.md").read_text() == "later"


def test_a_copy_is_made_through_no_link_of_an_earlier_session(folders: tuple[Path, Path], tmp_path: Path) -> None:
    host, copy = folders
    victim = tmp_path / "victim"
    victim.mkdir()
    (copy / "agents").symlink_to(victim)
    (copy / "settings.json").symlink_to(victim / "settings.json")
    newer(host / "settings.json", "later")
    fill(str(host), str(copy), [])
    assert not list(victim.iterdir())
    assert (copy / "agents/x.md").read_text() == (host / "agents/x.md").read_text()
    assert not (copy / "settings.json").is_symlink()


def test_a_new_login_reaches_the_host_once(folders: tuple[Path, Path]) -> None:
    host, copy = folders
    login, made = host / "auth.json", copy / "auth.json"
    assert give_new(str(login), str(made)) == []
    assert not login.exists()
    made.write_text("first")
    assert give_new(str(login), str(made)) == []
    assert (login.read_text(), login.stat().st_mode & 0o777) == ("first", 0o600)
    made.write_text("second")
    assert give_new(str(login), str(made)) == []
    assert login.read_text() == "first", "the host's own stays"


@pytest.mark.parametrize("kind", ["link", "folder", "large"])
def test_what_is_no_plain_login_stays_in_the_project(folders: tuple[Path, Path], kind: str) -> None:
    host, copy = folders
    if kind == "link":
        (copy / "auth.json").symlink_to(host / "settings.json")
    elif kind == "folder":
        (copy / "auth.json").mkdir()
    else:
        (copy / "auth.json").write_bytes(bytes(MAX_SIZE + 1))
    (line,) = give_new(f"{host}/auth.json", f"{copy}/auth.json")
    assert "auth.json stays in the project: " in line
    assert not (host / "auth.json").exists()
