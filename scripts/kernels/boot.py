"""Boots a machine of qemu for one case and reads its result. No network; nothing of the root disk is changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULT_SIZE = 1 << 20
# Emulated also where KVM is: the same machine on every host, whatever its processor.
COMMON = ("-accel", "tcg,thread=multi", "-smp", "2", "-m", "2048", "-nodefaults", "-display", "none", "-no-reboot")
# `max` offers what the emulator has. Its default pointer authentication is slow to emulate (arm64).
PROCESSORS = {
    "amd64": ("qemu-system-x86_64", "-machine", "q35", "-cpu", "max"),
    "arm64": ("qemu-system-aarch64", "-machine", "virt", "-cpu", "max,pauth-impdef=on"),
}
CONSOLES = {"amd64": "ttyS0", "arm64": "ttyAMA0"}


@dataclass(frozen=True)
class Machine:
    """A built machine: `folder` has the root disk, and a folder for each kernel by its Debian release."""

    architecture: str
    folder: Path
    release: str


def command(machine: Machine, options: Sequence[str], work: Path) -> list[str]:
    """The order of the drives is that of guest/init: root, what is tested, result."""
    kernel = machine.folder / machine.release
    quiet = ("quiet", "loglevel=3", "panic=-1", f"console={CONSOLES[machine.architecture]}")
    drives = (
        f"file={machine.folder / 'disk'},snapshot=on",
        f"file={work / 'payload'},read-only=on",
        f"file={work / 'result'}",
    )
    return [
        *PROCESSORS[machine.architecture],
        *COMMON,
        *("-kernel", str(kernel / "vmlinuz"), "-initrd", str(kernel / "initramfs")),
        *("-append", " ".join((*quiet, *options))),
        *("-serial", f"file:{work / 'console'}"),
        *(word for drive in drives for word in ("-drive", f"{drive},if=virtio,format=raw")),
    ]


def boot(machine: Machine, options: Sequence[str], work: Path, seconds: float) -> dict[str, Any]:
    """The result that the guest wrote; `broken` in it says why it is not complete."""
    with (work / "result").open("wb") as disk:
        disk.truncate(RESULT_SIZE)
    with (work / "qemu").open("wb") as output:
        try:
            subprocess.run(
                command(machine, options, work), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"broken": f"not done after {seconds:.0f} s", **parsed((work / "result").read_bytes())}
    return parsed((work / "result").read_bytes()) or {"broken": _last_lines(work)}


def parsed(disk: bytes) -> dict[str, Any]:
    """What the guest has written last; nothing if it wrote nothing."""
    text = disk.partition(b"\0")[0]
    try:
        found: dict[str, Any] = json.loads(text) if text else {}
    except ValueError:
        return {"broken": "the result cannot be read"}
    return found


def _last_lines(work: Path) -> str:
    lines = (work / "qemu").read_text("utf-8", "replace") + (work / "console").read_text("utf-8", "replace")
    return f"it wrote no result; the console ends with: {' / '.join(lines.split(chr(10))[-4:]).strip()}"
