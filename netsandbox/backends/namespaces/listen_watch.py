"""Reports sockets of the session that begin to listen, in sessions where listening is not restricted.

The seccomp filter traps `listen`, and the call continues at once. Only this module and `file_watch` answer CONTINUE:
they decide nothing, so nothing can be swapped after a decision; a socket that listens in the session's own network
concerns nobody else until it is published. The result is read from the session's socket table a few times within 60 ms,
since the call proceeds while we look. On a busy machine the process may run later, so some sockets are looked for
during seconds. Not all are, since a program may make failing calls as fast as it can.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux import procfs
from netsandbox.backends.linux.seccomp import syscall_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.linux.seccomp_notify import Listener, TrappedCall
    from netsandbox.backends.namespaces.session_sockets import SessionSockets
    from netsandbox.runtime.loop import Loop

SOON = (0.0005, 0.002, 0.008, 0.05)
LOOKS = (*SOON, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds between looks
MAX_PATIENT = 256  # sockets that are looked for after the first 60 ms


class ListenWatch:
    """`on_listening(address, port, pid, exe)` is called once a socket listens."""

    def __init__(
        self,
        loop: Loop,
        listener: Listener,
        sockets: SessionSockets,
        on_listening: Callable[[str, int, int, str], None],
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._sockets = sockets
        self._on_listening = on_listening
        self._late = 0
        self._number = syscall_table(os.uname().machine).calls["listen"]

    def takes(self, call: TrappedCall) -> bool:
        return bool(call.number == self._number)

    def close(self) -> None:
        """There is nothing to close."""

    def serve(self, call: TrappedCall) -> None:
        inode, pid, exe = self._caller(call)
        self._listener.let_go_on(call)
        if inode is not None:
            self._look(inode, pid, exe, 0)

    def _caller(self, call: TrappedCall) -> tuple[str | None, int, str]:
        try:
            inode = procfs.socket_inode(call.pid, call.arguments[0] & 0xFFFFFFFF)
            return inode, procfs.process_of(call.pid), self._listener.exe_of(call)
        except OSError:  # the process has died
            return None, call.pid, "?"

    def _look(self, inode: str, pid: int, exe: str, turn: int) -> None:
        for address, port, found in self._sockets.listening():
            if found == inode:
                self._on_listening(address, port, pid, exe)
                return
        late = turn >= len(SOON)
        if turn == len(LOOKS) or (late and self._late >= MAX_PATIENT):
            return  # the call failed, or the socket is of another kind
        self._late += late

        def again() -> None:
            self._late -= late
            self._look(inode, pid, exe, turn + 1)

        self._loop.call_later(LOOKS[turn], again)
