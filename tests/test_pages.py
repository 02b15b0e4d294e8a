"""The pages that `make docs` writes are up to date, and each generator refuses a page that it cannot fill."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from netsandbox.config.key_docs import SCHEMA_FILE
from tests.rig.leftovers import SOON

ROOT = Path(__file__).resolve().parents[1]
KEYS = ROOT / "docs" / "configuration.md"
ATTACKS = ROOT / "docs" / "attacks.md"
INVARIANTS = ROOT / "docs" / "invariants.md"
BACKENDS = ROOT / "docs" / "threat-model.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def generate(script: str, *files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / script, *files],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def generate_pages(folder: Path, keys: str, architecture: str) -> tuple[subprocess.CompletedProcess[str], Path, Path]:
    """Run scripts/pages.py on copies of its two pages."""
    keys_page, architecture_page = folder / "keys.md", folder / "architecture.md"
    keys_page.write_text(keys, "utf-8")
    architecture_page.write_text(architecture, "utf-8")
    return (
        generate("pages.py", keys_page, folder / "schema.json", architecture_page),
        keys_page,
        architecture_page,
    )


def test_the_keys_the_schema_and_the_stages_are_up_to_date(tmp_path: Path) -> None:
    keys, architecture = KEYS.read_text("utf-8"), ARCHITECTURE.read_text("utf-8")
    ended, keys_page, architecture_page = generate_pages(tmp_path, keys, architecture)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert keys_page.read_text("utf-8") == keys, "run `make docs`"
    assert architecture_page.read_text("utf-8") == architecture, "run `make docs`"
    assert (tmp_path / "schema.json").read_text("utf-8") == Path(SCHEMA_FILE).read_text("utf-8"), "run `make docs`"


def test_edited_tables_are_written_again(tmp_path: Path) -> None:
    keys, architecture = KEYS.read_text("utf-8"), ARCHITECTURE.read_text("utf-8")
    edited_keys = keys.replace("| `allow_domains` |", "| `allow_names` |")
    edited_architecture = architecture.replace("stateDiagram-v2", "stateDiagram-v1")
    assert (edited_keys != keys, edited_architecture != architecture) == (True, True)
    _, keys_page, architecture_page = generate_pages(tmp_path, edited_keys, edited_architecture)
    assert keys_page.read_text("utf-8") == keys
    assert architecture_page.read_text("utf-8") == architecture


@pytest.mark.parametrize("missing", ["keys", "architecture"])
def test_a_page_without_its_markers_is_not_changed(missing: str, tmp_path: Path) -> None:
    pages = {"keys": KEYS.read_text("utf-8"), "architecture": ARCHITECTURE.read_text("utf-8"), missing: "# A page\n"}
    ended, keys_page, architecture_page = generate_pages(tmp_path, **pages)
    assert ended.returncode == 1
    assert "make docs" in ended.stderr
    assert {"keys": keys_page.read_text("utf-8"), "architecture": architecture_page.read_text("utf-8")} == pages
    assert not (tmp_path / "schema.json").exists()


@pytest.mark.attack(212)
@pytest.mark.parametrize(
    ("script", "source"), [("attacks.py", ATTACKS), ("invariants.py", INVARIANTS), ("backends.py", BACKENDS)]
)
def test_the_lists_of_tests_are_up_to_date(script: str, source: Path, tmp_path: Path) -> None:
    """A test that loses its mark, its tag or its file changes the page."""
    page = tmp_path / "page.md"
    shutil.copy(source, page)
    ended = generate(script, page)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert page.read_text("utf-8") == source.read_text("utf-8"), "run `make docs`"


def test_a_mark_without_a_row_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    without = "".join(line for line in ATTACKS.read_text("utf-8").splitlines(keepends=True) if "| 14 |" not in line)
    page.write_text(without, "utf-8")
    ended = generate("attacks.py", page)
    assert ended.returncode == 1
    assert f"no row for attack {14} (" in ended.stderr
    assert page.read_text("utf-8") == without


def test_an_attack_without_a_test_promises_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    row = "| 99999 | An attack that nobody tried. | Denied. | `test_promised.py` |\n"
    page.write_text(ATTACKS.read_text("utf-8") + row, "utf-8")
    assert generate("attacks.py", page).returncode == 0
    assert page.read_text("utf-8").endswith("| 99999 | An attack that nobody tried. | Denied. | no test yet |\n")


def test_the_end_of_a_session_is_waited_for_as_long_as_its_promise_says() -> None:
    assert f"the processes within {SOON:g} seconds on a busy machine" in INVARIANTS.read_text("utf-8")


def test_a_tag_without_a_promise_is_an_error(tmp_path: Path) -> None:
    page, tag = tmp_path / "page.md", f"INV-{4}"  # written so that this file does not carry the tag
    page.write_text(INVARIANTS.read_text("utf-8").replace(f"| {tag} | **", "| (removed) | **"), "utf-8")
    ended = generate("invariants.py", page)
    assert ended.returncode == 1
    assert f"{tag}: no such promise" in ended.stderr


MARKED = """
'''Shows {tag}-1.'''
pytestmark = [pytest.mark.usefixtures("x"), pytest.mark.backend("broker")]

def test_by_its_file(): pass

@pytest.mark.backend("namespaces", "broker")
def test_by_its_mark():
    '''{tag}-2.'''
"""


def test_a_test_shows_its_promises_in_the_backends_that_it_names(backends: Any) -> None:
    first, second = backends.tests_of("tests/integration/test_x.py", MARKED.format(tag="INV"))
    assert (first.backends, second.backends) == (("broker",), ("namespaces", "broker"))
    assert (len(first.promises), len(second.promises)) == (1, 2)
    assert sorted(backends.counted([first, second]).values()) == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("tests/integration/test_x.py", ("namespaces",)),
        ("tests/backends/broker/test_x.py", ("broker",)),
        ("tests/backends/linux/test_x.py", ("namespaces", "broker")),
        ("tests/interpose/test_macos_x.py", ("seatbelt",)),
        ("tests/policy/test_x.py", ("all",)),
    ],
)
def test_without_a_mark_the_folder_names_the_backends(backends: Any, path: str, names: tuple[str, ...]) -> None:
    (only,) = backends.tests_of(path, "def test_x(): pass")
    assert only.backends == names


def test_an_unknown_backend_and_an_unknown_promise_are_errors(backends: Any) -> None:
    with pytest.raises(SystemExit, match="jail: no such backend; use namespaces, broker, seatbelt"):
        list(backends.tests_of("tests/test_x.py", "@pytest.mark.backend('jail')\ndef test_x(): pass"))
    with pytest.raises(SystemExit, match=r"no such promise in docs/invariants\.md"):
        backends.table({}, Counter({("INV", "broker"): 1}))
    with pytest.raises(SystemExit, match="no test shows X on broker, X on seatbelt"):
        backends.table({"X": "Words"}, Counter({("X", "namespaces"): 1}))
    with pytest.raises(SystemExit, match="the page lacks"):
        backends.with_table("# A page\n", "")


@pytest.fixture(scope="module")
def backends() -> Any:
    spec = importlib.util.spec_from_file_location("backends_script", ROOT / "scripts" / "backends.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
