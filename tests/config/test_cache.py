"""A value is recalled while each of its inputs is unchanged, and only from a file that is just as it was written."""

from __future__ import annotations

import marshal
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config import cache
from netsandbox.config.cache import ABSENT, fingerprint, with_prefix
from netsandbox.runtime.private_file import digest

VALUE = (("a.example:443", True), None, {"k": (1, 2.5)})
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(), lambda inner: st.lists(inner).map(tuple)
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def stored(**changes: str) -> Path:
    cache.store("kind", "key", VALUE, ((cache.FINGERPRINT, "$A", cache.ABSENT),), 100)
    return Path(cache.path_of("kind", "key"))


def recalled(**environment: str) -> Any:
    return cache.recall("kind", "key", environment)


@given(st.tuples(PLAIN))
def test_what_was_stored_is_recalled(value: object) -> None:
    cache.store("any", "key", value, (), 100)
    assert cache.recall("any", "key") == value


def test_a_value_is_for_one_kind_key_and_state_of_its_inputs() -> None:
    stored()
    assert recalled() == VALUE
    assert cache.recall("other", "key", {}) is cache.recall("kind", "other", {}) is None
    assert recalled(A="1") is None


@given(st.data())
def test_what_was_damaged_is_no_value(data: st.DataObject) -> None:
    file = stored()
    whole = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    file.write_bytes(whole[:at])
    assert recalled() is None
    whole[at] ^= data.draw(st.integers(1, 255))
    file.write_bytes(whole)
    assert recalled() is None


@pytest.mark.parametrize(
    "body", [b"", b"N", b"noise", marshal.dumps((1, 2)), marshal.dumps((cache.MARK, 0, 9e9, 1, ()))]
)
def test_a_body_with_a_good_digest_and_no_sense_is_no_value(body: bytes) -> None:
    stored().write_bytes(digest(body).encode() + body)
    assert recalled() is None


def test_another_version_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    file = stored()
    monkeypatch.setattr(cache, "MARK", ("netsandbox 0", 0))
    file.rename(cache.path_of("kind", "key"))
    assert recalled() is None


def test_a_value_ages_and_one_of_the_future_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    stored()
    now = time.time()
    for seconds, expected in ((98, VALUE), (101, None), (-2, None)):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: now + seconds)
        assert recalled() == expected


def test_the_cache_is_the_users_alone_and_nothing_else_is_left() -> None:
    file = stored()
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.stat(cache.folder()).st_mode & 0o777 == 0o700
    assert os.listdir(cache.folder()) == [file.name]


def test_a_file_that_others_may_write_is_no_value() -> None:
    file = stored()
    file.chmod(0o620)
    assert recalled() is None
    file.chmod(0o600)
    assert recalled() == VALUE, "the twin"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_no_value() -> None:
    os.chown(stored(), 65534, 65534)
    assert recalled() is None


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "empty", "giant"])
def test_what_is_no_ordinary_file_is_no_value(state: Path, kind: str) -> None:
    file = stored()
    other = file.rename(state / "other")
    if kind == "link":
        file.symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(file, 0o600)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"" if kind == "empty" else other.read_bytes() + b"\0" * 300_000)
    assert recalled() is None


def test_where_nothing_can_be_written_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/x")
    stored()
    assert recalled() is None


def test_a_value_that_is_too_large_or_not_plain_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("kind", "key", (object(),), (), 100)
    assert recalled() is None
    monkeypatch.setattr(cache, "MAX_SIZE", 100)
    stored()
    assert recalled() is None


def test_a_failed_write_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        stored()
    assert os.listdir(cache.folder()) == []


def test_old_values_make_room() -> None:
    for number in range(505):
        cache.store("kind", number, VALUE, (), 100)
    assert len(os.listdir(cache.folder())) < 300
    assert cache.recall("kind", 504) == VALUE
    assert cache.recall("kind", 0) is None


def test_inputs_are_unchanged_only_if_each_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    exists = (cache.EXISTS, str(tmp_path / "a"), True)
    assert cache.unchanged(())
    assert cache.unchanged((exists,))
    assert not cache.unchanged((exists, (cache.EXISTS, str(tmp_path / "b"), True)))


def test_the_content_of_a_pipe_or_a_giant_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("12")
    assert cache.content_digest(str(tmp_path / "pipe")) == cache.content_digest(str(tmp_path / "none")) == cache.ABSENT
    assert cache.content_digest(str(tmp_path / "file")) == digest(b"12")
    monkeypatch.setattr(cache, "MAX_CONTENT", 1)
    assert cache.content_digest(str(tmp_path / "file")) == cache.ABSENT


def test_a_file_has_another_fingerprint_after_each_change(tmp_path: Path) -> None:
    file = tmp_path / "file"
    seen = [fingerprint(str(file), {})]
    file.write_text("a")
    seen.append(fingerprint(str(file), {}))
    assert fingerprint(str(file), {}) == seen[-1]
    file.write_text("ab")
    seen.append(fingerprint(str(file), {}))
    os.utime(file, ns=(0, 0))
    seen.append(fingerprint(str(file), {}))
    file.chmod(0o600)
    seen.append(fingerprint(str(file), {}))
    assert seen[0] == ABSENT
    assert len(set(seen)) == 5


def test_a_change_shows_although_size_and_time_are_set_back(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a")
    before, state = fingerprint(str(file), {}), file.stat()
    while file.stat().st_ctime_ns == state.st_ctime_ns:  # until the kernel's clock ticks
        file.write_text("b")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file.stat().st_mtime_ns == state.st_mtime_ns
    assert fingerprint(str(file), {}) != before


def test_names_that_no_file_can_have_are_absent() -> None:
    assert fingerprint("/a\0b", {}) == fingerprint("/" + "a" * 5000, {}) == fingerprint("/etc/passwd/x", {}) == ABSENT


def test_a_variables_fingerprint_does_not_tell_its_value() -> None:
    environment = {"PIP_INDEX_URL": "https://u:hunter2@a.example"}
    assert "hunter2" not in fingerprint("$PIP_INDEX_URL", environment)
    assert "hunter2" not in fingerprint("$pip_*", environment)
    assert fingerprint("$PIP_INDEX_URL", {}) == ABSENT
    assert fingerprint("$PIP_INDEX_URL", {"PIP_INDEX_URL": ""}) not in (
        ABSENT,
        fingerprint("$PIP_INDEX_URL", environment),
    )


def test_a_prefix_stands_for_all_its_variables_in_any_case() -> None:
    environment = {"NPM_CONFIG_A": "1", "npm_config_b": "2", "OTHER": "3"}
    assert with_prefix(environment, "npm_config_") == ["NPM_CONFIG_A", "npm_config_b"]
    before = fingerprint("$npm_config_*", environment)
    assert fingerprint("$npm_config_*", {**environment, "OTHER": "4"}) == before
    assert fingerprint("$npm_config_*", {**environment, "npm_config_c": ""}) != before
    assert fingerprint("$npm_config_*", {**environment, "NPM_CONFIG_A": "2"}) != before
