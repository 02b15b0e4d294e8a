"""A Mach-O file for both processors: what is done to it after the linker."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")

import universal_binary

ARCHITECTURES = list(universal_binary.ARCHITECTURES)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "main.c").write_text("int main(void) { return 7; }\n")
    return tmp_path


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_file_without_room_for_a_signature_is_not_built(sources: Path, architecture: str) -> None:
    with pytest.raises(RuntimeError, match="no room for the signature"):
        universal_binary.compile_slice(architecture, "main", sources, ["-Wl,-headerpad,0", "main.c"])
    assert universal_binary.compile_slice(architecture, "main", sources, ["main.c"])


def test_room_is_counted_from_the_last_command_to_the_first_section(sources: Path) -> None:
    made = bytearray(universal_binary.compile_slice("x86_64", "main", sources, ["main.c"]))
    first = min(offset for offset in universal_binary._section_offsets(made) if offset)
    for room, enough in ((universal_binary.SIGNATURE_COMMAND, True), (universal_binary.SIGNATURE_COMMAND - 8, False)):
        struct.pack_into("<I", made, 20, first - universal_binary.HEADER_BYTES - room)
        if enough:
            universal_binary.check_room(made)
        else:
            with pytest.raises(RuntimeError, match="no room"):
                universal_binary.check_room(made)


def test_each_slice_begins_on_a_page_and_the_table_says_where(sources: Path) -> None:
    slices = [b"a" * 5, b"b" * 7]
    data = universal_binary.join(slices)
    magic, count = struct.unpack_from(">II", data)
    assert (magic, count) == (universal_binary.FAT_MAGIC, 2)
    for number, one in enumerate(slices):
        kind, subtype, start, size, bits = struct.unpack_from(">IIIII", data, 8 + 20 * number)
        assert (kind, subtype) == universal_binary.ARCHITECTURES[ARCHITECTURES[number]]
        assert start % (1 << bits) == 0
        assert data[start : start + size] == one


def test_a_signer_that_is_not_there_is_told_and_what_was_built_stays(
    sources: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(universal_binary, "CODESIGN", "/nowhere/codesign")
    universal_binary.sign(sources / "main.c")
    assert "main.c is not signed by this Mac" in capsys.readouterr().err
    assert (sources / "main.c").exists()
