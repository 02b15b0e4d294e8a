"""Starting programs, as the library does it that is compiled for macOS: on an emulated processor, the environment that
reaches the system byte by byte. test_exec_target.py holds to its promise which programs take the library."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
pytest.importorskip("unicorn", reason="no emulated processor (package unicorn of the test extra)")

from tests.rig import darwin
from tests.rig.darwin_exec import MAP, OWN_LIBRARY, PRELOAD, SPAWN, MacWithPrograms, Started

ENOENT = 2
NODE, SCRIPT = b"/opt/homebrew/bin/node", b"/Users/me/script"
THEIRS = b"DYLD_INSERT_LIBRARIES=/opt/theirs.dylib:/opt/more.dylib"
JOINED = PRELOAD + b":/opt/theirs.dylib:/opt/more.dylib"
ARGUMENTS = [b"node", b"-e", b"1", b"four", b"five", b"six", b"seven", b"eight", b"nine"]
OWN = ["execv", "execl"]  # these take the process's own environment
WAYS = ["execve", "execle", *OWN, "posix_spawn", "posix_spawnp"]


def thin(subtype: int) -> bytes:
    return struct.pack("<III", 0xFEEDFACF, 0x0100000C, subtype) + bytes(20)


ARM64, ARM64E = thin(0), thin(0x80000002)


@pytest.fixture
def mac(library: bytes) -> MacWithPrograms:
    return made(library)


def made(library: bytes) -> MacWithPrograms:
    mac = MacWithPrograms(library)
    mac.files = {NODE: ARM64, b"/opt/arm64e": ARM64E, b"/bin/sh": ARM64, b"/usr/local/bin/x": ARM64}
    mac.error = ENOENT
    return mac


def environment_of(
    mac: MacWithPrograms, way: str, path: bytes, given: list[bytes] | None, arguments: list[bytes] = ARGUMENTS
) -> list[bytes] | None:
    """What a program would find; everything else is as the caller gave it, and so is the system's error."""
    mac.started.clear()
    mac.own_environment = given or []
    mac.errno = 0
    assert mac.start(way, path, arguments, given) == (ENOENT if way.startswith("posix") else -1)
    call, more = (way, SPAWN) if way.startswith("posix") else ("execve", ())
    found = mac.started[0].environment
    assert mac.started == [Started(call, path, arguments, found, more)]
    assert mac.errno == (0 if way.startswith("posix") else ENOENT)
    assert not mac.descriptors
    return found


def check_the_environment(library: bytes) -> None:
    mac = made(library)
    for way in WAYS:
        assert environment_of(mac, way, NODE, []) == [PRELOAD, MAP]
        assert environment_of(mac, way, NODE, [b"A=1", b"B=2"]) == [b"A=1", b"B=2", PRELOAD, MAP]
        assert environment_of(mac, way, NODE, [THEIRS, b"A=1"]) == [JOINED, b"A=1", MAP]
        assert environment_of(mac, way, NODE, [MAP, b"A=1", PRELOAD]) == [MAP, b"A=1", PRELOAD]
        assert environment_of(mac, way, NODE, [b"NETSANDBOX_PORT_MAP=/x", PRELOAD]) == [MAP, PRELOAD]
        assert environment_of(mac, way, NODE, [JOINED, MAP]) == [JOINED, MAP]
        behind = b"DYLD_INSERT_LIBRARIES=/opt/theirs.dylib:" + OWN_LIBRARY
        assert environment_of(mac, way, NODE, [behind, MAP]) == [behind, MAP]


@pytest.mark.attack(98)
def test_the_variables_are_put_back_and_joined_with_the_users_own(library: bytes) -> None:
    check_the_environment(library)


@pytest.mark.parametrize("way", ["execve", "execle", "posix_spawn", "posix_spawnp"])
def test_no_environment_at_all_becomes_one(mac: MacWithPrograms, way: str) -> None:
    assert environment_of(mac, way, NODE, None) == [PRELOAD, MAP]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arguments", [ARGUMENTS[:1], ARGUMENTS[:2], ARGUMENTS * 3])
def test_arguments_arrive_in_any_number(mac: MacWithPrograms, way: str, arguments: list[bytes]) -> None:
    assert environment_of(mac, way, NODE, [b"A=1"], arguments) == [b"A=1", PRELOAD, MAP]


def check_what_goes_without(library: bytes) -> None:
    mac = made(library)
    mac.files[SCRIPT] = b"#!/bin/sh -e\nexit\n"
    mac.files[b"/Users/me/outer"] = b"#! " + SCRIPT + b"\n"
    mac.files[b"/opt/as-root"] = ARM64
    mac.modes[b"/opt/as-root"] = 0o4755
    without = [b"/opt/arm64e", b"/bin/sh", b"/usr/bin/env", b"/sbin/ping", b"/System/x", SCRIPT, b"/Users/me/outer"]
    for path in (*without, b"/opt/as-root"):
        for way in WAYS:
            assert environment_of(mac, way, path, [b"A=1", JOINED, MAP]) == [b"A=1", MAP], path
            assert environment_of(mac, way, path, [PRELOAD, b"B=2"]) == [b"B=2"], path
            assert environment_of(mac, way, path, [b"A=1"]) == [b"A=1"], path


@pytest.mark.attack(101)
def test_programs_that_cannot_have_the_library_are_started_without(library: bytes) -> None:
    """arm64e, protected by the system, run as another user, or a script of one of these."""
    check_what_goes_without(library)


@pytest.mark.parametrize("path", [b"/usr/local/bin/x", NODE, SCRIPT, b"/nonexistent", b"relative/x"])
@pytest.mark.parametrize("way", WAYS)
def test_all_others_have_it(mac: MacWithPrograms, way: str, path: bytes) -> None:
    mac.files[SCRIPT] = b"#!" + NODE + b"\n"
    assert environment_of(mac, way, path, [b"A=1"]) == [b"A=1", PRELOAD, MAP]


def test_a_name_without_a_path_is_judged_where_the_system_has_found_it(mac: MacWithPrograms) -> None:
    """posix_spawnp calls posix_spawn, which comes here again; a file of that name in the folder says nothing."""
    mac.files[b"sh"] = ARM64E
    assert environment_of(mac, "posix_spawnp", b"sh", []) == [PRELOAD, MAP]
    assert environment_of(mac, "posix_spawn", b"/bin/sh", [PRELOAD, MAP]) == [MAP]


def test_a_process_without_the_variables_leaves_its_children_alone(library: bytes) -> None:
    mac = MacWithPrograms(library, injected=False)
    mac.error = ENOENT
    for way in WAYS:
        assert environment_of(mac, way, NODE, [b"A=1", THEIRS]) == [b"A=1", THEIRS]


test_a_fault_in_the_sources_is_noticed = darwin.noticed(
    ("injection.c", "joined[ours] = ':';", "joined[ours] = ';';", check_the_environment),
    ("exec_target.c", "if (ns_target_is_protected(path) ||", "if (path == 0 ||", check_what_goes_without),
    ("exec_target.c", "== ARM64E", "== 7u", check_what_goes_without),
)
