"""Reading settings that anybody may have written: a bounded piece of an ordinary file, or a reason why not."""

from __future__ import annotations

import os
import stat

SIZE_LIMIT = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Unreadable(ValueError):
    """The file is there and is not read. The message is one line."""


def read(path: str) -> bytes | None:
    """The content, or None where there is no file. Links are followed; pipes, devices and giants are not read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before it is opened: opening a device may do something
            raise Unreadable("is no ordinary file")
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, Unreadable):
            raise
        return None  # a name that no file can have
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("is no ordinary file")
        return _content(descriptor)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _content(descriptor: int) -> bytes:
    content = bytearray()
    while len(content) <= SIZE_LIMIT:
        piece = os.read(descriptor, SIZE_LIMIT + 1 - len(content))
        if not piece:
            return bytes(content)
        content += piece
    raise Unreadable(f"is larger than {SIZE_LIMIT >> 20} MiB")
