"""The output of a session in the background: kept, bounded, and lost only with a line that says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from netsandbox.audit.sweep import is_live
from netsandbox.errors import HostError
from netsandbox.paths import OUTPUT_NAME, new_session_id, session_dir
from netsandbox.runtime import detached
from netsandbox.runtime.detached import LOST, Detached


class Scene:
    def __init__(self) -> None:
        self.reply, caller = os.pipe()
        self.output = Detached(caller)
        self.session = new_session_id()
        self.path = Path(session_dir(self.session), OUTPUT_NAME)

    def write(self, data: bytes) -> None:
        os.write(self.output.stdio[1], data)
        self.output.on_output(1)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    saved = [os.dup(number) for number in range(3)]
    made = Scene()
    yield made
    for number, copy in enumerate(saved):
        os.dup2(copy, number)
    for name in set(os.listdir("/proc/self/fd")) - before:
        try:
            os.close(int(name))
        except OSError:  # it listed the folder
            continue


def test_output_is_kept_and_the_file_is_locked_while_the_session_lives(scene: Scene) -> None:
    scene.output.open(scene.session)
    scene.write(b"one\n")
    assert scene.path.read_bytes() == b"one\n"
    assert scene.path.stat().st_mode & 0o777 == 0o600
    assert is_live(str(scene.path))
    os.write(scene.output.stdio[2], b"two\n")
    scene.output.close()
    assert scene.path.read_bytes() == b"one\ntwo\n"


def test_the_files_are_bounded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "MAX_OUTPUT", 100)
    scene.output.open(scene.session)
    for number in range(20):
        scene.write(b"%039d\n" % number)
    assert sorted(path.name for path in scene.path.parent.iterdir()) == [OUTPUT_NAME, f"{OUTPUT_NAME}.1"]
    kept = Path(f"{scene.path}.1").read_bytes() + scene.path.read_bytes()
    assert kept.split() == [b"%039d" % number for number in range(16, 20)]
    assert is_live(str(scene.path))


def test_output_that_cannot_be_written_is_named_where_it_is_missing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    scene.output.open(scene.session)
    with monkeypatch.context() as patch:
        patch.setattr(scene.output, "_write", full)
        scene.write(b"missing\n")
    scene.write(b"there\n")
    scene.write(b"again\n")
    assert scene.path.read_bytes() == LOST + b"there\nagain\n"


def test_the_caller_learns_the_name_and_later_words_of_ours_are_output(scene: Scene) -> None:
    scene.output.open(scene.session)
    scene.output.started(scene.session, "shop")
    assert os.read(scene.reply, 100) == f"{scene.session} shop".encode()
    assert os.read(scene.reply, 100) == b""
    os.write(2, b"a notice\n")
    assert os.read(0, 1) == b""
    assert scene.path.read_bytes() == b"a notice\n"


def test_before_the_start_errors_are_the_callers(scene: Scene) -> None:
    scene.output.open(scene.session)
    before = os.fstat(2)
    scene.output.close()
    assert os.path.sameopenfile(2, 2)
    assert os.fstat(2).st_ino == before.st_ino


def test_a_caller_that_is_gone_does_not_matter(scene: Scene) -> None:
    os.close(scene.reply)
    scene.output.open(scene.session)
    scene.output.started(scene.session, "shop")


def test_a_state_folder_that_cannot_be_written_is_an_error(scene: Scene) -> None:
    scene.path.parent.parent.mkdir(parents=True)
    scene.path.parent.write_text("no folder")
    with pytest.raises(HostError, match="XDG_STATE_HOME"):
        scene.output.open(scene.session)
