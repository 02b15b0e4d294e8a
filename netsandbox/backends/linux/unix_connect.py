"""Decides about connects and binds that the native broker does not make by itself (native/sockets.h).

The sockets of the session are the broker's. Any other socket file is the host's: `--allow-unix-socket` names those that
may be used, and `unix_pins` says which file is meant. The broker holds the inode that it asks about and connects to
nothing else. An allowed connect is recorded before it is made (INV-5).
"""

from __future__ import annotations

import errno

from netsandbox.backends.linux.seccomp_notify import TYPES
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.linux.trap_relay import SocketQuestion
    from netsandbox.backends.linux.unix_pins import PinnedSocket

PLAIN = "@%+=:,./-_"  # besides letters and digits: characters without a meaning in any shell


class UnixConnect:
    """One per session. *pins* are the paths of the policy, pinned before the command ran."""

    def __init__(self, repeats: FoldedRecords, pins: Sequence[PinnedSocket]) -> None:
        self._repeats = repeats
        self._pins = pins

    def __call__(self, question: SocketQuestion) -> int:
        """0, or the errno of the refusal."""
        if question.kind == "u":
            return self._decide(question)
        if question.kind == "h":
            return self._refuse(question, question.error, reasons.UNIX_SOCKET, hint=_hint(question.path))
        if question.kind == "n":
            detail = "the socket belongs to another network"
            return self._refuse(question, errno.EPERM, reasons.SOCKET_FAMILY, detail=detail, family=None)
        if question.kind == "m":
            return self._refuse(question, errno.EFAULT, reasons.MALFORMED, detail="the address cannot be read")
        return self._refuse_unknown(question)

    def _decide(self, question: SocketQuestion) -> int:
        pin = next((pin for pin in self._pins if _admits(pin, question)), None)
        if pin is None or question.binds:
            return self._refuse(question, errno.EACCES, reasons.UNIX_SOCKET, hint=_hint(question.path))
        if self._note(question, verdict="allow", reason=reasons.RULE, rule=pin.path):
            return 0
        return self._refuse(question, errno.EACCES, reasons.AUDIT_UNWRITABLE, detail="the log")

    def _refuse_unknown(self, question: SocketQuestion) -> int:
        import os

        reason = reasons.LIMIT if question.error in (errno.EMFILE, errno.ENFILE) else reasons.INTERNAL
        detail = f"cannot look into the calling process: {os.strerror(question.error)}"
        return self._refuse(question, errno.EACCES, reason, detail=detail)

    def _refuse(self, question: SocketQuestion, number: int, reason: str, **fields: str | None) -> int:
        self._note(question, verdict="deny", reason=reason, **fields)
        return number

    def _note(self, question: SocketQuestion, **fields: str | None) -> bool:
        facts: dict[str, Any] = {
            "family": "unix",
            "call": "bind" if question.binds else "connect",
            "type": TYPES.get(question.type),
            "path": question.path or None,
            **fields,
        }
        return self._repeats.note(question.pid, door="seccomp", exe=question.exe, **facts)


def _hint(path: str) -> str | None:
    """The option that would allow it. It may be pasted into a shell, so it is left out for a path that a shell
    interprets: the command chose it.
    """
    plain = path.startswith("/") and path.isascii() and all(char.isalnum() or char in PLAIN for char in path)
    return f"--allow-unix-socket {path}" if plain else None


def _admits(pin: PinnedSocket, question: SocketQuestion) -> bool:
    try:
        return pin.admits((question.device, question.inode))
    except OSError:  # the name is gone, or the kernel cannot be queried
        return False
