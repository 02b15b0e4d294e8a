"""A machine with AppArmor: its folder of profiles in a temporary place, and a stand-in for the program that loads them.

The kernel of the tests may have no AppArmor, so only the loading is a stand-in: files are real.
"""

from __future__ import annotations

from pathlib import Path

from netsandbox.doctor.apparmor_files import ProfileFile

# Notes how it was called and with which profile; refuses the step that the file `refuse` names.
PARSER = """#!/bin/sh
cd "${0%/*}" || exit
for last; do :; done
echo "$1" >>calls
cp "$last" "loaded$1"
if [ "$1" = "$(cat refuse 2>/dev/null)" ]; then echo "AppArmor parser error: no" >&2; exit 1; fi
"""


class Machine:
    """A folder of profiles, and a program that loads them."""

    def __init__(self, root: Path) -> None:
        self.bin, self.folder = root / "bin", root / "apparmor.d"
        self.bin.mkdir()
        (self.folder / "abi").mkdir(parents=True)
        (self.folder / "abi" / "4.0").write_text("")
        self.parser = self.bin / "apparmor_parser"
        self.parser.write_text(PARSER)
        self.parser.chmod(0o755)
        self.file = self.folder / "netsandbox"
        self.profile = ProfileFile(str(self.folder), str(self.bin) + ":/usr/bin:/bin")
        self.root = root

    def helper(self, name: str = "one") -> str:
        path = self.root / name / "netsandbox-init"
        path.parent.mkdir(mode=0o755)
        path.write_bytes(b"")
        path.chmod(0o755)
        return str(path)

    def calls(self) -> list[str]:
        log = self.bin / "calls"
        found = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return found

    def refuse(self, step: str) -> None:
        (self.bin / "refuse").write_text(step)
