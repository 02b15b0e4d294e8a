"""Makes the bind and listen calls of internet sockets in a session whose ports are limited to its window.

1. This module never answers CONTINUE: the kernel would read the address and look up the descriptor again after our
   check (attacks 115 and 116). We copy both, check the copies, and make the call on the copies.
2. The native broker (native/sockets.h) makes all other calls. It passes on a bind of an internet socket; another socket
   that arrives here was put in its place meanwhile, and is refused.
3. A socket that was made in another network and inherited is refused: it would bypass the window (attack 132).
4. A failed check is a refusal (INV-1).

Closing a copy may block, so `close_later` does it.
"""

from __future__ import annotations

import _socket
import errno
import os

from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.linux.syscall_outcome import AllowedCall, Refusal
from netsandbox.backends.namespaces import remote_process
from netsandbox.backends.namespaces.close_later import CloseLater
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.linux.seccomp_notify import Listener, TrappedCall

    Judge = Callable[[TrappedCall, str, _socket.socket, bytes], AllowedCall | Refusal]

MAX_ADDRESS = 128  # sizeof(struct sockaddr_storage)
MAX_UNANSWERED = 1024
INTERNET = (_socket.AF_INET, _socket.AF_INET6)
OWN_MISTAKES = (errno.EBADF, errno.ENOTSOCK)  # the kernel would fail the same way before it reads an address


class Broker:
    """One per session. *guard* checks internet sockets that bind or listen."""

    def __init__(self, listener: Listener, repeats: FoldedRecords, guard: Judge) -> None:
        self._listener = listener
        self._repeats = repeats
        self._guard = guard
        calls = syscall_table(os.uname().machine).calls
        self._names = {calls[name]: name for name in ("bind", "listen")}
        self._closer = CloseLater()
        self._unanswered: set[tuple[str, int, bytes]] = set()  # made; the caller was interrupted before the result

    def takes(self, call: TrappedCall) -> bool:
        return call.number in self._names

    def close(self) -> None:
        self._closer.close()

    def serve(self, call: TrappedCall) -> None:
        sock: _socket.socket | None = None
        try:
            if self._closer.full:
                decided: AllowedCall | Refusal = _too_many()
            else:
                sock = remote_process.copy_socket(call.pid, call.arguments[0] & 0xFFFFFFFF)
                decided = self._decide(call, sock)
        except OSError as error:
            decided = _failure(error)
        except Exception as error:
            decided = Refusal(errno.EACCES, {"reason": reasons.INTERNAL, "detail": repr(error)})
        if isinstance(decided, Refusal):
            self._refuse(call, decided, sock)
        else:
            self._carry_out(decided)

    def _decide(self, call: TrappedCall, sock: _socket.socket) -> AllowedCall | Refusal:
        name, address = self._names[call.number], b""
        if name == "bind":
            pointer, length = call.arguments[1], call.arguments[2] & 0xFFFFFFFF
            if length > MAX_ADDRESS:
                return Refusal(errno.EINVAL)
            address = remote_process.memory(call.pid, pointer, length)
        if not remote_process.in_network_of(call.pid, sock):
            detail = "the socket belongs to another network"
            return Refusal(errno.EPERM, {"reason": reasons.SOCKET_FAMILY, "detail": detail})
        if not self._listener.is_valid(call):
            return Refusal(errno.EACCES)
        if sock.family in INTERNET:
            return self._guard(call, name, sock, address)
        return AllowedCall(call, name, sock) if name == "listen" else Refusal(errno.EACCES)

    def _carry_out(self, task: AllowedCall) -> None:
        key = _key(task)
        try:
            number = self._make(task)
        except Exception as error:
            number = errno.EACCES
            self._note(task.call, Refusal(number, {"reason": reasons.INTERNAL, "detail": repr(error)}))
        self._closer.queue(task, lambda: self._answer(task.call, number, key))

    def _answer(self, call: TrappedCall, number: int, key: tuple[str, int, bytes]) -> None:
        if not self._listener.answer(call, error=number) and number == 0:
            self._remember(key)

    def _make(self, task: AllowedCall) -> int:
        """Make the call. A caller that was interrupted repeats a call that we have made, and gets its success then."""
        number = task.act() if task.act is not None else _act(task)
        if task.name == "bind" and number == errno.EINVAL and _key(task) in self._unanswered:
            self._unanswered.discard(_key(task))
            return 0
        return number

    def _remember(self, key: tuple[str, int, bytes]) -> None:
        if len(self._unanswered) >= MAX_UNANSWERED:
            self._unanswered.clear()
        self._unanswered.add(key)

    def _refuse(self, call: TrappedCall, refusal: Refusal, copy: _socket.socket | None) -> None:
        try:
            self._note(call, refusal)
        finally:
            if copy is None:
                self._listener.answer(call, error=refusal.number)
            else:
                self._closer.queue(copy, lambda: self._listener.answer(call, error=refusal.number))

    def _note(self, call: TrappedCall, refusal: Refusal) -> None:
        if refusal.record is not None:
            exe, name = self._listener.exe_of(call), self._names[call.number]
            fields = {"door": "seccomp", "exe": exe, "call": name, "verdict": "deny", **refusal.record}
            self._repeats.note(call.pid, event=refusal.event, **fields)


def _too_many() -> Refusal:
    return Refusal(errno.EAGAIN, {"reason": reasons.LIMIT, "detail": "too many calls wait at once"})


def _act(task: AllowedCall) -> int:
    fd = task.sock.fileno()
    if task.name == "listen":
        return remote_process.listen(fd, task.call.arguments[1] & 0xFFFFFFFF)
    return remote_process.bind(fd, task.address)


def _key(task: AllowedCall) -> tuple[str, int, bytes]:
    return task.name, os.fstat(task.sock.fileno()).st_ino, task.address


def _failure(error: OSError) -> Refusal:
    """The refusal for a socket, memory or process that could not be read."""
    if error.errno in OWN_MISTAKES:
        return Refusal(error.errno)
    if error.errno == errno.EFAULT:
        return Refusal(errno.EFAULT, {"reason": reasons.MALFORMED, "detail": "the address cannot be read"})
    reason = reasons.LIMIT if error.errno in (errno.EMFILE, errno.ENFILE) else reasons.INTERNAL
    detail = f"cannot look into the calling process: {error.strerror}"
    return Refusal(errno.EACCES, {"reason": reason, "detail": detail})
