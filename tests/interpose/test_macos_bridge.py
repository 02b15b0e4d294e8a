"""Protected shells and env, as the library starts them that is compiled for macOS: on an emulated processor, the
arguments that reach the system byte by byte. test_shell_command.py and test_env_command.py show what these arguments
mean to real programs."""

from __future__ import annotations

import pytest

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
pytest.importorskip("unicorn", reason="no emulated processor (package unicorn of the test extra)")

from tests.rig import darwin
from tests.rig.darwin_exec import E2BIG, MAP, PRELOAD, SPAWN, MacWithPrograms, Started

ENOENT = 2
ARM64, ARM64E = bytes.fromhex("cffaedfe0c000001 00000000") + bytes(20), bytes.fromhex("cffaedfe0c000001 02000080")
VITE, BIN = b"/Users/me/x/node_modules/.bin/vite", b"PATH=/Users/me/x/node_modules/.bin:/opt/homebrew/bin:/usr/bin:/bin"
SET = b" ".join(one.replace(b"=", b"='", 1) + b"'" for one in (PRELOAD, MAP))
ENV = b"/usr/bin/env"
ENV_VITE = b"/usr/bin/env " + SET + b" node '" + VITE + b"'"
WAYS = ["execve", "execle", "execv", "execl", "posix_spawn", "posix_spawnp"]


def made(library: bytes) -> MacWithPrograms:
    mac = MacWithPrograms(library)
    mac.files = {
        b"/bin/sh": ARM64E + bytes(20),
        ENV: ARM64E + bytes(20),
        b"/bin/rm": ARM64E + bytes(20),
        b"/opt/homebrew/bin/node": ARM64,
        VITE: b"#!/usr/bin/env node\n",
        b"/opt/homebrew/bin/clang": ARM64E + bytes(20),
    }
    mac.error = ENOENT
    return mac


def check_start(
    mac: MacWithPrograms, way: str, path: bytes, given: list[bytes], target: bytes, end: list[bytes]
) -> None:
    """One call reaches the system, without the variable in its environment; errno is the system's own."""
    mac.started.clear()
    mac.own_environment = [BIN, PRELOAD, MAP]
    mac.errno = 0
    spawned = way.startswith("posix")
    assert mac.start(way, path, given, mac.own_environment) == (ENOENT if spawned else -1)
    call, more = (way, SPAWN) if spawned else ("execve", ())
    assert mac.started == [Started(call, target, end, [BIN, MAP], more)]
    assert mac.errno == (0 if spawned else ENOENT)
    assert not mac.descriptors


def check_shells(library: bytes) -> None:
    mac = made(library)
    for way in WAYS:
        for command, end in (
            (b"node server.js", SET + b" node server.js"),
            (b"rm -rf dist && vite --port 3", b"export " + SET + b"; rm -rf dist && " + ENV_VITE + b" --port 3"),
            (b"vite", SET + b" " + ENV_VITE),
        ):
            given = [b"sh", b"-c", command, b"zero", b"one"]
            check_start(mac, way, b"/bin/sh", given, b"/bin/sh", [b"sh", b"-c", end, b"zero", b"one"])


def check_env(library: bytes) -> None:
    mac = made(library)
    for way in WAYS:
        check_start(mac, way, VITE, [b"vite", b"a"], ENV, [ENV, PRELOAD, MAP, b"node", VITE, b"a"])
        check_start(mac, way, ENV, [b"env", b"-i", b"node"], ENV, [b"env", b"-i", PRELOAD, MAP, b"node"])


@pytest.mark.attack(98)
def test_a_protected_shell_is_told_to_set_the_variables(library: bytes) -> None:
    check_shells(library)


@pytest.mark.attack(98)
def test_env_and_its_scripts_are_told_as_well(library: bytes) -> None:
    check_env(library)


def check_left_alone(library: bytes) -> None:
    mac = made(library)
    for given in ([b"sh", b"x.sh"], [b"sh", b"-ic", b"vite"], [b"sh", b"-c", b"clang x.c"], [b"sh", b"-c", b"echo $_"]):
        check_start(mac, "execve", b"/bin/sh", given, b"/bin/sh", given)
    check_start(mac, "execve", ENV, [b"env", b"clang"], ENV, [b"env", b"clang"])
    mac.protection = 2
    for path in (b"/bin/sh", ENV, VITE):
        given = [b"sh", b"-c", b"vite"] if path == b"/bin/sh" else [b"x", b"node"]
        check_start(mac, "posix_spawn", path, given, path, given)


@pytest.mark.attack(101)
def test_what_is_not_understood_or_would_be_killed_is_started_as_it_is(library: bytes) -> None:
    """Without System Integrity Protection dyld would kill the system's own programs with the variable set."""
    check_left_alone(library)


@pytest.mark.parametrize("way", WAYS)
def test_arguments_that_become_too_long_are_started_as_they_are(library: bytes, way: str) -> None:
    mac = made(library)
    mac.longest = 40
    mac.own_environment = [BIN]
    spawned = way.startswith("posix")
    given = [b"sh", b"-c", b"vite"]
    assert mac.start(way, b"/bin/sh", given, [BIN]) == (ENOENT if spawned else -1)
    assert [one.arguments for one in mac.started] == [[b"sh", b"-c", SET + b" " + ENV_VITE], given]
    mac.longest = 5
    assert mac.start(way, b"/bin/sh", given, [BIN]) == (E2BIG if spawned else -1)
    assert spawned or mac.errno == E2BIG


test_a_fault_in_the_sources_is_noticed = darwin.noticed(
    ("shell_bridge.c", 'append(text, "export ");', 'append(text, "");', check_shells),
    ("shell_bridge.c", "insert_variables(bridge, room, 1);", "insert_variables(bridge, room, 2);", check_env),
    ("shell_bridge.c", "== 0 && config == 0;", "== 0;", check_left_alone),
    ("shell_bridge.c", "== NS_TARGET_KILLED)\n", "== 7)\n", check_left_alone),
)
