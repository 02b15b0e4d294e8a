"""What is made of a shell's command means the same to real shells, and what is not understood is left alone."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from netsandbox_interpose._native import ffi, lib

from tests.rig.bridge import Bridge

VARIABLES = b'NS_A=/a b/$x`y`\\"', b"NS_B=/b"
SET = rb"""NS_A='/a b/$x`y`\"' NS_B='/b'"""
ENV_SHOW = rb"/usr/bin/env " + SET + b" sh '%s'"
SHOW = '#!/usr/bin/env sh\nprintf "<%s>" "$0" "$@" "$FOO" "$NS_A$NS_B"; echo; exit ${FOO:-0}\n'


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to be the only one in PATH: w is a script of env's, and so is one by the name of a builtin."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("w", "echo", "two-words"):
        (folder / name).write_text(SHOW)
        (folder / name).chmod(0o755)
    (folder / "plain").write_text("#!/bin/sh\n")
    (folder / "plain").chmod(0o755)
    (folder / "kept").write_text(SHOW)
    for tool in ("sh", "cat"):
        (folder / tool).symlink_to(str(shutil.which(tool)))
    return folder


def rewritten(bridge: Bridge, programs: Path, *arguments: bytes) -> list[bytes] | None:
    preload, port_map = VARIABLES
    environment = [b"HOME=/", b"PATH=" + bytes(programs)]
    made = bridge.rewrite(b"/bin/sh", [b"sh", *arguments], environment, preload=preload, port_map=port_map)
    assert made is None or made[0] == b"/bin/sh"
    return None if made is None else made[1]


def command_of(bridge: Bridge, programs: Path, command: str) -> str | None:
    made = rewritten(bridge, programs, b"-c", command.encode(), b"zero", b"one")
    assert made is None or made == [b"sh", b"-c", made[2], b"zero", b"one"]
    return None if made is None else made[2].decode()


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("vite --port 3", "SET vite --port 3"),
        ("FOO=1 BAR= vite $X ${Y:-z} \"$Z\" 'a;b'", "SET FOO=1 BAR= vite $X ${Y:-z} \"$Z\" 'a;b'"),
        ("vite > log 2>&1", "SET vite > log 2>&1"),
        ("w a", "SET ENV(w) a"),
        (" w a && two-words|w;w\nw&", "export SET;  ENV(w) a && ENV(two-words)|ENV(w);ENV(w)\nENV(w)&"),
        ("exec w", "export SET; exec ENV(w)"),
        ("echo w; plain; kept; cat w", "export SET; echo w; plain; kept; cat w"),
        ("2>f w >&2 x", "SET 2>f ENV(w) >&2 x"),
        ("if w; then w; fi", "export SET; if w; then w; fi"),
        ("time w", "export SET; time w"),
        ("w $(w)", "export SET; w $(w)"),
        ("w `w`", "export SET; w `w`"),
        ("w <<x\nw\nx", "export SET; w <<x\nw\nx"),
        ("(w)", "export SET; (w)"),
        ("w # w; w", "export SET; w # w; w"),
        ("w \\; w", "export SET; w \\; w"),
        ("f() { w; }", "export SET; f() { w; }"),
        ("PATH=/x w", "SET PATH=/x w"),
        ("alias w=x; w", "export SET; alias w=x; w"),
        ("! w", "export SET; ! w"),
        ("./w; tools/w", "export SET; ./w; tools/w"),
        ("w 'open", "export SET; w 'open"),
        ("", None),
        (" \n", None),
        ("w $_", None),
        ("w $BASH_EXECUTION_STRING", None),
    ],
)
def test_a_command_sets_the_variables_and_is_otherwise_itself(
    bridge: Bridge, programs: Path, command: str, made: str | None
) -> None:
    if made is not None:
        made = made.replace("SET", SET.decode())
        for name in ("w", "two-words"):
            made = made.replace(f"ENV({name})", ENV_SHOW.decode() % (programs / name))
    assert command_of(bridge, programs, command) == made


OPTIONS = ["-c", "-ec", "-lc", "-euc", "-e -c", "-o pipefail -c", "-euo pipefail -c", "--norc -c", "--noprofile -e -c"]
UNKNOWN = ["", "-", "--", "-s", "-i -c", "-vc", "-ce", "-c -e", "-c --", "+e -c", "-o", "-o verbose -c", "-n -c", "-cc"]


@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_are_known_stay_as_they_are(bridge: Bridge, programs: Path, options: str) -> None:
    words = options.encode().split()
    made = rewritten(bridge, programs, *words, b"true", b"zero")
    assert made == [b"sh", *words, SET + b" true", b"zero"]


@pytest.mark.parametrize("options", [*UNKNOWN, "--rcfile x -c", "-ec -", "script", "--norc --posix"])
def test_other_options_change_nothing(bridge: Bridge, programs: Path, options: str) -> None:
    assert rewritten(bridge, programs, *options.encode().split(), b"true") is None
    assert rewritten(bridge, programs, *options.encode().split()) is None


@pytest.mark.parametrize("value", [b"/it's", b"/a\nb", b"/a\rb"])
def test_a_value_that_cannot_be_quoted_changes_nothing(bridge: Bridge, value: bytes) -> None:
    for preload, port_map in ((b"A=" + value, b"B=/b"), (b"A=/a", b"B=" + value)):
        assert bridge.rewrite(b"/bin/sh", [b"sh", b"-c", b"x"], preload=preload, port_map=port_map) is None


@pytest.mark.parametrize(
    "path", [b"/bin/csh", b"/bin/tcsh", b"/bin/ls", b"/opt/homebrew/bin/bash", b"/usr/local/bin/sh"]
)
def test_other_programs_are_left_alone(bridge: Bridge, path: bytes) -> None:
    assert bridge.rewrite(path, [b"sh", b"-c", b"x"]) is None


def test_there_is_an_end_to_what_is_copied(bridge: Bridge) -> None:
    for size, changed in ((131071, True), (131072, False)):
        assert (bridge.rewrite(b"/bin/sh", [b"sh", b"-c", b"x" * size]) is not None) is changed
    for count, changed in ((4096, True), (4097, False)):
        assert (bridge.rewrite(b"/bin/sh", [b"sh", b"-c", *[b"x"] * (count - 2)]) is not None) is changed
    names = b";".join([b"/bin/x"] * 1000)
    assert bridge.rewrite(b"/bin/sh", [b"sh", b"-c", names]) is not None


def test_more_programs_than_there_is_room_for_change_nothing(bridge: Bridge, programs: Path) -> None:
    assert command_of(bridge, programs, ";".join(["w"] * 20)) is not None
    assert command_of(bridge, programs, ";".join(["w"] * 1000)) is None


@pytest.mark.attack(101)
def test_a_command_with_a_program_that_would_be_killed_changes_nothing(bridge: Bridge, tmp_path: Path) -> None:
    program = tmp_path / "clang"
    program.write_bytes(bytes.fromhex("cffaedfe0c00000102000080") + bytes(20))
    (tmp_path / "script").write_text(f"#!{program}\n")
    (tmp_path / "by-env").write_text("#!/usr/bin/env clang\n")
    environment = [b"PATH=" + bytes(tmp_path)]
    for name in ("clang", "script", "by-env"):
        for mode, changed in ((0o755, False), (0o644, True)):
            (tmp_path / "clang").chmod(0o755)
            (tmp_path / name).chmod(mode)
            command = f"true && {name} x".encode()
            assert (bridge.rewrite(b"/bin/sh", [b"sh", b"-c", command], environment) is not None) is changed


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
def test_every_builtin_of_real_shells_is_known(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    ask = {
        "bash": "compgen -bk",
        "zsh": "print -l ${(k)builtins} ${(k)reswords}",
        "dash": "echo cd echo test true wait",
    }
    names = subprocess.run([shell, "-c", ask[shell]], capture_output=True, check=True).stdout.split()
    assert len(names) > 4
    for name in names:
        walk = ffi.new("struct ns_shell_walk *")
        assert (lib.ns_shell_next(name, walk), walk.length) == (0, 0), name


PIECES = [
    *("w a", "FOO=3 w 'b c'", "echo e", "true", "false", "exit 3", "exec w last", "set -e", "cd /", 'w $1 "$@" $0'),
    *("x=$(w in); echo $x", "if w; then w t; else w e; fi", "for i in 1 2; do w $i; done", "(w sub)", "{ w group; }"),
    *("! w", "w > f; cat < f", "w 2>&1 | cat", "cat <<end\nw\nend\n", "f() { w f; }; f", "trap 'w t' EXIT", "w & wait"),
    *("case a in a) w c;; esac", "w \\\n more", "# w", "echo $LINENO", 'w ${FOO:-w} "${FOO:-w}"', "w 'a\nb'", "kept"),
    *(
        "w *",
        "w ~",
        "nothing-of-that-name",
        "w '",
        "fi",
        ")",
        "&& w",
        "two-words \"w; w\" 'w && w' | w",
        "w;;w",
        "FOO=2",
    ),
]
COMMANDS = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from(["; ", " && ", " || ", " | ", "\n", ";", "|", "&&"])),
    min_size=1,
    max_size=4,
).map(lambda parts: "".join(piece + joint for piece, joint in parts).rstrip(" ;&|\n"))
NOISE = st.text("wa '\"$`(){};&|<>\n#\\!=*?~[]-.,:/012", min_size=1, max_size=14)


def outcome(shell: str, programs: Path, command: str) -> tuple[int, bytes]:
    """Status and output; where commands run at the same time, its bytes in order."""
    with tempfile.TemporaryDirectory(prefix="shell") as folder:
        Path(folder, "f").write_text("file\n")
        done = subprocess.run(
            [str(shutil.which(shell)), "-c", command, "zero", "one", "two w"],
            env={"PATH": str(programs), "HOME": "/", "NS_A": VARIABLES[0][5:].decode(), "NS_B": "/b"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
        told = done.stdout.replace(folder.encode(), b"FOLDER")
        return done.returncode, bytes(sorted(told)) if "&" in command or "|" in command else told


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(command=st.one_of(COMMANDS, NOISE))
@example(command="\n".join(PIECES[:5]))
def test_a_real_shell_does_the_same(bridge: Bridge, programs: Path, shell: str, command: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assume("$$" not in command and "$!" not in command and "\0" not in command)
    # The status of a pipeline that ends with an assignment is by chance that of a command before it.
    assume(shell != "zsh" or "|FOO=" not in command.replace(" ", ""))
    made = command_of(bridge, programs, command)
    assume(made is not None)
    assert made is not None
    assert outcome(shell, programs, made) == outcome(shell, programs, command), made


@given(st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=40))
def test_no_text_leads_past_its_end(text: str) -> None:
    walk = ffi.new("struct ns_shell_walk *")
    command = text.encode("latin-1")
    while lib.ns_shell_next(command, walk):
        word = command[walk.start : walk.start + walk.length]
        assert 0 < walk.length == len(word)
        assert lib.ns_shell_is_plain(word, len(word))
    assert lib.ns_shell_is_simple(command) in (0, 1)


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
@pytest.mark.parametrize("options", ["-c", "-ec", "-xc"])
def test_lines_keep_their_numbers_and_a_trace_does_not_show_the_variables(
    bridge: Bridge, programs: Path, shell: str, options: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    made = rewritten(bridge, programs, options.encode(), b"echo a; echo b\n./absent\necho $LINENO", b"zero")
    assert made is not None
    given = ["zero", options, "echo a; echo b\n./absent\necho $LINENO", "zero"]
    original, changed = (
        subprocess.run(words, executable=shutil.which(shell), capture_output=True, check=False)
        for words in (given, [b"zero", *made[1:]])
    )
    assert (changed.returncode, changed.stdout, changed.stderr) == (
        original.returncode,
        original.stdout,
        original.stderr,
    )


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
def test_a_shell_still_becomes_a_simple_command(bridge: Bridge, programs: Path, shell: str) -> None:
    """Whoever ends the process that he started ends the program."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    made = command_of(bridge, programs, "w a")
    assert made is not None
    (programs / "w").write_text('#!/usr/bin/env sh\necho "$$"\n')
    becomes = []
    try:
        for command in ("w a", made):
            path = f"{programs}:/usr/bin:/bin"
            with subprocess.Popen([shell, "-c", command], env={"PATH": path}, stdout=subprocess.PIPE) as started:
                becomes.append(started.communicate()[0].split() == [str(started.pid).encode()])
    finally:
        (programs / "w").write_text(SHOW)
    assert becomes[0] == becomes[1]
