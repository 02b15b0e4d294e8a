"""Carries out connect and bind for a session that may use some Unix sockets (`--allow-unix-socket`).

Rules kept here:
1. The kernel never hears CONTINUE: it would read the address and look the descriptor up again, after our check
   (attacks 115 and 116). We take a copy of both, judge the copy and make the call ourselves on the copy.
2. A Unix socket is connected only to the very inode that was judged (`unix_pins`), through its O_PATH descriptor.
   No name may be bound and no abstract name reached: an accomplice outside could pass descriptors in (attack 131).
3. Internet and netlink sockets are let through to the session's own network, which the doors guard. We act with more
   rights than the caller there, so ports that need a capability are refused here, and so are sockets that were made in
   another network and inherited: aimed anew they would bypass the doors (attack 132).
4. Whatever cannot be found out is a no (INV-1). The record of a yes is in the log before the call is made (INV-5).

A call may wait as long as its socket does, so it is made by a thread that touches nothing but its own descriptors.
"""

from __future__ import annotations

import _socket
import _thread
import errno
import os
import signal
import stat

from netsandbox.linux import caller
from netsandbox.linux.notify import TYPES
from netsandbox.linux.syscalls import abi_of
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox.linux.notify import Call, Listener
    from netsandbox.linux.repeats import Repeats
    from netsandbox.linux.unix_pins import Pin

MAX_ADDRESS = 128  # sizeof(struct sockaddr_storage)
MAX_WAITING = 256
MAX_UNHEARD = 1024
UNPRIVILEGED_PORT = 1024
AF_UNIX = (1).to_bytes(2, "little")
OWN_MISTAKES = (errno.EBADF, errno.ENOTSOCK)  # the kernel would have said the same without looking at any address
NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
DONE_ALREADY = {"connect": errno.EISCONN, "bind": errno.EINVAL}


class Refusal:
    """Why a call is not made. Without a reason it is not recorded: nothing was attempted."""

    __slots__ = ("detail", "number", "path", "reason")

    def __init__(self, number: int, reason: str | None, *, path: str | None = None, detail: str | None = None) -> None:
        self.number = number
        self.reason = reason
        self.path = path
        self.detail = detail

    @property
    def hint(self) -> str | None:
        """The option that would allow it, where one would."""
        allowable = self.path is not None and self.path.startswith("/") and self.detail is None
        return f"--allow-unix-socket {self.path}" if allowable else None


class Task:
    """A call that will be made: the copied socket, the copied address, and a descriptor to keep open until then."""

    __slots__ = ("address", "call", "name", "sock", "target")

    def __init__(self, call: Call, name: str, sock: _socket.socket, address: bytes, target: int = -1) -> None:
        self.call = call
        self.name = name
        self.sock = sock
        self.address = address
        self.target = target

    def close(self) -> None:
        self.sock.close()
        if self.target >= 0:
            os.close(self.target)


