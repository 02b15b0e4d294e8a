"""The file of a HAR: complete JSON after each entry, so that a session that is killed leaves one that can be opened.

Each entry is written over the closing brackets, with new ones behind it, in one call. A write that fails puts the
brackets back, and further entries are counted only. The file's size is bounded.
"""

from __future__ import annotations

import fcntl
import json
import os

from netsandbox.audit.log_file import HAR, open_file, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SIZE = 1 << 30
_CLOSING = b"\n]}}\n"
_BEGIN = b'{"log":{"version":"1.2","creator":{"name":"netsandbox"'


class HarFile:
    """*log* is the object around the entries (`har_entry.opening`)."""

    def __init__(self, path: str, log: Mapping[str, object]) -> None:
        self.path = path
        self.failure = ""  # why entries are left out
        self.left_out = 0
        self._fd = _open(path)
        self._end = 0  # where the closing brackets are
        self._is_first = True
        begin = _encoded({"log": log}).removesuffix(b"]}}")
        if not begin.startswith(_BEGIN) or not self._write(begin):
            os.close(self._fd)
            raise refusal(path, f"cannot be written ({self.failure}); give another place with --har", HAR)

    def add(self, entry: Mapping[str, object]) -> None:
        data = (b"\n" if self._is_first else b",\n") + _encoded(entry)
        if self._end + len(data) > MAX_SIZE:
            self.failure = f"it has {MAX_SIZE >> 20} MB"
        if self.failure or not self._write(data):
            self.left_out += 1
        else:
            self._is_first = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> bool:
        try:
            _write_all(self._fd, data + _CLOSING, self._end)
        except OSError as error:
            self.failure = error.strerror or "error"
            try:
                _write_all(self._fd, _CLOSING, self._end)
                os.ftruncate(self._fd, self._end + len(_CLOSING))
            except OSError:
                pass
            return False
        self._end += len(data)
        return True


def _open(path: str) -> int:
    """The file is new, or a HAR of an earlier session, which is replaced."""
    fd = open_file(path, HAR)
    try:
        begun = os.pread(fd, len(_BEGIN), 0)
        if begun in (b"", _BEGIN):
            # Appending would ignore the position of each write.
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND)
            os.ftruncate(fd, 0)
            return fd
        why = "exists and is not a HAR of netsandbox; give a path that does not exist yet"
    except OSError as error:
        why = f"cannot be read ({error.strerror}); give another place with --har"
    os.close(fd)
    raise refusal(path, why, HAR)


def _encoded(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _write_all(fd: int, data: bytes, position: int) -> None:
    while data:
        written = os.pwrite(fd, data, position)
        data, position = data[written:], position + written
