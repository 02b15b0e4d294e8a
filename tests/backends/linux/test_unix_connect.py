"""Which Unix sockets of the host may be connected: the pinned inode, recorded first, and nothing else."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.folding import FoldedRecords
from netsandbox.backends.linux.trap_relay import SocketQuestion
from netsandbox.backends.linux.unix_connect import UnixConnect
from netsandbox.backends.linux.unix_pins import PinnedSocket
from tests.rig.fake_log import FakeLog


class Scene:
    """A server of the host, and a session that may use it."""

    def __init__(self, log: FakeLog, folder: Path) -> None:
        self.log, self.folder, self.path = log, folder, folder / "good.sock"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.path))
        self.server.listen()
        self.pin = PinnedSocket(str(self.path))
        self.repeats = FoldedRecords(log)  # type: ignore[arg-type]
        self.decide = UnixConnect(self.repeats, (self.pin,))

    def ask(self, path: Path | None = None, *, kind: str = "u", error: int = errno.EACCES, binds: bool = False) -> int:
        info = (path or self.path).stat() if kind == "u" else os.stat_result((0,) * 10)
        text = str(path or self.path)
        return self.decide(
            SocketQuestion(1, info.st_dev, info.st_ino, os.getpid(), error, kind, 1, binds, "/bin/probe", text)
        )

    @property
    def denials(self) -> list[tuple[str, str | None]]:
        return [(r["reason"], r.get("detail")) for r in self.log.records if r["verdict"] == "deny"]


@pytest.fixture
def scene(log: FakeLog, short_tmp: Path) -> Iterator[Scene]:
    made = Scene(log, short_tmp)
    yield made
    made.pin.close()
    made.server.close()


def test_the_allowed_socket_is_recorded_and_allowed(scene: Scene) -> None:
    assert scene.ask() == 0
    (record,) = scene.log.records
    assert (record["verdict"], record["reason"], record["path"]) == ("allow", "rule", str(scene.path))
    assert (record["call"], record["exe"], record["type"], record["rule"]) == (
        "connect",
        "/bin/probe",
        "stream",
        str(scene.path),
    )


def test_no_record_no_call(scene: Scene) -> None:
    """INV-5: with a log that cannot be written even the allowed socket is refused, repeats too."""
    assert scene.ask() == 0
    scene.log.failed = "disk full"
    assert scene.ask() == errno.EACCES
    (scene.folder / "link").symlink_to(scene.path)
    assert scene.ask(scene.folder / "link") == errno.EACCES


def test_another_socket_is_refused_with_the_option_that_would_help(scene: Scene) -> None:
    other = scene.folder / "other.sock"
    os.mknod(other, stat.S_IFSOCK | 0o600)
    assert scene.ask(other) == errno.EACCES
    assert [record.get("hint") for record in scene.log.records] == [f"--allow-unix-socket {other}"]


@pytest.mark.parametrize("name", ["a;id #", "a b", "$(id)", "`id`", "a'b", "ä.sock", "a\nb"])
def test_no_hint_has_a_path_that_a_shell_would_read_otherwise(scene: Scene, name: str) -> None:
    """The command makes such a file by mknod(2), and the line about it is pasted."""
    other = scene.folder / name
    os.mknod(other, stat.S_IFSOCK | 0o600)
    assert scene.ask(other) == errno.EACCES
    assert [(record["path"], record.get("hint")) for record in scene.log.records] == [(str(other), None)]


def test_repeats_are_counted_and_written_at_the_end(scene: Scene) -> None:
    for _ in range(5):
        scene.ask(kind="h", error=errno.ENOENT)
    scene.repeats.flush()
    assert [record["count"] for record in scene.log.records] == [1, 4]


def test_a_hidden_socket_is_missing_and_recorded(scene: Scene) -> None:
    assert scene.ask(kind="h", error=errno.ENOENT) == errno.ENOENT
    assert scene.denials == [("unix-socket", None)]
    assert scene.log.records[0]["hint"] == f"--allow-unix-socket {scene.path}"


def test_only_connect_is_ever_allowed(scene: Scene) -> None:
    assert scene.ask(binds=True) == errno.EACCES


@pytest.mark.attack(117)
@pytest.mark.parametrize(
    ("kind", "error", "answer", "reason"),
    [
        ("n", errno.EPERM, errno.EPERM, "socket-family"),
        ("m", errno.EFAULT, errno.EFAULT, "malformed"),
        ("i", errno.EPERM, errno.EACCES, "internal"),
        ("i", errno.EMFILE, errno.EACCES, "limit"),
        ("?", 0, errno.EACCES, "internal"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_and_recorded(
    scene: Scene, kind: str, error: int, answer: int, reason: str
) -> None:
    assert scene.ask(kind=kind, error=error) == answer
    assert [each for each, _ in scene.denials] == [reason]


def test_a_pin_that_cannot_be_asked_admits_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOENT, "gone")

    monkeypatch.setattr(type(scene.pin), "admits", fail)
    assert scene.ask() == errno.EACCES
    assert [reason for reason, _ in scene.denials] == ["unix-socket"]


@given(st.characters(exclude_characters="u"), st.integers(0, 200), st.booleans())
def test_no_other_question_is_ever_answered_with_yes(kind: str, error: int, binds: bool) -> None:
    repeats: Any = FoldedRecords(FakeLog())  # type: ignore[arg-type]
    question = SocketQuestion(1, 1, 1, 1, error or 1, kind, 1, binds, "?", "/x")
    assert UnixConnect(repeats, ())(question) != 0
