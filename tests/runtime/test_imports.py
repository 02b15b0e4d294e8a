"""Modules come out of one file as long as their sources are what they were, and no session can write that file."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime import imports as module
from netsandbox.runtime.bundle_writer import complete, packed
from netsandbox.runtime.imports import Bundle, read_bundle, search_path

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


def test_modules_of_others_and_of_the_interpreter_are_not_missed(source: Path) -> None:
    found = bundled(source)
    for name in ("hypothesis", "sys", "os", "posixpath", "zipimport"):
        assert found.find_spec(name) is None
    assert found.missed == []


def test_a_shared_object_is_loaded_from_where_it_was_found(tmp_path: Path) -> None:
    import _ctypes

    found = read_bundle(str(tmp_path / "bundle"))
    assert found.find_spec("_ctypes") is None
    complete(found)
    spec = read_bundle(found.place).find_spec("_ctypes")
    assert spec is not None
    assert (spec.origin, type(spec.loader)) == (_ctypes.__file__, ExtensionFileLoader)


def test_what_cannot_be_bundled_is_left_to_the_others_and_not_missed_again(tmp_path: Path) -> None:
    found = read_bundle(str(tmp_path / "bundle"))
    assert found.find_spec("netsandbox_absent") is None
    complete(found)
    again = read_bundle(found.place)
    assert again.entries == {"netsandbox_absent": None}
    assert again.find_spec("netsandbox_absent") is None
    assert again.missed == []


def test_a_closed_bundle_has_nothing(source: Path) -> None:
    found = bundled(source)
    found.close()
    assert found.find_spec(NAME) is None


def late(source: Path, *names: str) -> Bundle:
    state, place = source.stat(), source.parent.parent / "bundle"
    entry = (str(source), state.st_mtime_ns, state.st_size), b"code of it"
    place.write_bytes(packed({"netsandbox_first": entry, NAME: (entry[0], b"late"), "netsandbox_last": entry}, names))
    return read_bundle(str(place))


def test_code_for_after_the_start_is_read_at_once_and_that_of_no_other_module(source: Path) -> None:
    kept = late(source, NAME, "netsandbox_last").late_code()
    assert kept is not None
    assert {name: (file, bytes(code)) for name, (file, code) in kept.items()} == {
        NAME: (str(source), b"late"),
        "netsandbox_last": (str(source), b"code of it"),
    }


def test_what_is_loaded_already_is_not_read_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, NAME, ModuleType(NAME))
    assert list(late(source, NAME, "netsandbox_last").late_code() or ()) == ["netsandbox_last"]
    assert late(source, NAME).late_code() == {}


@pytest.mark.parametrize("why", ["none-known", "absent", "changed", "missed", "closed", "cut"])
def test_without_all_of_that_code_everything_is_loaded_first(source: Path, why: str) -> None:
    found = late(source, *{"none-known": (), "absent": (NAME, "netsandbox_absent")}.get(why, (NAME,)))
    if why == "changed":
        os.utime(source, ns=(0, 0))
    elif why == "missed":
        found.missed.append("netsandbox_other")
    elif why == "closed":
        found.close()
    elif why == "cut":
        os.truncate(found.place, 10)
    assert found.late_code() is None


def test_a_module_that_nothing_needs_after_the_start_may_be_missed(source: Path) -> None:
    found = late(source, NAME)
    found.missed += ["netsandbox.config.document", "tomllib"]
    assert list(found.late_code() or ()) == [NAME]


def test_a_sealed_module_comes_from_memory_whatever_its_file_says(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = memoryview(marshal.dumps(compile("answer = 42", str(source), "exec")))
    source.write_text("answer = 'planted'")
    sealed: Any = module.Sealed({NAME: (str(source), code)})
    monkeypatch.setattr(sys, "meta_path", [sealed, *sys.meta_path])
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    assert __import__(NAME).answer == 42
    sys.modules.pop(NAME)
    assert sealed.find_spec("netsandbox_other") is None


def test_standard_streams_that_are_closed_stay_closed(source: Path) -> None:
    place = bundled(source).place
    script = f"""
import os; os.close(0)
from netsandbox.runtime.imports import read_bundle
bundle = read_bundle({place!r})
print(bundle.entries, os.path.exists("/proc/self/fd/0"))"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{} False\n"


@pytest.mark.parametrize(
    ("root", "first"),
    [
        ("/venv/lib/python3.11/site-packages", ["/venv/lib/python3.11/site-packages"]),
        (
            "/usr/lib64/py/site-packages",
            ["/usr/lib64/py/site-packages", "/usr/lib/py/site-packages"],
        ),
        (
            "/home/user/tree",
            ["/home/user/tree", "/home/user/tree/proxy", "/home/user/tree/dns", "/home/user/tree/portmap"],
        ),
    ],
)
def test_our_folders_are_searched_before_the_packages_that_we_need(root: str, first: list[str]) -> None:
    found = search_path(root, "/venv/bin/python3.11")
    own = f"/venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    assert found[: len(first)] == first
    assert own in found
    assert len(found) == len(set(found))
    assert all(folder.startswith("/") for folder in found)


def test_what_is_not_there_or_of_another_interpreter_or_folder_is_empty(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bundled(source)
    assert read_bundle(found.place).entries == found.entries != {}
    assert read_bundle(f"{found.place}.absent").entries == {}
    monkeypatch.setattr(module, "MARK", (*module.MARK[:2], "/elsewhere", *module.MARK[3:]))
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
