"""Makes the connect, bind and listen calls of a session in which some of them must be checked.

Such a session may use Unix sockets (`--allow-unix-socket`), or its ports are limited to its window.

1. This module never answers CONTINUE: the kernel would read the address and look up the descriptor again after our
   check (attacks 115 and 116). We copy both, check the copies, and make the call on the copies.
2. `unix_connect` checks Unix sockets; `bind_guard`, if present, checks internet sockets that bind or listen.
3. Other internet and netlink sockets may use the session's own network, which the doors guard. We have more rights than
   the caller there, so ports that need a capability are refused here. Sockets that were made in another network and
   inherited are refused too: with a new target they would bypass the doors (attack 132).
4. A failed check is a refusal (INV-1).

A connect may block as long as its socket does, so a thread makes it that uses nothing but its own descriptors. Only the
loop's thread writes the log: an error of the other is recorded with the next call. Closing a copy may block too, so
`close_later` does it.
"""

from __future__ import annotations

import _socket
import _thread
import errno
import os
import signal

from netsandbox_portmap.bind_rule import needs_capability

from netsandbox.backends.namespaces import remote_process
from netsandbox.backends.namespaces.close_later import CloseLater
from netsandbox.backends.namespaces.seccomp import syscall_table
from netsandbox.backends.namespaces.syscall_outcome import AllowedCall, Refusal
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.namespaces.seccomp_notify import Listener, TrappedCall

    Judge = Callable[[TrappedCall, str, _socket.socket, bytes], AllowedCall | Refusal]

MAX_ADDRESS = 128  # sizeof(struct sockaddr_storage)
MAX_WAITING = 256
MAX_UNANSWERED = 1024
INTERNET = (_socket.AF_INET, _socket.AF_INET6)
OWN_MISTAKES = (errno.EBADF, errno.ENOTSOCK)  # the kernel would fail the same way before it reads an address
DONE_ALREADY = {"connect": errno.EISCONN, "bind": errno.EINVAL}


