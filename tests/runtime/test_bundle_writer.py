"""The bundle is written before the command runs, once for what it lacks, and never by the command."""

from __future__ import annotations

import ast
import marshal
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from netsandbox.runtime.bundle_writer import complete, lean
from netsandbox.runtime.imports import read_bundle
from tests.rig.account import PACKAGES
from tests.rig.workshop import ROOT

ATTEMPTS = """
import os, sys
def attempt(path, change):
    try: change(path)
    except OSError as error: return type(error).__name__
    return "done"
def overwrite(path): open(path, "r+b").close()
def replace(path): open(path + ".new", "wb").close(); os.replace(path + ".new", path)
for path in sys.argv[1:]:
    print(attempt(path, overwrite), attempt(path, replace), attempt(path, os.unlink))
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "bundle")


def test_what_was_missed_is_in_the_next_one_beside_what_was_known(place: str) -> None:
    first = read_bundle(place)
    first.missed += ["netsandbox.runtime.private_file", "netsandbox_absent"]
    complete(first)
    second = read_bundle(place)
    assert [name for name, entry in second.entries.items() if entry] == ["netsandbox.runtime.private_file"]
    spec = second.find_spec("netsandbox.runtime.private_file")
    assert spec is not None
    assert spec.loader is not None
    assert "content" in spec.loader.get_code("netsandbox.runtime.private_file").co_names  # type: ignore[attr-defined]
    second.missed.append("netsandbox.runtime.imports")
    complete(second)
    third = read_bundle(place)
    assert [name for name, entry in third.entries.items() if entry] == [
        "netsandbox.runtime.private_file",
        "netsandbox.runtime.imports",
    ]
    assert third.code(third.entries["netsandbox.runtime.private_file"]) == second.code(
        second.entries["netsandbox.runtime.private_file"]
    )


WORDY = """
'''Of the module.'''
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import absent
else:
    chosen = "at run time"

class Wordy:
    '''Of the class.'''
    field: absent.Type = 1
    if TYPE_CHECKING:
        other: int

def wordy(number: absent.Type = 2, *rest: absent.Type, key: absent.Type = 3) -> absent.Type:
    '''Of the function.'''
    def inner(text: absent.Type) -> absent.Type:
        '''Nothing else.'''
    if TYPE_CHECKING:
        return absent
    local: absent.Type = number
    return local, rest, key, inner(""), "text"
"""


def test_code_is_kept_without_docstrings_annotations_and_what_only_type_checkers_see() -> None:
    names: dict[str, Any] = {"__name__": "wordy"}
    code = lean(WORDY.encode(), "wordy.py")
    exec(code, names)
    assert (names["chosen"], names["wordy"](4)) == ("at run time", (4, (), 3, None, "text"))
    assert names["Wordy"].__annotations__ == {"field": "absent.Type"}  # which `frozen` reads
    assert names["wordy"].__annotations__ == {}
    assert [names[name].__doc__ for name in ("wordy", "Wordy")] == [None, None]
    assert b"Of the" not in marshal.dumps(code)
    assert "annotations" not in names
    assert names["wordy"].__code__.co_firstlineno == 1 + WORDY.splitlines().index(
        next(line for line in WORDY.splitlines() if line.startswith("def wordy"))
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_ours_keeps_its_functions(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        source = path.read_bytes()
        unseen = {
            line
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for line in range(node.lineno, (node.body[-1].end_lineno or 0) + 1)
        }
        whole = functions(compile(source, str(path), "exec", dont_inherit=True))
        assert [*functions(lean(source, str(path)))] == [each for each in whole if each[1] not in unseen]


def functions(code: CodeType) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each.co_qualname, each.co_firstlineno, each.co_varnames
            yield from functions(each)


@pytest.mark.attack(150)
def test_a_module_of_our_name_from_elsewhere_is_not_kept(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may have left it in a folder of the user's that Python searches; kept, it would be loaded for ever."""
    (tmp_path / "netsandbox_left.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "netsandbox_left", __import__("netsandbox_left"))
    found = read_bundle(place)
    found.missed += ["netsandbox_left", "netsandbox.runtime.private_file"]
    complete(found)
    entries = read_bundle(place).entries
    assert [name for name, entry in entries.items() if entry] == ["netsandbox.runtime.private_file"]


@pytest.mark.open_files
@pytest.mark.usefixtures("user_namespaces")
def test_a_launch_writes_it_the_next_one_uses_it_and_no_session_changes_it(netsandbox: Any, short_tmp: Path) -> None:
    site = short_tmp / "site"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, site / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": None}
    assert netsandbox("run", "--", "true", env=environment).returncode == 0
    (bundle,) = (site / "netsandbox" / "__pycache__").glob("launch.*.bundle")
    netsandbox("run", "--", "true", env=environment)  # the first one had to read the configuration
    whole, file = bundle.read_bytes(), bundle.stat().st_ino
    assert b"netsandbox.session.session" in whole
    other = site / "other"
    other.write_bytes(b"")
    run = netsandbox("run", "--", netsandbox.python, "-c", ATTEMPTS, str(bundle), str(other), env=environment)
    assert run.stdout.splitlines() == ["OSError OSError OSError", "done done done"], run.stderr
    assert (bundle.read_bytes(), bundle.stat().st_ino) == (whole, file)  # nor did the launch miss anything in it
