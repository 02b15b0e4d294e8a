"""The bytecode of everything that a launch loads, in one file: to look for a module takes longer than to run it.

    <our package>/__pycache__/launch.cpython-311.bundle

Rules kept: it lies beside the bytecode that the interpreter keeps, and is trusted for the same reason: our packages are
read-only in every session, so whoever can write it can write the sources too. (The state home would not do: a session
that was given another one sees the usual one.) A module counts only while its source is as it was, to the nanosecond;
any other is imported as ever, and before the command runs the bundle is made anew (see `bundling`).
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader, spec_from_file_location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACE = os.path.join(PACKAGE, "__pycache__", f"launch.{sys.implementation.cache_tag}.bundle")
MARK = (MAGIC_NUMBER, sys.flags.optimize, PACKAGE)
OURS = "netsandbox"

LENGTH = 8  # bytes of the number before the list of what is in it

Entry = tuple[str, int, int, int, int]  # the source, when it was changed, its size; where the code begins and ends


class BundledLoader(SourceFileLoader):
    """The interpreter's own, but for where the code comes from."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = marshal.loads(self._code)  # noqa: S302 (as trusted as the source)
        return code


class Bundle:
    """The first finder on the path, until imports are sealed. `missed` are modules of ours that it left to others."""

    def __init__(self, place: str, entries: dict[str, Entry], codes: memoryview) -> None:
        self.place = place
        self.entries = entries
        self.missed: list[str] = []
        self._codes = codes

    def code(self, entry: Entry) -> memoryview:
        return self._codes[entry[3] : entry[4]]

    @property
    def lacks(self) -> bool:
        """Whether it should have more, and bytecode may be written at all."""
        folder = os.path.dirname(self.place)
        return bool(self.missed) and not sys.dont_write_bytecode and os.access(folder, os.W_OK)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        entry = self.entries.get(name)
        if entry is None or not _is_unchanged(entry):
            if name.startswith(OURS):
                self.missed.append(name)
            return None
        source = entry[0]
        inner = [os.path.dirname(source)] if source.endswith("/__init__.py") else None
        loader = BundledLoader(name, source, self.code(entry))
        spec = spec_from_file_location(name, source, loader=loader, submodule_search_locations=inner)
        if spec is not None:
            spec.cached = self.place
        return spec


def _is_unchanged(entry: Entry) -> bool:
    source, changed, size, _, _ = entry
    try:
        state = os.stat(source)
    except OSError:
        return False
    return state.st_mtime_ns == changed and state.st_size == size


def read_bundle(place: str = PLACE) -> Bundle:
    """As it was written; empty if it is not there, not whole, or of another interpreter or another folder."""
    try:
        with open(place, "rb", 0) as file:
            data = memoryview(file.read())
        start = LENGTH + int.from_bytes(data[:LENGTH], "little")
        mark, size, entries = marshal.loads(data[LENGTH:start])  # noqa: S302 (as trusted as the sources)
    except (OSError, EOFError, ValueError, TypeError):
        return Bundle(place, {}, memoryview(b""))
    codes = data[start:]
    return Bundle(place, entries if (mark, size) == (MARK, len(codes)) else {}, codes)


def use_bundle() -> None:
    """From now on modules of ours come out of it."""
    sys.meta_path.insert(0, read_bundle())
