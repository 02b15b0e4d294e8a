"""The helper and the module for Python as a Mac finds them in the wheel: what dyld and the kernel read in each."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.rig.mac_wheel import HELPER, LIBRARY, MODULE
from tests.rig.mach_o_reader import lief
from tests.rig.mach_o_signature import check_order, check_signature, room_for_a_signature

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="a Mac signs what it builds, so its wheel is another")

SYSTEM = "/usr/lib/libSystem.B.dylib"
ARM, INTEL = 0, 1
FLAT = -2  # <mach-o/loader.h>: BIND_SPECIAL_DYLIB_FLAT_LOOKUP, found in whatever is loaded
# All of Python's stable interface (Misc/stable_abi.toml in its sources): on every Python since 3.2.
STABLE = {
    *("_PyArg_UnpackTuple", "_PyErr_Occurred", "_PyEval_RestoreThread", "_PyEval_SaveThread", "_PyErr_SetString"),
    *("_PyImport_ImportModule", "_PyLong_FromLong", "_PyLong_FromVoidPtr", "_PyLong_FromUnsignedLong"),
    *("_PyObject_CallMethod", "_PyObject_Free", "_PyObject_Malloc", "__Py_Dealloc", "__Py_NoneStruct"),
}
# zig's linker exports its marks of where a file begins.
LINKERS_OWN = {"__mh_execute_header", "__mh_dylib_header", "___dso_handle"}
SURPRISES = {
    "RPATH",
    "DYLD_ENVIRONMENT",
    "LOAD_WEAK_DYLIB",
    "REEXPORT_DYLIB",
    "LOAD_UPWARD_DYLIB",
    "LAZY_LOAD_DYLIB",
}


class Part:
    """One file of the wheel, in both architectures. LIEF's parts die with the whole, so it is kept."""

    def __init__(self, wheel: Path, name: str) -> None:
        with zipfile.ZipFile(wheel) as archive:
            self.data = archive.read(name)
        self.whole = lief().MachO.parse(list(self.data))
        assert [one.header.cpu_type for one in self.whole] == [
            lief().MachO.Header.CPU_TYPE.ARM64,
            lief().MachO.Header.CPU_TYPE.X86_64,
        ]

    def at(self, number: int) -> Any:
        return self.whole.at(number)

    def slice(self, number: int) -> bytes:
        """Up to the next, or the end."""
        starts = [self.whole.at(each).fat_offset for each in (ARM, INTEL)]
        return self.data[starts[number] : (*starts, len(self.data))[number + 1]]


@pytest.fixture(scope="module")
def parts(mac_wheel: Path) -> dict[str, Part]:
    return {name: Part(mac_wheel, name) for name in (HELPER, LIBRARY, MODULE)}


both_parts = pytest.mark.parametrize("name", [HELPER, MODULE], ids=["helper", "module"])
both_processors = pytest.mark.parametrize("number", [ARM, INTEL], ids=["arm64", "x86_64"])
Parts = dict[str, Part]


@both_parts
@both_processors
def test_each_runs_from_macos_11_on_and_names_an_sdk_that_macs_take(parts: Parts, name: str, number: int) -> None:
    version = parts[name].at(number).build_version
    assert version.platform == lief().MachO.BuildVersion.PLATFORMS.MACOS
    assert list(version.minos) == [11, 0, 0]
    assert list(version.sdk) == [14, 0, 0]


@both_parts
@both_processors
def test_no_path_of_the_builder_and_no_other_library_is_in_it(parts: Parts, name: str, number: int) -> None:
    binary = parts[name].at(number)
    kinds = {str(command.command).rpartition(".")[2] for command in binary.commands}
    assert not kinds & SURPRISES
    itself = [f"@rpath/{Path(name).name}"] if name == MODULE else []
    assert [one.name for one in binary.libraries] == [*itself, SYSTEM]
    assert b"/tmp/" not in parts[name].data
    assert str(Path.home()).encode() not in parts[name].data


@both_parts
def test_the_signature_of_arm64_fits_its_pages_and_intel_has_room_for_one(parts: Parts, name: str) -> None:
    part = parts[name]
    check_signature(part.at(ARM), part.slice(ARM))
    assert not part.at(INTEL).has_code_signature
    assert room_for_a_signature(part.at(INTEL))


@pytest.mark.parametrize("name", [HELPER, LIBRARY, MODULE], ids=["helper", "library", "module"])
@both_processors
def test_codesign_can_take_it_apart_and_sign_it_again(parts: Parts, name: str, number: int) -> None:
    binary = parts[name].at(number)
    assert room_for_a_signature(binary)
    check_order(binary)
    linkedit = binary.segments[-1]
    assert linkedit.name == "__LINKEDIT"
    length = linkedit.file_offset + linkedit.file_size
    assert not parts[name].slice(number)[length:].strip(b"\0"), "more than what lies between two slices"


@both_processors
def test_the_helper_is_a_program_at_no_fixed_address_whose_data_cannot_be_run(parts: Parts, number: int) -> None:
    binary = parts[HELPER].at(number)
    assert binary.header.file_type == lief().MachO.Header.FILE_TYPE.EXECUTE
    assert binary.is_pie
    for segment in binary.segments:
        assert segment.init_protection & 6 != 6, f"{segment.name} is written and run"


@both_processors
def test_the_helper_takes_the_systems_sandbox_and_all_else_from_libsystem(parts: Parts, number: int) -> None:
    binary = parts[HELPER].at(number)
    assert {entry.library.name for entry in binary.bindings} == {SYSTEM}
    imported = {entry.symbol.name for entry in binary.bindings}
    assert {"_sandbox_init_with_parameters", "_sandbox_free_error", "_proc_listpids", "_execvp"} <= imported
    assert "___stack_chk_fail" in imported
    assert not imported & {"_system", "_popen", "_getenv", "_dlopen", "_posix_spawn"}, "it takes nothing from outside"
    assert {symbol.name for symbol in binary.exported_symbols} <= LINKERS_OWN


@both_processors
def test_the_module_asks_python_for_stable_names_only_and_the_system_for_the_rest(parts: Parts, number: int) -> None:
    binary = parts[MODULE].at(number)
    assert binary.header.file_type == lief().MachO.Header.FILE_TYPE.DYLIB
    by_python = {entry.symbol.name for entry in binary.bindings if entry.library_ordinal == FLAT}
    assert by_python <= STABLE
    assert "_PyImport_ImportModule" in by_python
    assert {entry.library.name for entry in binary.bindings if entry.library_ordinal != FLAT} == {SYSTEM}
    assert not [
        entry.symbol.name for entry in binary.bindings if entry.library_ordinal < 0 and entry.symbol.name not in STABLE
    ]


@both_processors
def test_python_finds_the_modules_beginning_and_nothing_else(parts: Parts, number: int) -> None:
    exported = {symbol.name for symbol in parts[MODULE].at(number).exported_symbols}
    assert exported - LINKERS_OWN == {"_PyInit__native"}
