"""env's own arguments, and the first lines of scripts that name it, read as env and kernels read them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose._native import ffi, lib

from tests.rig.bridge import MAP, PRELOAD, Bridge

ENV = b"/usr/bin/env"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "node"),
        ("-i", "node a -i b=c"),
        ("-", "A=1 node"),
        ("-u X", "A=1 B= node a"),
        ("-i -u X -u Y --", "node"),
        ("--", "A=1 node"),
    ],
)
def test_variables_stand_behind_the_options(bridge: Bridge, before: str, after: str) -> None:
    first, last = before.encode().split(), after.encode().split()
    assert bridge.rewrite(ENV, [b"env", *first, *last]) == (ENV, [b"env", *first, PRELOAD, MAP, *last])


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-i",
        "A=1",
        "-u",
        "-u X",
        "-v node",
        "-iu X node",
        "-uX node",
        "-0",
        "--help",
        "-S node",
        "-P /x node",
        "-C / x",
    ],
)
def test_what_is_not_known_and_what_starts_nothing_is_left_alone(bridge: Bridge, words: str) -> None:
    assert bridge.rewrite(ENV, [b"env", *words.encode().split()]) is None


def test_a_shell_behind_env_is_told_as_well(bridge: Bridge) -> None:
    made = bridge.rewrite(ENV, [b"env", b"A=1", b"/bin/sh", b"-ec", b"vite", b"zero"])
    assert made is not None
    quoted = [one.replace(b"=", b"='", 1) + b"'" for one in (PRELOAD, MAP)]
    command = b" ".join([*quoted, b"vite"])
    assert made[1] == [b"env", PRELOAD, MAP, b"A=1", b"/bin/sh", b"-ec", command, b"zero"]


@pytest.mark.attack(101)
def test_a_program_that_would_be_killed_is_not_given_the_variables(
    bridge: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clang").write_bytes(bytes.fromhex("cffaedfe0c00000102000080") + bytes(20))
    (tmp_path / "script").write_text("#!/usr/bin/env clang\n")
    monkeypatch.chdir(tmp_path)
    environment = [b"PATH=" + bytes(tmp_path)]
    for mode, killed in ((0o755, True), (0o644, False)):
        (tmp_path / "script").chmod(0o755)
        (tmp_path / "clang").chmod(mode)
        for name in (b"clang", b"./clang", bytes(tmp_path / "clang")):
            assert (bridge.rewrite(ENV, [b"env", name, b"x"], environment) is None) is killed
        assert (bridge.rewrite(bytes(tmp_path / "script"), [b"x"], environment) is None) is killed


WORDS = st.lists(
    st.sampled_from([b"-i", b"-", b"-u", b"NOTHING", b"A=1", b"B=", b"--", b"printenv", b"echo", b"-x", b"a b"]),
    max_size=6,
)


@given(words=WORDS)
def test_env_does_the_same_but_for_the_variables(bridge: Bridge, words: list[bytes]) -> None:
    made = bridge.rewrite(ENV, [b"env", *words], preload=b"NS_A=a", port_map=b"NS_B=b")
    if made is None:
        return
    given_, changed = (
        subprocess.run(line, executable=ENV, env={"PATH": "/usr/bin:/bin", "C": "3"}, capture_output=True, check=False)
        for line in ([b"env", *words], made[1])
    )
    left = [line for line in changed.stdout.splitlines() if line not in (b"NS_A=a", b"NS_B=b")]
    assert (changed.returncode, left, changed.stderr) == (
        given_.returncode,
        given_.stdout.splitlines(),
        given_.stderr,
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"#!/usr/bin/env node\nrest", [b"node"]),
        (b"#! \t/usr/bin/env \t node \t\n", [b"node"]),
        (b"#!/usr/bin/env -S node --import=tsx  -r a/b,c\n", [b"node", b"--import=tsx", b"-r", b"a/b,c"]),
        (b"#!/usr/bin/env -Snode\n", [b"node"]),
        (b"#!/usr/bin/env -S A=1 node\n", None),
        (b"#!/usr/bin/env node --flag\n", None),
        (b"#!/usr/bin/env -i node\n", None),
        (b"#!/usr/bin/env -S -i node\n", None),
        (b"#!/usr/bin/env -S node 'a b'\n", None),
        (b"#!/usr/bin/env -S node ${X}\n", None),
        (b"#!/usr/bin/env -S\n", None),
        (b"#!/usr/bin/env\n", None),
        (b"#!/usr/bin/env\tnode\r\n", None),
        (b"#!/usr/bin/env node", None),
        (b"#!/usr/bin/environment node\n", None),
        (b"#!/opt/env node\n", None),
        (b"#!/bin/sh\n", None),
        (b"node\n", None),
        (b"", None),
    ],
)
def test_a_script_becomes_what_the_kernel_makes_of_it(
    bridge: Bridge, tmp_path: Path, line: bytes, words: list[bytes] | None
) -> None:
    script = tmp_path / "script"
    script.write_bytes(line)
    script.chmod(0o755)
    path = bytes(script)
    expected = None if words is None else (ENV, [ENV, PRELOAD, MAP, *words, path, b"a", b"b c"])
    assert bridge.rewrite(path, [b"zero", b"a", b"b c"]) == expected


def test_a_script_that_the_kernel_refuses_is_the_kernels_to_refuse(bridge: Bridge, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env node\n")
    for mode, changed in ((0o755, True), (0o644, False), (0o4755, False)):
        script.chmod(mode)
        assert (bridge.rewrite(bytes(script), [b"zero"]) is not None) is changed


def test_a_relative_path_is_not_believed_where_the_program_starts_elsewhere(
    bridge: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script").write_text("#!/usr/bin/env node\n")
    (tmp_path / "script").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert bridge.rewrite(b"./script", [b"zero"]) == (ENV, [ENV, PRELOAD, MAP, b"node", b"./script"])
    assert bridge.rewrite(b"./script", [b"zero"], moves=True) is None
    assert bridge.rewrite(bytes(tmp_path / "script"), [b"zero"], moves=True) is not None


@given(st.binary(max_size=60), st.sampled_from([b"", b"#!", b"#!/usr/bin/env ", b"#!/usr/bin/env -S "]))
def test_no_first_line_leads_past_its_end(tail: bytes, start: bytes) -> None:
    head = ffi.new("char[]", start + tail)
    words = ffi.new("size_t *")
    line = lib.ns_env_words(head, len(start + tail), words)
    assert line == ffi.NULL or len(ffi.string(line).split()) == words[0] > 0
