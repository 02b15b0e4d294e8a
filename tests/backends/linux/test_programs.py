"""What must be executable besides a program that is listed."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.programs import find_program, interpreters, loader_place, needed_programs

PATH = "/usr/bin:/bin"
SHELL = os.path.realpath("/bin/sh")


def loader() -> str:
    (found,) = [path for path in needed_programs([SHELL], PATH) if path != SHELL]
    return found


def test_a_program_needs_its_loader() -> None:
    assert os.path.basename(loader()).startswith("ld-")
    assert needed_programs([SHELL], PATH)[0] == SHELL


def test_a_script_needs_its_interpreter_and_that_its_loader(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh -e\necho\n")
    assert set(needed_programs([str(script)], PATH)) == {str(script), SHELL, loader()}


def test_env_needs_the_program_that_it_starts(tmp_path: Path) -> None:
    python = tmp_path / "python9"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    found = interpreters(b"#!/usr/bin/env -S LANG=C python9 -u\n", f"{PATH}:{tmp_path}")
    assert found == [os.path.realpath("/usr/bin/env"), str(python)]


def test_a_folder_needs_the_loader_and_a_missing_path_nothing(tmp_path: Path) -> None:
    assert set(needed_programs([str(tmp_path), str(tmp_path / "none")], PATH)) == {str(tmp_path), loader()}


def test_a_ring_of_scripts_ends(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(f"#!{second}\n")
    second.write_text(f"#!{first}\n")
    assert set(needed_programs([str(first)], PATH)) == {str(first), str(second), loader()}


def test_a_command_is_found_as_the_shell_finds_it(tmp_path: Path) -> None:
    (tmp_path / "sh").mkdir()
    assert find_program("sh", f"{tmp_path}:{PATH}") == SHELL
    assert find_program("/bin/sh", "") == SHELL
    assert find_program("no-such-program", PATH) is None


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_a_head(data: bytes, elf: bool) -> None:
    head = b"\x7fELF\x02\x01" + data if elf else data
    place = loader_place(head)
    assert place is None or len(place) == 2
    assert all(path.startswith("/") for path in interpreters(b"#!" + data.replace(b"\0", b""), ""))


def test_a_head_that_names_an_impossible_place(tmp_path: Path) -> None:
    program = bytearray(Path(SHELL).read_bytes()[:4096])
    place = loader_place(bytes(program))
    assert place is not None
    at = bytes(program).index(place[0].to_bytes(8, "little") + place[0].to_bytes(8, "little"))
    program[at : at + 8] = b"\xff" * 8
    broken = tmp_path / "broken"
    broken.write_bytes(program)
    assert set(needed_programs([str(broken)], PATH)) == {str(broken), loader()}
