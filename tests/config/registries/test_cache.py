from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries import cache
from netsandbox.config.registries.answer import Answer, Registry
from tests.config.registries.conftest import Scene

ANSWER = Answer(
    (Registry("a.example:443", "x\n/y:1", True), Registry("b.example:80", "NAME", False)),
    ("n1", "n2"),
    (("$A", "absent"), ("/x", "1")),
    ("/opt/npm",),
)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ANSWERS = st.builds(
    Answer,
    st.lists(st.builds(Registry, TEXT, TEXT, st.booleans())).map(tuple),
    st.lists(TEXT).map(tuple),
    st.lists(st.tuples(TEXT, TEXT)).map(tuple),
    st.lists(TEXT).map(tuple),
    st.booleans(),
)


@given(ANSWERS)
def test_what_was_written_is_read(answer: Answer) -> None:
    assert cache.decode(cache.encode(answer, 1000), 1000) == answer


@given(ANSWERS, st.data())
def test_what_was_damaged_is_no_answer(answer: Answer, data: st.DataObject) -> None:
    whole = bytearray(cache.encode(answer, 1000))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    assert cache.decode(bytes(whole), 1000) is None
    assert cache.decode(bytes(whole[:at]), 1000) is None


@given(st.binary())
def test_a_body_with_a_good_digest_and_no_sense_is_no_answer(body: bytes) -> None:
    assert cache.decode(cache.digest(body).encode() + body, 1000) is None
    assert cache.decode(body, 1000) is None


def test_an_answer_ages_and_one_with_gaps_sooner() -> None:
    kept = cache.encode(ANSWER, 1000)
    assert cache.decode(kept, 1000 + 7 * 86400 - 1) == ANSWER
    assert cache.decode(kept, 1000 + 7 * 86400) is None
    assert cache.decode(kept, 999) is None
    gaps = Answer(ANSWER.registries, ANSWER.notes, ANSWER.consulted, ANSWER.unasked, complete=False)
    assert cache.decode(cache.encode(gaps, 1000), 1599) == gaps
    assert cache.decode(cache.encode(gaps, 1000), 1600) is None


def only_file() -> Path:
    (file,) = Path(cache.folder()).iterdir()
    return file


def keep_and_recall(environment: dict[str, str]) -> Answer | None:
    cache.keep("npm", "/p", "/h", Answer(ANSWER.registries, (), (("$A", "absent"),)))
    return cache.recall("npm", "/p", "/h", environment)


def test_an_answer_is_for_one_tool_folder_and_home(scene: Scene) -> None:
    assert keep_and_recall({}) is not None
    assert (
        cache.recall("pip", "/p", "/h", {})
        is cache.recall("npm", "/q", "/h", {})
        is cache.recall("npm", "/p", "/i", {})
        is None
    )
    assert cache.recall("npm", "/p", "/h", {"A": "1"}) is None


def test_it_is_ours_alone_to_read_and_nothing_else_is_left(scene: Scene) -> None:
    assert keep_and_recall({}) is not None
    assert only_file().stat().st_mode & 0o777 == 0o600
    assert Path(cache.folder()).stat().st_mode & 0o077 == 0


def test_a_file_that_others_may_write_is_no_answer(scene: Scene) -> None:
    keep_and_recall({})
    only_file().chmod(0o620)
    assert cache.recall("npm", "/p", "/h", {}) is None
    only_file().chmod(0o600)
    assert cache.recall("npm", "/p", "/h", {}) is not None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_no_answer(scene: Scene) -> None:
    keep_and_recall({})
    os.chown(only_file(), 65534, 65534)
    assert cache.recall("npm", "/p", "/h", {}) is None


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "empty", "giant"])
def test_what_is_no_ordinary_file_is_no_answer(scene: Scene, kind: str) -> None:
    keep_and_recall({})
    file = only_file()
    other = file.rename(scene.home / "other")
    if kind == "link":
        file.symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(file, 0o600)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"" if kind == "empty" else other.read_bytes() + b"\0" * 300_000)
    assert cache.recall("npm", "/p", "/h", {}) is None


def test_where_nothing_can_be_written_nothing_is_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/x")
    assert keep_and_recall({}) is None


def test_a_failed_write_leaves_nothing_behind(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    cache.keep("npm", "/p", "/h", ANSWER)
    assert list(Path(cache.folder()).iterdir()) == []


def test_old_answers_make_room(scene: Scene) -> None:
    for number in range(505):
        cache.keep("npm", f"/{number}", "/h", Answer((), (), ()))
    assert len(list(Path(cache.folder()).iterdir())) < 300
    assert cache.recall("npm", "/504", "/h", {}) is not None
    assert cache.recall("npm", "/0", "/h", {}) is None
