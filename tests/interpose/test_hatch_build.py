"""The build hook: whatever this machine has for a compiler, an install ends with a program or with a plain reason."""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "int main(void) { return 7; }\n"
WHEEL = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a native helper")


@pytest.fixture
def hook() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "interpose" / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def native(tmp_path: Path, compiler: str) -> Path:
    (tmp_path / "main.c").write_text(SOURCE)
    return tmp_path


def is_dynamic(program: Path) -> bool:
    """True if the program asks for a loader: it has a PT_INTERP header, elf(5)."""
    data = program.read_bytes()
    (offset,) = struct.unpack_from("=Q", data, 32)
    size, count = struct.unpack_from("=HH", data, 54)
    kinds = [struct.unpack_from("=I", data, offset + number * size)[0] for number in range(count)]
    return 3 in kinds


def compiler_that(folder: Path, script: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_helper_is_static_and_runs(hook: Any, native: Path) -> None:
    program = hook.compile_helper(native)
    assert subprocess.run([program], check=False).returncode == 7
    assert not is_dynamic(program)


def test_without_a_static_c_library_the_helper_is_dynamic(
    hook: Any, native: Path, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = f'for a; do [ "$a" = -static ] && exit 1; done; exec {compiler} "$@"'
    monkeypatch.setenv("CC", compiler_that(native, refuse))
    program = hook.compile_helper(native)
    assert subprocess.run([program], check=False).returncode == 7
    assert is_dynamic(program)


def test_a_helper_that_does_not_compile_stops_the_build_and_leaves_the_old_one(hook: Any, native: Path) -> None:
    (native / "netsandbox-init").write_text("old")
    (native / "main.c").write_text("int main(void) { return undeclared(); }\n")
    with pytest.raises(RuntimeError, match="undeclared"):
        hook.compile_helper(native)
    assert (native / "netsandbox-init").read_text() == "old"
    assert sorted(os.listdir(native)) == ["main.c", "netsandbox-init"]


def test_a_compiler_that_is_not_there_is_named(hook: Any, native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match=r"no-such-compiler.*install gcc"):
        hook.compile_helper(native)


@pytest.mark.parametrize(("target", "borrowed"), [("wheel", ["ziglang"]), ("sdist", [])])
def test_a_compiler_is_borrowed_only_to_build_a_wheel_on_a_machine_without_one(
    hook: Any, monkeypatch: pytest.MonkeyPatch, target: str, borrowed: list[str]
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert hook.NativeBuildHook(str(ROOT), {}, None, None, "", target).dependencies() == borrowed


def test_a_wheel_carries_the_helper_and_the_start_script_as_programs(tmp_path: Path, compiler: str) -> None:
    copy = tmp_path / "copy"
    unwanted = shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", "tests", "node_modules", ".*_cache", ".hypothesis"
    )
    shutil.copytree(ROOT, copy, ignore=unwanted)
    command = [sys.executable, "-c", WHEEL, str(tmp_path)]
    built = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*-py3-none-linux_*.whl")
    with zipfile.ZipFile(wheel) as archive:
        programs = {entry.filename for entry in archive.infolist() if entry.external_attr >> 16 & 0o111}
    scripts = {name for name in programs if name.endswith(".data/scripts/netsandbox")}
    assert "netsandbox/native/netsandbox-init" in programs
    assert len(scripts) == 1, "netsandbox/native/netsandbox.py must be executable in the repository"
