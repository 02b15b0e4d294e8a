"""An install of made-up files and a signer that writes down its call and changes them, as codesign would."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.seatbelt.signing import Parts

SIGNED = b" signed here"
SIGNER = """#!/bin/sh
echo "$@" >> {log}
shift 3
for file; do printf ' signed here' >> "$file"; done
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def installed(tmp_path: Path) -> Parts:
    folder = tmp_path / "installed"
    folder.mkdir()
    for name in ("netsandbox-apply", "libnetsandbox_interpose.dylib", "_native.abi3.so"):
        (folder / name).write_bytes(name.encode())
    return Parts(
        *(str(folder / name) for name in ("netsandbox-apply", "libnetsandbox_interpose.dylib", "_native.abi3.so"))
    )


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def codesign(tmp_path: Path) -> str:
    return program(tmp_path / "codesign", SIGNER.format(log=tmp_path / "log"))


def calls(tmp_path: Path) -> list[list[str]]:
    log = tmp_path / "log"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def paths(parts: Parts) -> list[str]:
    return [parts.helper, parts.library, parts.module]


def all_signed(parts: Parts, installed: Parts) -> bool:
    return not parts.unsigned and all(
        Path(copy).read_bytes() == Path(original).read_bytes() + SIGNED
        for copy, original in zip(paths(parts), paths(installed), strict=True)
    )