class UnixBroker:
    """One per session. *pins* are the paths of the policy, pinned before the workload ran.

    Threads that still wait at the end of a session end with the process; their callers are gone.
    """

    def __init__(self, listener: Listener, repeats: Repeats, pins: Sequence[Pin]) -> None:
        self._listener = listener
        self._repeats = repeats
        self._pins = pins
        calls = abi_of(os.uname().machine).calls
        self._names = {calls[name]: name for name in ("connect", "bind")}
        self._waiting: set[Task] = set()
        self._unheard: set[tuple[str, int, bytes]] = set()  # made, but the caller was interrupted before it knew

    def takes(self, call: Call) -> bool:
        return call.number in self._names

    def serve(self, call: Call) -> None:
        try:
            decided = self._decide(call)
            if isinstance(decided, Task):
                self._start(decided)
                return
        except OSError as error:
            decided = _failure(error)
        except Exception as error:
            decided = Refusal(errno.EACCES, reasons.INTERNAL, detail=repr(error))
        self._refuse(call, decided)

    def _decide(self, call: Call) -> Task | Refusal:
        number, pointer, length = call.arguments[:3]
        length &= 0xFFFFFFFF
        sock = caller.copy_socket(call.pid, number & 0xFFFFFFFF)
        try:
            if length > MAX_ADDRESS:
                decided: Task | Refusal = Refusal(errno.EINVAL, None)
            else:
                decided = self._judge(call, sock, caller.memory(call.pid, pointer, length))
        except BaseException:
            sock.close()
            raise
        if isinstance(decided, Refusal):
            sock.close()
        return decided

    def _judge(self, call: Call, sock: _socket.socket, address: bytes) -> Task | Refusal:
        name = self._names[call.number]
        if not caller.in_network_of(call.pid, sock):
            return Refusal(errno.EPERM, reasons.SOCKET_FAMILY, detail="the socket belongs to another network")
        if not self._listener.is_valid(call):
            return Refusal(errno.EACCES, None)
        if sock.family == _socket.AF_UNIX:
            return self._judge_unix(call, name, sock, address)
        if name == "bind" and _needs_capability(sock, address):
            return Refusal(errno.EACCES, None)
        return Task(call, name, sock, address)

    def _judge_unix(self, call: Call, name: str, sock: _socket.socket, address: bytes) -> Task | Refusal:
        shown = _shown(address)
        if name == "bind":
            return Refusal(errno.EACCES, reasons.UNIX_SOCKET, path=shown, detail="bind")
        if address[:2] != AF_UNIX:
            return Refusal(errno.EINVAL, reasons.MALFORMED, detail="not a Unix address")
        path = address[2:].split(b"\0")[0]
        if not path:
            return Refusal(errno.EACCES, reasons.UNIX_SOCKET, path=shown)
        try:
            target = caller.open_path(call.pid, path)
        except OSError as error:
            number = error.errno if error.errno in NO_SUCH_FILE else errno.EACCES
            return Refusal(number or errno.EACCES, reasons.UNIX_SOCKET, path=shown, detail=error.strerror)
        try:
            refusal = self._admit(call, sock, target, shown)
        except BaseException:
            os.close(target)
            raise
        if refusal is not None:
            os.close(target)
            return refusal
        return Task(call, name, sock, AF_UNIX + b"/proc/self/fd/%d\0" % target, target)

    def _admit(self, call: Call, sock: _socket.socket, target: int, shown: str) -> Refusal | None:
        """None when the opened file is an allowed socket, the call still waits, and the record is written."""
        info = os.fstat(target)
        if not self._listener.is_valid(call):
            return Refusal(errno.EACCES, None)
        if not stat.S_ISSOCK(info.st_mode):
            return Refusal(errno.EACCES, reasons.UNIX_SOCKET, path=shown, detail="not a socket")
        pin = next((pin for pin in self._pins if _admits(pin, info)), None)
        if pin is None:
            return Refusal(errno.EACCES, reasons.UNIX_SOCKET, path=shown)
        kind = TYPES.get(sock.type & 0xF)
        if not self._note(call, verdict="allow", reason=reasons.RULE, rule=pin.path, type=kind, path=shown):
            return Refusal(errno.EACCES, reasons.AUDIT_UNWRITABLE, path=shown)
        return None

    def _start(self, task: Task) -> None:
        if len(self._waiting) >= MAX_WAITING:
            task.close()
            self._refuse(task.call, Refusal(errno.EAGAIN, reasons.LIMIT, detail="too many calls wait at once"))
            return
        self._waiting.add(task)
        try:
            _thread.start_new_thread(self._carry_out, (task,))
        except BaseException:
            self._waiting.discard(task)
            task.close()
            raise

    def _carry_out(self, task: Task) -> None:
        """In a thread of its own. The process's signals are the main thread's."""
        number = errno.EACCES
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            number = self._make(task)
        finally:
            heard = self._listener.answer(task.call, error=number)
            if number == 0 and not heard:
                self._remember(task)
            task.close()
            self._waiting.discard(task)

    def _make(self, task: Task) -> int:
        """A caller that was interrupted asks again for what we have done already: it hears of the success then."""
        act = caller.connect if task.name == "connect" else caller.bind
        number = act(task.sock.fileno(), task.address)
        if number == DONE_ALREADY[task.name] and _key(task) in self._unheard:
            self._unheard.discard(_key(task))
            return 0
        return number

    def _remember(self, task: Task) -> None:
        if len(self._unheard) >= MAX_UNHEARD:
            self._unheard.clear()
        self._unheard.add(_key(task))

    def _refuse(self, call: Call, refusal: Refusal) -> None:
        try:
            if refusal.reason is not None:
                extra = {"path": refusal.path, "detail": refusal.detail, "hint": refusal.hint}
                self._note(call, verdict="deny", reason=refusal.reason, **extra)
        finally:
            self._listener.answer(call, error=refusal.number)

    def _note(self, call: Call, **fields: object) -> bool:
        """False: it is not in the log."""
        exe, name = self._listener.exe_of(call), self._names[call.number]
        return self._repeats.note(call.pid, door="seccomp", exe=exe, family="unix", call=name, **fields)


def _admits(pin: Pin, info: os.stat_result) -> bool:
    try:
        return pin.admits(info)
    except OSError:  # the name is gone, or the kernel cannot be asked
        return False


def _needs_capability(sock: _socket.socket, address: bytes) -> bool:
    internet = sock.family in (_socket.AF_INET, _socket.AF_INET6)
    return internet and 0 < int.from_bytes(address[2:4], "big") < UNPRIVILEGED_PORT


def _key(task: Task) -> tuple[str, int, bytes]:
    address = b"" if task.target >= 0 else task.address  # the address of a target names our descriptor
    return task.name, os.fstat(task.sock.fileno()).st_ino, address


def _shown(address: bytes) -> str:
    """The path as text; an abstract name begins with @, as in unix(7) and ss(8)."""
    name = address[2:]
    if name.startswith(b"\0"):
        return "@" + name[1:].rstrip(b"\0").decode("utf-8", "surrogateescape")
    return name.split(b"\0")[0].decode("utf-8", "surrogateescape")


def _failure(error: OSError) -> Refusal:
    """The socket, the memory or the process could not be looked at."""
    if error.errno in OWN_MISTAKES:
        return Refusal(error.errno, None)
    if error.errno == errno.EFAULT:
        return Refusal(errno.EFAULT, reasons.MALFORMED, detail="the address cannot be read")
    reason = reasons.LIMIT if error.errno in (errno.EMFILE, errno.ENFILE) else reasons.INTERNAL
    return Refusal(errno.EACCES, reason, detail=f"cannot look into the calling process: {error.strerror}")
