"""The build hook: whatever this machine has for a compiler, an install ends with a program or with a plain reason."""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "int main(void) { return 7; }\n"

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


def is_position_independent(program: Path) -> bool:
    """ET_DYN, elf(5)."""
    return struct.unpack_from("=H", program.read_bytes(), 16) == (3,)


def compiler_that(folder: Path, script: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_helper_is_static_and_runs(hook: Any, native: Path) -> None:
    program = hook.compile_program(native, native / "netsandbox-init")
    assert subprocess.run([program], check=False).returncode == 7
    assert not is_dynamic(program)
    assert is_position_independent(program)


def test_what_is_installed_here_is_loaded_at_another_address_each_time(hook: Any) -> None:
    for program in (hook.LAUNCHER, *hook.HELPERS):
        assert is_position_independent(ROOT / program), program


def test_without_a_static_c_library_the_helper_is_dynamic(
    hook: Any, native: Path, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = f'for a; do case "$a" in -static*) exit 1;; esac; done; exec {compiler} "$@"'
    monkeypatch.setenv("CC", compiler_that(native, refuse))
    program = hook.compile_program(native, native / "netsandbox-init")
    assert subprocess.run([program], check=False).returncode == 7
    assert is_dynamic(program)


def test_a_helper_that_does_not_compile_stops_the_build_and_leaves_the_old_one(hook: Any, native: Path) -> None:
    (native / "netsandbox-init").write_text("old")
    (native / "main.c").write_text("int main(void) { return undeclared(); }\n")
    with pytest.raises(RuntimeError, match="undeclared"):
        hook.compile_program(native, native / "netsandbox-init")
    assert (native / "netsandbox-init").read_text() == "old"
    assert sorted(os.listdir(native)) == ["main.c", "netsandbox-init"]


def test_a_compiler_that_is_not_there_is_named(hook: Any, native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match=r"no-such-compiler.*install gcc"):
        hook.compile_program(native, native / "netsandbox-init")


@pytest.mark.parametrize(("target", "borrowed"), [("wheel", ["ziglang"]), ("sdist", [])])
def test_a_compiler_is_borrowed_only_to_build_a_wheel_on_a_machine_without_one(
    hook: Any, monkeypatch: pytest.MonkeyPatch, target: str, borrowed: list[str]
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert hook.NativeBuildHook(str(ROOT), {}, None, None, "", target).dependencies() == borrowed


@pytest.mark.parametrize(
    ("wanted", "borrowed"), [("macos", ["ziglang"]), ("musllinux_1_2_x86_64", ["ziglang"]), ("", [])]
)
def test_what_is_for_a_release_is_built_by_the_borrowed_compiler_whatever_the_machine_has(
    hook: Any, monkeypatch: pytest.MonkeyPatch, wanted: str, borrowed: list[str]
) -> None:
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setenv("NETSANDBOX_BUILD_FOR", wanted)
    assert hook.NativeBuildHook(str(ROOT), {}, None, None, "", "wheel").dependencies() == borrowed


def test_a_system_that_is_not_known_is_not_built_for(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETSANDBOX_BUILD_FOR", "plan9")
    with pytest.raises(RuntimeError, match="plan9 is not known; set it to one of macos, manylinux_2_17_x86_64"):
        hook.NativeBuildHook(str(ROOT), {}, None, None, "", "wheel").initialize("standard", {})


def test_without_pythons_headers_there_is_no_wheel_for_macs(
    hook: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A Mac has no session of the default strategy without the module, and nothing there can build it."""
    monkeypatch.setattr(hook, "compile_mac_program", lambda *_: None)
    monkeypatch.setattr(hook.macos_library, "build", lambda *_: None)
    monkeypatch.setattr(hook.sysconfig, "get_path", lambda _: str(tmp_path / "absent"))
    with pytest.raises(hook.MissingHeaders, match="install python3-dev"):
        hook.build_for_macs(ROOT, tmp_path)


@pytest.mark.parametrize("status", [0, 1])
def test_what_a_mac_builds_for_itself_it_signs_and_a_signer_that_fails_leaves_what_was_built(
    hook: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    def make(*arguments: Path) -> None:
        product = next(path for path in arguments if path in products)
        product.write_text("built")

    products = [tmp_path / product for product in (hook.LAUNCHER, *hook.MAC_PRODUCTS)]
    monkeypatch.setattr(hook.sys, "platform", "darwin")
    monkeypatch.setattr(hook, "compile_mac_program", make)
    monkeypatch.setattr(hook.macos_library, "build", make)
    monkeypatch.setattr(hook, "compile_mac_module", make)
    signer = compiler_that(tmp_path, f'echo "$@" >> {tmp_path}/log; exit {status}')
    monkeypatch.setattr(hook.universal_binary, "CODESIGN", signer)
    hook.build(tmp_path)
    assert (tmp_path / "log").read_text().splitlines() == [f"--force --sign - {product}" for product in products]
    assert {product.read_text() for product in products} == {"built"}
    assert capsys.readouterr().err.count("is not signed by this Mac") == 4 * status


@pytest.fixture
def sources(tmp_path: Path, compiler: str) -> Path:
    return Path(shutil.copytree(ROOT / "interpose" / "src", tmp_path / "src"))


def test_only_the_hooks_of_the_preload_library_can_be_seen(hook: Any, sources: Path, tmp_path: Path) -> None:
    import ctypes

    library = ctypes.CDLL(str(hook.compile_library(sources, tmp_path)))
    assert library.sendmmsg
    for hidden in ("ns_connect", "ns_map_open", "ns_real"):
        assert not hasattr(library, hidden)


def test_without_pythons_headers_the_build_says_what_to_install(
    hook: Any, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook.sysconfig, "get_path", lambda _: str(tmp_path / "absent"))
    with pytest.raises(hook.MissingHeaders, match=r"absent/Python\.h.*install python3-dev"):
        hook.compile_module(sources, tmp_path)


def test_without_pythons_headers_everything_else_is_built(
    hook: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    built: list[str] = []
    monkeypatch.setattr(hook, "compile_program", lambda _, product, shared=None: built.append(product.name))
    monkeypatch.setattr(hook, "compile_library", lambda *_: built.append("library"))
    monkeypatch.setattr(hook.sysconfig, "get_path", lambda _: str(tmp_path / "absent"))
    hook.build(tmp_path)
    assert built == ["netsandbox", "netsandbox-init", "netsandbox-broker", "library"]
    assert "install python3-dev" in capsys.readouterr().err


def test_a_header_without_its_marks_stops_the_build(hook: Any) -> None:
    assert hook.declarations("a\n/* cdef */\nint b;\n/* end of cdef */\nc") == "int b;\n"
    for header in ("int b;", "/* cdef */\nint b;"):
        with pytest.raises(RuntimeError, match="cdef marks"):
            hook.declarations(header)


def test_a_clean_removes_what_was_built(hook: Any, tmp_path: Path) -> None:
    products = [hook.LAUNCHER, *hook.PRODUCTS, *hook.MAC_PRODUCTS]
    products += [Path("build", "macos", product) for product in hook.MAC_PRODUCTS]
    products += [Path("build", platform, hook.LAUNCHER) for platform in hook.RELEASES]
    for product in products:
        (tmp_path / product).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / product).touch()
    hook.NativeBuildHook(str(tmp_path), {}, None, None, "", "wheel").clean([])
    assert not any((tmp_path / product).exists() for product in products)
