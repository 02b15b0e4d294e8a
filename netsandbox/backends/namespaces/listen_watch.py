"""Notices which sockets of the session begin to listen, where listening is free and only wants to be known.

`listen` is trapped by the seccomp filter and let go on at once. Beside `file_watch` this is the one place where the
kernel hears CONTINUE: nothing is decided here, so nothing can be swapped behind a decision; a socket that listens in
the session's own network is nobody else's business until it is published. What came of the call is read from the
session's socket table, a few times within 60 ms, since the call goes on while we look. On a busy machine the process
may not get its turn for longer, so some are looked for during seconds: not all, since a program may make calls that
fail as fast as it can.
"""

from __future__ import annotations

import os

from netsandbox.backends.namespaces import procfs
from netsandbox.backends.namespaces.seccomp import syscall_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.namespaces.seccomp_notify import Listener, TrappedCall
    from netsandbox.backends.namespaces.session_sockets import SessionSockets
    from netsandbox.runtime.loop import Loop

SOON = (0.0005, 0.002, 0.008, 0.05)
LOOKS = (*SOON, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds from one look to the next
PATIENT = 256  # looked for at once beyond the soon ones


class ListenWatch:
    """`on_listening(address, port, pid, exe)` is called once a socket is seen to listen."""

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
        """Nothing is held here."""

    def serve(self, call: TrappedCall) -> None:
        inode, pid, exe = self._caller(call)
        self._listener.let_go_on(call)
        if inode is not None:
            self._look(inode, pid, exe, 0)

    def _caller(self, call: TrappedCall) -> tuple[str | None, int, str]:
        try:
            inode = procfs.socket_inode(call.pid, call.arguments[0] & 0xFFFFFFFF)
            return inode, procfs.process_of(call.pid), self._listener.exe_of(call)
        except OSError:  # it died meanwhile
            return None, call.pid, "?"

    def _look(self, inode: str, pid: int, exe: str, turn: int) -> None:
        for address, port, found in self._sockets.listening():
            if found == inode:
                self._on_listening(address, port, pid, exe)
                return
        late = turn >= len(SOON)
        if turn == len(LOOKS) or (late and self._late >= PATIENT):
            return  # the call has failed, or the socket is of another kind
        self._late += late

        def again() -> None:
            self._late -= late
            self._look(inode, pid, exe, turn + 1)

        self._loop.call_later(LOOKS[turn], again)
