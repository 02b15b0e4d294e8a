"""The private copy of an agent's settings file, and its way back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import agent_files
from netsandbox.backends.linux.agent_files import MAX_SIZE, AgentFile, make_copy, take_over
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
