"""Checks bind and listen of internet sockets against the session's window (INV-7).

It decides for every caller: a static binary, a raw system call or the preload library. Each verdict is recorded before
the call is made (INV-5). A refusal also gets one notice with what would be allowed. The kernel never chooses a port:
port 0, and listening without a bind, get a free port of the window.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox.backends.linux import procfs, sockaddr
from netsandbox.backends.linux.syscall_outcome import AllowedCall, Refusal
from netsandbox.backends.namespaces import remote_process
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.bind_rule import BindRule

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.linux.seccomp_notify import Listener, TrappedCall

    OnListening = Callable[[str, int, int, str], None]
PROTOCOLS = {1: "tcp", 2: "udp"}
ANYWHERE = {_socket.AF_INET: "0.0.0.0", _socket.AF_INET6: "::"}  # noqa: S104 (inside the session)


class BindGuard:
    """One per session. `on_listening(address, port, pid, exe)` is called for each socket that listens, and
    `refused(address, port)` for each refusal, to notify the user.
    """

    def __init__(
        self,
        listener: Listener,
        repeats: FoldedRecords,
        rule: BindRule,
        on_listening: OnListening,
        refused: Callable[[str, int], None],
    ) -> None:
        self._listener = listener
        self._repeats = repeats
        self._rule = rule
        self._on_listening = on_listening
        self._refused = refused
        self._next = 0  # where the search for a free port continues in the window

    def __call__(self, call: TrappedCall, name: str, sock: _socket.socket, address: bytes) -> AllowedCall | Refusal:
        return self._bind(call, sock, address) if name == "bind" else self._listen(call, sock)

    def _bind(self, call: TrappedCall, sock: _socket.socket, address: bytes) -> AllowedCall | Refusal:
        wanted = sockaddr.read_endpoint(sock.family, address)
        if wanted is None:
            return Refusal(errno.EINVAL)
        refusal = self._check(call, "bind", sock, wanted)
        if refusal is not None:
            return refusal
        if wanted[1] == 0 and self._rule.window is not None:
            return AllowedCall(call, "bind", sock, act=lambda: self._bind_any(sock, address))
        return AllowedCall(call, "bind", sock, address)

    def _listen(self, call: TrappedCall, sock: _socket.socket) -> AllowedCall | Refusal:
        if sock.type & 0xF != _socket.SOCK_STREAM:
            return AllowedCall(call, "listen", sock)  # the kernel returns the right error
        here = self._here(sock)
        refusal = self._check(call, "listen" if here[1] else "bind", sock, here)
        if refusal is not None:
            return refusal
        pid, exe = procfs.process_of(call.pid), self._listener.exe_of(call)
        return AllowedCall(call, "listen", sock, act=lambda: self._start(call, sock, pid, exe))

    def _start(self, call: TrappedCall, sock: _socket.socket, pid: int, exe: str) -> int:
        number = self._hold(sock) or remote_process.listen(sock.fileno(), call.arguments[1] & 0xFFFFFFFF)
        if number:
            return number
        if self._rule.check(*self._here(sock)) is not None:  # another thread released the port between our two calls
            sock.shutdown(2)
            return errno.EACCES
        address, port = sock.getsockname()[:2]
        self._on_listening(address, port, pid, exe)
        return 0

    def _hold(self, sock: _socket.socket) -> int:
        """Bind an unbound socket. A socket whose connection ended still shows its old port, although the kernel has
        taken it back; listening would give it another one.
        """
        address, port = sock.getsockname()[:2]
        if not port:
            return self._bind_somewhere(sock)
        number = remote_process.bind(sock.fileno(), sockaddr.written(sock.family, address, port))
        return 0 if number == errno.EINVAL else number  # EINVAL: it is already bound

    def _check(self, call: TrappedCall, name: str, sock: _socket.socket, wanted: tuple[str, int]) -> Refusal | None:
        """None if the call may proceed and its record is written; otherwise the refusal."""
        address, port = wanted
        fields: dict[str, object] = {
            "address": address,
            "port": port,
            "protocol": PROTOCOLS.get(sock.type & 0xF, "?"),
        }
        refused = self._rule.check(address, port)
        if refused is not None:
            number, reason = refused
            self._refused(address, port)
            return Refusal(number, {**fields, "reason": reason}, event=name)
        if name == "listen":  # the callee of `on_listening` records it, with the result
            return None
        exe = self._listener.exe_of(call)
        allowed = {"verdict": "allow", "reason": reasons.LOOPBACK, "door": "seccomp", "exe": exe, **fields}
        if self._repeats.note(call.pid, event=name, **allowed):
            return None
        return Refusal(errno.EACCES, {**fields, "reason": reasons.AUDIT_UNWRITABLE}, event=name)

    @staticmethod
    def _here(sock: _socket.socket) -> tuple[str, int]:
        """The socket's own address, in the form of the rule."""
        address, port = sock.getsockname()[:2]
        if sock.family == _socket.AF_INET:
            return address, port
        return sockaddr.as_ipv4(_socket.inet_pton(_socket.AF_INET6, address)), port

    def _bind_somewhere(self, sock: _socket.socket) -> int:
        """Bind a socket that listens without a bind; the rule has allowed any address for it."""
        if self._rule.window is None:
            return errno.EACCES
        return self._bind_any(sock, sockaddr.written(sock.family, ANYWHERE[sock.family], 0))

    def _bind_any(self, sock: _socket.socket, address: bytes) -> int:
        """Bind any free port of the window; EADDRINUSE if there is none."""
        window = self._rule.window
        assert window is not None
        number = errno.EADDRINUSE
        for step in range(window.count):
            place = (self._next + step) % window.count
            number = remote_process.bind(sock.fileno(), sockaddr.with_port(address, window.base + place))
            if number != errno.EADDRINUSE:
                self._next = place + 1
                return number
        return number