class Broker:
    """One per session. *unix* checks Unix sockets, *guard* internet sockets that bind or listen. Without a guard any
    port is allowed; without *unix* no Unix socket can exist.

    Threads that still wait at the end of a session end with the process; their callers are gone.
    """

    def __init__(self, listener: Listener, repeats: FoldedRecords, *, unix: Judge | None, guard: Judge | None) -> None:
        self._listener = listener
        self._repeats = repeats
        self._unix = unix
        self._guard = guard
        calls = syscall_table(os.uname().machine).calls
        names = ("connect", "bind") if guard is None else ("connect", "bind", "listen")
        self._names = {calls[name]: name for name in names}
        self._closer = CloseLater()
        self._waiting: set[AllowedCall] = set()
        self._errors: list[tuple[int, str, dict[str, object]]] = []  # of threads, not recorded yet
        self._unanswered: set[tuple[str, int, bytes]] = set()  # made; the caller was interrupted before the result

    def takes(self, call: TrappedCall) -> bool:
        return call.number in self._names

    def close(self) -> None:
        self._closer.close()
        self._record_errors()

    def serve(self, call: TrappedCall) -> None:
        self._record_errors()
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
            return
        refusal = self._start(decided)
        if refusal is not None:
            self._refuse(call, refusal, decided)

    def _decide(self, call: TrappedCall, sock: _socket.socket) -> AllowedCall | Refusal:
        _, pointer, length = call.arguments[:3]
        length &= 0xFFFFFFFF
        if self._names[call.number] == "listen":
            return self._decide_address(call, sock, b"")
        if length > MAX_ADDRESS:
            return Refusal(errno.EINVAL)
        return self._decide_address(call, sock, remote_process.memory(call.pid, pointer, length))

    def _decide_address(self, call: TrappedCall, sock: _socket.socket, address: bytes) -> AllowedCall | Refusal:
        name = self._names[call.number]
        if not remote_process.in_network_of(call.pid, sock):
            detail = "the socket belongs to another network"
            return Refusal(errno.EPERM, {"reason": reasons.SOCKET_FAMILY, "detail": detail})
        if not self._listener.is_valid(call):
            return Refusal(errno.EACCES)
        if sock.family == _socket.AF_UNIX:
            return self._unix(call, name, sock, address) if self._unix is not None else Refusal(errno.EACCES)
        if self._guard is not None and name != "connect" and sock.family in INTERNET:
            return self._guard(call, name, sock, address)
        if name == "bind" and _needs_capability(sock, address):
            return Refusal(errno.EACCES)
        return AllowedCall(call, name, sock, address)

    def _start(self, task: AllowedCall) -> Refusal | None:
        """Make the call, now or in a thread, or return the refusal."""
        if task.name != "connect":  # never blocks
            self._carry_out(task)
            return None
        if len(self._waiting) >= MAX_WAITING:
            return _too_many()
        self._waiting.add(task)
        try:
            _thread.start_new_thread(self._wait_for, (task,))
        except RuntimeError as error:
            self._waiting.discard(task)
            return Refusal(errno.EACCES, {"reason": reasons.INTERNAL, "detail": repr(error)})
        return None

    def _wait_for(self, task: AllowedCall) -> None:
        """Runs in a separate thread. The main thread handles the process's signals."""
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            self._carry_out(task)
        finally:
            self._waiting.discard(task)

    def _carry_out(self, task: AllowedCall) -> None:
        key = _key(task)
        try:
            number = self._make(task)
        except Exception as error:
            number = errno.EACCES
            refusal = Refusal(number, {"reason": reasons.INTERNAL, "detail": repr(error)})
            self._errors.append((task.call.pid, refusal.event, self._fields(task.call, refusal)))
        self._closer.queue(task, lambda: self._answer(task.call, number, key))

    def _answer(self, call: TrappedCall, number: int, key: tuple[str, int, bytes]) -> None:
        if not self._listener.answer(call, error=number) and number == 0:
            self._remember(key)

    def _make(self, task: AllowedCall) -> int:
        """Make the call. A caller that was interrupted repeats a call that we have made, and gets its success then."""
        number = task.act() if task.act is not None else _act(task)
        if number == DONE_ALREADY.get(task.name) and _key(task) in self._unanswered:
            self._unanswered.discard(_key(task))
            return 0
        return number

    def _remember(self, key: tuple[str, int, bytes]) -> None:
        if len(self._unanswered) >= MAX_UNANSWERED:
            self._unanswered.clear()
        self._unanswered.add(key)

    def _refuse(self, call: TrappedCall, refusal: Refusal, copy: _socket.socket | AllowedCall | None) -> None:
        try:
            self._note(call, refusal)
        finally:
            if copy is None:
                self._listener.answer(call, error=refusal.number)
            else:
                self._closer.queue(copy, lambda: self._listener.answer(call, error=refusal.number))

    def _note(self, call: TrappedCall, refusal: Refusal) -> None:
        if refusal.record is not None:
            self._repeats.note(call.pid, event=refusal.event, **self._fields(call, refusal))

    def _fields(self, call: TrappedCall, refusal: Refusal) -> dict[str, object]:
        exe, name = self._listener.exe_of(call), self._names[call.number]
        return {"door": "seccomp", "exe": exe, "call": name, "verdict": "deny", **(refusal.record or {})}

    def _record_errors(self) -> None:
        while self._errors:
            pid, event, fields = self._errors.pop(0)
            self._repeats.note(pid, event=event, **fields)


def _too_many() -> Refusal:
    return Refusal(errno.EAGAIN, {"reason": reasons.LIMIT, "detail": "too many calls wait at once"})


def _act(task: AllowedCall) -> int:
    fd = task.sock.fileno()
    if task.name == "listen":
        return remote_process.listen(fd, task.call.arguments[1] & 0xFFFFFFFF)
    return (remote_process.connect if task.name == "connect" else remote_process.bind)(fd, task.address)


def _needs_capability(sock: _socket.socket, address: bytes) -> bool:
    return sock.family in INTERNET and needs_capability(int.from_bytes(address[2:4], "big"))


def _key(task: AllowedCall) -> tuple[str, int, bytes]:
    address = b"" if task.target >= 0 else task.address  # a target's address names our own descriptor
    return task.name, os.fstat(task.sock.fileno()).st_ino, address


def _failure(error: OSError) -> Refusal:
    """The refusal for a socket, memory or process that could not be read."""
    if error.errno in OWN_MISTAKES:
        return Refusal(error.errno)
    if error.errno == errno.EFAULT:
        return Refusal(errno.EFAULT, {"reason": reasons.MALFORMED, "detail": "the address cannot be read"})
    reason = reasons.LIMIT if error.errno in (errno.EMFILE, errno.ENFILE) else reasons.INTERNAL
    detail = f"cannot look into the calling process: {error.strerror}"
    return Refusal(errno.EACCES, {"reason": reason, "detail": detail})
