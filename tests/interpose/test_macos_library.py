"""The universal library for macOS as a file: what dyld finds in it, and that the same sources give the same bytes."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
pytest.importorskip("unicorn", reason="no emulated processor (package unicorn of the test extra)")

import macos_library
import universal_binary

from tests.rig import darwin
from tests.rig.mach_o_reader import lief
from tests.rig.mach_o_signature import check_signature, room_for_a_signature

HOOKS = {
    *("bind", "listen", "connect", "connectx", "accept", "getsockname", "getpeername"),
    *("sendto", "sendmsg", "recvfrom", "recvmsg"),
    *("getaddrinfo", "gethostbyname", "gethostbyname2"),
    *("execve", "execv", "execl", "execle", "posix_spawn", "posix_spawnp"),
}
PAIR, POINTER = 16, 8
SYSTEM = "/usr/lib/libSystem.B.dylib"
# zig's linker exports its marks of where the library begins, which no program asks for.
LINKERS_OWN = {"__mh_dylib_header", "___dso_handle"}


@pytest.fixture(scope="module")
def universal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("macos") / macos_library.NAME
    return macos_library.build(path)


@pytest.fixture(scope="module")
def whole(universal: Path) -> Any:
    """Its parts die with it, so every test holds the whole."""
    return lief().MachO.parse(str(universal))


@pytest.fixture(params=[0, 1], ids=list(universal_binary.ARCHITECTURES))
def library(whole: Any, request: pytest.FixtureRequest) -> Any:
    return whole.at(request.param)


def interposed(library: Any) -> Any:
    found = [section for section in library.sections if section.name == "__interpose"]
    assert [section.segment_name for section in found] == ["__DATA"]
    return found[0]


def inside(section: Any, entries: Any) -> Any:
    """By place in the section."""
    start, end = section.virtual_address, section.virtual_address + section.size
    return [(entry.address - start, entry) for entry in entries if start <= entry.address < end]


def test_both_architectures_are_in_it_byte_for_byte(universal: Path, whole: Any) -> None:
    kinds = lief().MachO.Header.CPU_TYPE
    assert [one.header.cpu_type for one in whole] == [kinds.ARM64, kinds.X86_64]
    data = universal.read_bytes()
    for one, architecture in zip(whole, universal_binary.ARCHITECTURES, strict=True):
        slice_ = darwin.compiled(architecture)
        assert one.fat_offset % (1 << universal_binary.PAGE_BITS) == 0
        assert data[one.fat_offset : one.fat_offset + len(slice_)] == slice_


def test_every_hook_is_a_pair_of_one_rebase_and_one_bind(library: Any) -> None:
    section = interposed(library)
    assert section.size == len(HOOKS) * PAIR
    rebased = [place for place, _ in inside(section, library.relocations)]
    bound = inside(section, library.bindings)
    assert sorted(rebased) == list(range(0, section.size, PAIR))
    assert sorted(place for place, _ in bound) == list(range(POINTER, section.size, PAIR))
    assert Counter(entry.symbol.name for _, entry in bound) == Counter(f"_{name}" for name in HOOKS)
    assert {(entry.library.name, entry.addend, entry.weak_import) for _, entry in bound} == {(SYSTEM, 0, False)}


def test_every_replacement_is_code_of_its_own(library: Any) -> None:
    section = interposed(library)
    text = next(one for one in library.sections if one.name == "__text")
    pairs = struct.unpack(f"<{section.size // POINTER}Q", bytes(section.content))
    assert len(set(pairs[::2])) == len(HOOKS)
    assert all(text.virtual_address <= place < text.virtual_address + text.size for place in pairs[::2])


def test_only_the_systems_library_is_needed_and_nothing_is_exported(library: Any) -> None:
    names = [one.name for one in library.libraries]
    assert names == [f"@rpath/{macos_library.NAME}", SYSTEM]
    assert {entry.library.name for entry in library.bindings} == {SYSTEM}
    assert {entry.symbol.name for entry in library.dyld_info.exports} <= LINKERS_OWN


def test_it_runs_from_macos_11_on_and_names_an_sdk_that_macs_take(library: Any) -> None:
    assert library.build_version.platform == lief().MachO.BuildVersion.PLATFORMS.MACOS
    assert list(library.build_version.minos) == [11, 0, 0]
    assert list(library.build_version.sdk) == [14, 0, 0]


def test_the_signature_of_arm64_covers_what_was_changed(whole: Any) -> None:
    arm, intel = whole
    assert not intel.has_code_signature
    check_signature(arm, darwin.compiled("aarch64"))


def test_there_is_room_for_the_signature_of_an_install(library: Any) -> None:
    assert room_for_a_signature(library)


def test_a_signature_of_another_kind_stops_the_build() -> None:
    data = bytearray(darwin.compiled("aarch64"))
    place = data.index(struct.pack(">I", universal_binary.CODE_DIRECTORY))
    data[place] ^= 1
    with pytest.raises(RuntimeError, match="not known"):
        universal_binary.sign_again(data)


def test_sources_that_do_not_compile_leave_the_old_library(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("int wrong(void) { return nothing; }\n")
    product = tmp_path / macos_library.NAME
    product.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="does not compile for aarch64"):
        macos_library.build(product, tmp_path)
    assert product.read_bytes() == b"old"
