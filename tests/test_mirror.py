"""The tests mirror the code: `a/b.py` is tested by `test_b.py` in the folder `a` of the tests, or by
`test_b_<aspect>.py` beside it.

Packages are mirrored by their short names: `proxy/netsandbox_proxy/flow.py` by `tests/proxy/test_flow.py`. A module
without a function that does something (a table, a protocol) needs no test. Folders in `UNMIRRORED` test the product as
a whole, or are oracles and tools of the tests.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
PACKAGES = {
    "netsandbox": "",
    "proxy/netsandbox_proxy": "proxy",
    "dns/netsandbox_dns": "dns",
    "portmap/netsandbox_portmap": "portmap",
    "interpose/netsandbox_interpose": "interpose",
}
UNMIRRORED = ("bench", "integration", "rig", "seatbelt_model", "backends/seatbelt/questions")
# Sources beside the packages' Python: C units, and the scripts that build them.
OTHER_SOURCES = {
    "cli": ("netsandbox/cli/native/*.c",),
    "interpose": ("interpose/src/*.[ch]", "interpose/*.py"),
    "backends/broker": ("netsandbox/backends/broker/native/*.c",),
    "backends/linux": ("netsandbox/backends/linux/native/*.c",),
    "backends/namespaces": ("netsandbox/backends/namespaces/native/*.c",),
    "backends/seatbelt": ("netsandbox/backends/seatbelt/native/*.c",),
}
BUILT = {"interpose": {"macos"}}  # what is built for Macs, of the same sources


def product_modules() -> dict[str, Path]:
    """`session/gate` for `netsandbox/session/gate.py`."""
    return {
        str(Path(prefix) / path.relative_to(ROOT / package).with_suffix("")): path
        for package, prefix in PACKAGES.items()
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.name.startswith("__") and "files" not in path.relative_to(ROOT / package).parts
    }


def does_something(path: Path) -> bool:
    """Whether a function of the module has a body besides its docstring and `...`, or a constructor's assignments."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.walk(ast.parse(path.read_text("utf-8")))
    return any(
        not all(_declares(line, node.name) for line in node.body) for node in tree if isinstance(node, functions)
    )


def _declares(line: ast.stmt, function: str) -> bool:
    if function == "__init__" and isinstance(line, ast.Assign | ast.AnnAssign):
        return True
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def mirroring_tests() -> dict[str, list[str]]:
    """The tests of each mirrored folder: `test_<name>.py` as <name>."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        folder = path.parent.relative_to(TESTS)
        if not any(folder.is_relative_to(other) for other in UNMIRRORED):
            found.setdefault(str(folder), []).append(path.stem.removeprefix("test_"))
    return found


def names(test: str, module: str) -> bool:
    return test == module or test.startswith(f"{module}_")


def test_every_module_has_its_tests() -> None:
    tests = mirroring_tests()
    missing = [
        module
        for module, path in product_modules().items()
        if does_something(path)
        and not any(names(test, Path(module).name) for test in tests.get(str(Path(module).parent), ()))
    ]
    assert missing == [], f"without tests/<folder>/test_<module>.py: {' '.join(missing)}"


def test_every_test_names_a_module() -> None:
    modules = product_modules()
    strangers = []
    for folder, tests in mirroring_tests().items():
        if folder == ".":  # pages, scripts and the tests themselves are tested there too
            continue
        known = {Path(module).name for module in modules if str(Path(module).parent) == folder}
        known |= BUILT.get(folder, set())
        known |= {path.stem for pattern in OTHER_SOURCES.get(folder, ()) for path in ROOT.glob(pattern)}
        strangers += [f"{folder}/test_{test}.py" for test in tests if not any(names(test, name) for name in known)]
    assert strangers == [], f"names no module of its folder: {' '.join(strangers)}"


@pytest.mark.parametrize("folder", UNMIRRORED)
def test_every_folder_that_mirrors_nothing_exists(folder: str) -> None:
    assert (TESTS / folder).is_dir()
