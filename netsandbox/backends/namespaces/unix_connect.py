"""Decides which Unix sockets a session may connect to (`--allow-unix-socket`).

A socket is connected only to the inode that was checked (`unix_pins`), through its O_PATH descriptor. No name may be
bound and no abstract name reached: an accomplice outside could pass descriptors in (attack 131). An allowed call is
recorded before it is made (INV-5).
"""

from __future__ import annotations

import errno
import os
import stat

from netsandbox.backends.namespaces import remote_process
from netsandbox.backends.namespaces.seccomp_notify import TYPES
from netsandbox.backends.namespaces.syscall_outcome import AllowedCall, Refusal
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.namespaces.seccomp_notify import Listener, TrappedCall
    from netsandbox.backends.namespaces.unix_pins import PinnedSocket

AF_UNIX = (1).to_bytes(2, "little")
PLAIN = "@%+=:,./-_"  # besides letters and digits: characters without a meaning in any shell
NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class UnixConnect:
    """One per session. *pins* are the paths of the policy, pinned before the command ran."""

    def __init__(self, listener: Listener, repeats: FoldedRecords, pins: Sequence[PinnedSocket]) -> None:
        self._listener = listener
        self._repeats = repeats
        self._pins = pins

    def __call__(self, call: TrappedCall, name: str, sock: _socket.socket, address: bytes) -> AllowedCall | Refusal:
        shown = _shown(address)
        if name != "connect":
            return _refusal(reasons.UNIX_SOCKET, path=shown, detail=name)
        if address[:2] != AF_UNIX:
            return _refusal(reasons.MALFORMED, errno.EINVAL, detail="not a Unix address")
        path = address[2:].split(b"\0")[0]
        if not path:
            return _refusal(reasons.UNIX_SOCKET, path=shown)
        try:
            target = remote_process.open_path(call.pid, path)
        except OSError as error:
            number = error.errno if error.errno in NO_SUCH_FILE else errno.EACCES
            return _refusal(reasons.UNIX_SOCKET, number or errno.EACCES, path=shown, detail=error.strerror)
        try:
            refusal = self._admit(call, sock, target, shown)
        except BaseException:
            os.close(target)
            raise
        if refusal is not None:
            os.close(target)
            return refusal
        return AllowedCall(call, name, sock, AF_UNIX + b"/proc/self/fd/%d\0" % target, target=target)

    def _admit(self, call: TrappedCall, sock: _socket.socket, target: int, shown: str) -> Refusal | None:
        """None if the opened file is an allowed socket, the call still waits, and the record is written."""
        info = os.fstat(target)
        if not self._listener.is_valid(call):
            return Refusal(errno.EACCES)
        if not stat.S_ISSOCK(info.st_mode):
            return _refusal(reasons.UNIX_SOCKET, path=shown, detail="not a socket")
        pin = next((pin for pin in self._pins if _admits(pin, info)), None)
        if pin is None:
            return _refusal(reasons.UNIX_SOCKET, path=shown)
        written = self._repeats.note(
            call.pid,
            door="seccomp",
            exe=self._listener.exe_of(call),
            family="unix",
            call="connect",
            verdict="allow",
            reason=reasons.RULE,
            rule=pin.path,
            type=TYPES.get(sock.type & 0xF),
            path=shown,
        )
        return None if written else _refusal(reasons.AUDIT_UNWRITABLE, path=shown, detail="the log")


def _refusal(reason: str, number: int = errno.EACCES, *, path: str | None = None, detail: str | None = None) -> Refusal:
    """The refusal, with the option that would allow it, if one would. The option may be pasted into a shell, so it is
    left out if the command chose a path that a shell interprets.
    """
    allowable = path is not None and path.startswith("/") and detail is None and _is_plain(path)
    hint = f"--allow-unix-socket {path}" if allowable else None
    return Refusal(number, {"family": "unix", "reason": reason, "path": path, "detail": detail, "hint": hint})


def _is_plain(path: str) -> bool:
    return path.isascii() and all(char.isalnum() or char in PLAIN for char in path)


def _admits(pin: PinnedSocket, info: os.stat_result) -> bool:
    try:
        return pin.admits(info)
    except OSError:  # the name is gone, or the kernel cannot be queried
        return False


def _shown(address: bytes) -> str:
    """The path as text; an abstract name begins with @, as in unix(7) and ss(8)."""
    name = address[2:]
    if name.startswith(b"\0"):
        return "@" + name[1:].rstrip(b"\0").decode("utf-8", "surrogateescape")
    return name.split(b"\0")[0].decode("utf-8", "surrogateescape")
