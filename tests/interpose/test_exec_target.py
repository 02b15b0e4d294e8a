"""Which programs take the library on macOS: never a kill by dyld (attack 101)."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_interpose._native import lib

X86_64, ARM64, ARM64E = (0x01000007, 3), (0x0100000C, 0), (0x0100000C, 0x80000002)


def thin(part: tuple[int, int]) -> bytes:
    return struct.pack("<III", 0xFEEDFACF, *part) + bytes(20)


def fat(*parts: tuple[int, int]) -> bytes:
    return struct.pack(">II", 0xCAFEBABE, len(parts)) + b"".join(struct.pack(">II12x", *part) for part in parts)


def fat64(*parts: tuple[int, int]) -> bytes:
    return struct.pack(">II", 0xCAFEBABF, len(parts)) + b"".join(struct.pack(">II24x", *part) for part in parts)


@pytest.mark.attack(101)
@pytest.mark.parametrize(
    ("head", "takes"),
    [
        (thin(X86_64), 1),
        (thin(ARM64), 1),
        (thin(ARM64E), 0),
        (fat(X86_64, ARM64), 1),
        (fat(X86_64, ARM64E), 0),
        (fat64(X86_64, ARM64), 1),
        (fat64(X86_64, ARM64E), 0),
        (b"\x7fELF" + bytes(60), 1),
        (b"", 1),
    ],
)
def test_only_a_program_with_an_arm64e_part_goes_without(head: bytes, takes: int, tmp_path: Path) -> None:
    assert lib.ns_target_takes(head, len(head)) == takes
    program, script, outer = (tmp_path / name for name in ("program", "script", "outer"))
    program.write_bytes(head)
    script.write_text(f"#! {program} -x\nrest")
    outer.write_text(f"#!{script}\n")
    for path in (program, script, outer):
        assert lib.ns_target_file_takes(os.fsencode(path)) == takes


@given(st.binary(max_size=64), st.sampled_from([b"", thin(ARM64E)[:4], fat()[:4], fat64()[:4]]))
def test_no_header_leads_past_its_end(tail: bytes, magic: bytes) -> None:
    assert lib.ns_target_takes(magic + tail, len(magic + tail)) in (0, 1)


def test_what_cannot_be_read_is_the_kernels_to_refuse(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").write_text(f"#!{tmp_path / 'loop'}")
    for name in ("absent", "fifo", "loop", "."):
        assert lib.ns_target_file_takes(os.fsencode(tmp_path / name)) == 1


@pytest.mark.attack(101)
@pytest.mark.parametrize("path", ["/bin/sh", "/sbin/ping", "/usr/bin/env", "/usr/libexec/x", "/System/Library/x"])
def test_what_the_system_protects_goes_without(path: str, tmp_path: Path) -> None:
    """dyld deletes the variable there; a script is run by its interpreter."""
    script = tmp_path / "script"
    script.write_text(f"#!{path} -x\n")
    assert lib.ns_target_is_protected(path.encode())
    assert not lib.ns_target_file_takes(path.encode())
    assert not lib.ns_target_file_takes(os.fsencode(script))


@pytest.mark.parametrize(
    "path",
    ["/usr/local/bin/node", "/opt/homebrew/bin/node", "/Users/me/bin/sh", "/System/Volumes/Data/Users/me/x", "bin/sh"],
)
def test_what_users_install_takes_it(path: str) -> None:
    assert not lib.ns_target_is_protected(path.encode())


@pytest.mark.parametrize(("mode", "takes"), [(0o755, 1), (0o4755, 0), (0o2755, 0)])
def test_a_program_that_runs_as_another_user_goes_without(mode: int, takes: int, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(thin(ARM64))
    program.chmod(mode)
    assert lib.ns_target_file_takes(os.fsencode(program)) == takes
