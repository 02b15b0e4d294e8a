"""Modules come out of one file as long as their sources are what they were, and no session can write that file."""

from __future__ import annotations

import marshal
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime import bytecode_bundle as module
from netsandbox.runtime.bundle_writer import packed
from netsandbox.runtime.bytecode_bundle import Bundle, read_bundle

NAME = "netsandbox_example"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / NAME / "__init__.py"
    file.parent.mkdir()
    file.write_text("answer = 41\n")
    return file


def bundled(source: Path, text: str = "answer = 42\n") -> Bundle:
    """A bundle with other code than its source has, so that it shows which of them was taken."""
    state = source.stat()
    code = marshal.dumps(compile(text, str(source), "exec"))
    place = source.parent.parent / "bundle"
    place.write_bytes(packed({NAME: ((str(source), state.st_mtime_ns, state.st_size), code)}))
    return read_bundle(str(place))


def imported(found: Bundle, monkeypatch: pytest.MonkeyPatch, folder: Path) -> ModuleType:
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    try:
        return __import__(NAME)
    finally:
        sys.modules.pop(NAME, None)


def test_a_module_is_taken_from_the_bundle_and_looks_like_any_other(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bundled(source)
    loaded: Any = imported(found, monkeypatch, source.parent.parent)
    assert loaded.answer == 42
    assert (loaded.__file__, list(loaded.__path__)) == (str(source), [str(source.parent)])
    assert loaded.__spec__.loader.get_source(NAME) == "answer = 41\n"
    assert found.missed == []


@pytest.mark.parametrize("change", ["time", "size", "gone"])
def test_a_module_whose_source_has_changed_is_imported_as_ever(
    source: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    found = bundled(source)
    state = source.stat()
    if change == "time":
        os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    elif change == "size":
        source.write_text("answer = 43 # longer\n")
        os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    else:
        source.unlink()
    assert found.find_spec(NAME) is None
    assert found.missed == [NAME]
    if change != "gone":
        loaded: Any = imported(found, monkeypatch, source.parent.parent)
        assert loaded.answer == {"time": 41, "size": 43}[change]


def test_modules_of_others_are_not_missed(source: Path) -> None:
    found = bundled(source)
    assert found.find_spec("tomllib") is None
    assert found.missed == []


def test_what_is_not_there_or_of_another_interpreter_or_folder_is_empty(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bundled(source)
    assert read_bundle(found.place).entries == found.entries != {}
    assert read_bundle(f"{found.place}.absent").entries == {}
    monkeypatch.setattr(module, "MARK", (*module.MARK[:2], "/elsewhere"))
    assert read_bundle(found.place).entries == {}


def test_it_lacks_something_only_where_that_can_be_mended(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, elsewhere = bundled(source), read_bundle(str(source.parent / "absent" / "bundle"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert not found.lacks
    for each in (found, elsewhere):
        assert each.find_spec("netsandbox_absent") is None
    assert found.lacks
    assert not elsewhere.lacks
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not found.lacks


@given(st.data())
def test_a_bundle_that_is_not_whole_is_empty(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = packed({NAME: (("/a.py", 1, 2), b"code" * 3), "netsandbox_other": (("/b.py", 3, 4), b"more")})
    place = tmp_path_factory.mktemp("cut") / "bundle"
    place.write_bytes(whole)
    assert len(read_bundle(str(place)).entries) == 2
    place.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert read_bundle(str(place)).entries == {}
