"""`netsandbox logs`: whose output, how much of it, and until when."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from netsandbox.cli.main import dispatch
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import OUTPUT_NAME, new_session_id, session_dir
from tests.rig.live import sessions
from tests.rig.localhost import eventually


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def output_of(session: str, data: bytes, older: bytes | None = None) -> Path:
    path = Path(session_dir(session), OUTPUT_NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if older is not None:
        Path(f"{path}.1").write_bytes(older)
    return path


def test_a_session_is_found_by_name_by_id_and_after_its_end(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with sessions({"name": "shop"}) as (live,):
        output_of(live.id, b"\x1b[2Jraw\xff\n")
        assert dispatch(["logs", "shop"]) == 0
    assert dispatch(["logs", live.id]) == 0
    assert dispatch(["logs", live.id[:20]]) == 0
    assert capfdbinary.readouterr().out == b"\x1b[2Jraw\xff\n" * 3


def test_both_files_are_printed_or_only_the_last_lines(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    session = new_session_id()
    output_of(session, b"3\n4\n", b"1\n2\n")
    everything = b"1\n2\n3\n4\n"
    for words, shown in (
        ([], everything),
        (["-n", "3"], everything[2:]),
        (["-n", "0"], b""),
        (["-n", "9"], everything),
    ):
        assert dispatch(["logs", *words, session]) == 0
        assert capfdbinary.readouterr().out == shown


class Followed:
    """A session that writes, as its lock on the file says, and `logs -f` beside it."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capture
        self._seen = b""
        self.path = output_of(new_session_id(), b"first\n")
        self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self._reader = threading.Thread(target=lambda: dispatch(["logs", "-f", self.path.parent.name]))
        self._reader.start()
        eventually(lambda: self.seen() == b"first\n")

    def seen(self) -> bytes:
        self._seen += self._capture.readouterr().out
        return self._seen

    def end(self) -> bytes:
        os.close(self.file)
        self._reader.join(20)
        assert not self._reader.is_alive()
        return self.seen()


def test_it_follows_until_the_session_ends(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    followed = Followed(capfdbinary)
    os.write(followed.file, b"second\n")
    assert followed.end() == b"first\nsecond\n"


def test_it_follows_into_the_next_file(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    followed = Followed(capfdbinary)
    os.write(followed.file, b"second\n")
    os.rename(followed.path, f"{followed.path}.1")
    new = os.open(followed.path, os.O_WRONLY | os.O_CREAT)
    fcntl.flock(new, fcntl.LOCK_EX)
    os.write(new, b"third\n")
    eventually(lambda: followed.seen() == b"first\nsecond\nthird\n")
    os.close(new)
    assert followed.end() == b"first\nsecond\nthird\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "needs one NAME"),
        (["a", "b"], "needs one NAME"),
        (["nobody"], "no session is called 'nobody'"),
        (["-n", "x", "shop"], "is not a number"),
        (["-n", "-1", "shop"], "is not a number"),
    ],
)
def test_bad_input_is_one_clear_line(words: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        dispatch(["logs", *words])


def test_a_session_in_the_foreground_keeps_none() -> None:
    with sessions({"name": "shop"}), pytest.raises(NetsandboxError, match="run --detach"):
        dispatch(["logs", "shop"])
