"""The same sources for macOS, as far as Linux can prove it: they compile, every hook is a pair that dyld reads, and
nothing but the system's library is needed. Whether dyld then loads it is a Mac's to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "interpose" / "src"
POINTER = 8
HOOKS = {
    *("bind", "listen", "connect", "connectx", "accept", "getsockname", "getpeername"),
    *("sendto", "sendmsg", "recvfrom", "recvmsg"),
    *("execve", "execv", "execl", "execle", "posix_spawn", "posix_spawnp"),
}
LINKERS_OWN = {"__mh_dylib_header", "___dso_handle"}

lief = pytest.importorskip("lief", reason="nothing reads Mach-O files (package lief of the test extra)")
pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")


@pytest.fixture(scope="module", params=["aarch64", "x86_64"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    target = folder / "libnetsandbox_interpose.dylib"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{request.param}-macos.11.0", "-std=gnu11", "-Os"]
    flags = ["-g0", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-dynamiclib"]
    sources = sorted(str(source) for source in SOURCES.glob("*.c"))
    subprocess.run([*command, *flags, *sources, "-o", str(target)], check=True, cwd=folder, timeout=120)
    binary = lief.MachO.parse(str(target))
    assert binary is not None
    return binary.at(0)


def test_every_hook_is_a_pair_of_ours_and_the_systems(library: Any) -> None:
    section = next(section for section in library.sections if section.name == "__interpose")
    assert section.segment_name == "__DATA"
    assert section.size == len(HOOKS) * 2 * POINTER
    bound = {
        (binding.address - section.virtual_address): binding.symbol.name
        for binding in library.bindings
        if section.virtual_address <= binding.address < section.virtual_address + section.size
    }
    assert {name.removeprefix("_") for name in bound.values()} == HOOKS
    assert {offset % (2 * POINTER) for offset in bound} == {POINTER}, "the original is the second of the pair"


def test_only_the_systems_library_is_needed_and_nothing_is_exported(library: Any) -> None:
    assert {one.name for one in library.libraries} - {library_id(library)} == {"/usr/lib/libSystem.B.dylib"}
    assert {symbol.name for symbol in library.exported_symbols} <= LINKERS_OWN


def library_id(library: Any) -> str:
    """A library lists itself first."""
    return str(library.libraries[0].name)


def test_it_runs_from_macos_11_on(library: Any) -> None:
    assert list(library.build_version.minos)[:2] == [11, 0]
