"""Sockets made inside the session, used to reach listeners there.

PID 1 makes them on request and sends them out. A few are kept ready, so that a connection from the host does not wait
for the round trip.
"""

from __future__ import annotations

import _socket
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.linux.helper_process import Message
    from netsandbox.backends.namespaces.launch import Helper

READY = 4  # TCP sockets of each family, after the first use
# Requests without a reply. The channel holds some hundred records in each direction; with more requests, PID 1 would
# wait for us to read while we wait for it, forever.
MAX_REQUESTED = 64


class InsideSockets:
    """`take` gives a socket now or later; None if the session cannot make more."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        self._ready: dict[int, list[_socket.socket]] = {}
        self._requested: list[int] = []  # families, in the order of the expected replies
        self._waiting: dict[int, list[Callable[[_socket.socket | None], None]]] = {}
        self._closed = False

    def take(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        if self._closed:
            done(None)
            return
        ready = self._ready.setdefault(family, [])
        found = ready.pop() if ready else None
        if found is None:
            self._waiting.setdefault(family, []).append(done)
        self._order(family)
        if found is not None:
            done(found)

    def arrived(self, message: Message) -> None:
        """Handle PID 1's reply: a socket or an errno."""
        if not self._requested:
            for descriptor in message.descriptors:
                os.close(descriptor)
            raise OSError("the helper sent a socket that was not requested")
        family = self._requested.pop(0)
        made = _socket.socket(fileno=message.descriptors[0]) if message.descriptors else None
        if self._closed:
            if made is not None:
                made.close()
            return
        waiting = self._waiting.get(family)
        done = waiting.pop(0) if waiting else None
        if done is None and made is not None:
            self._ready[family].append(made)
        for wanted, unserved in tuple(self._waiting.items()):
            if unserved:
                self._order(wanted)
        if done is not None:
            done(made)

    def close(self) -> None:
        """Give None to all that still wait."""
        self._closed = True
        for ready in self._ready.values():
            for sock in ready:
                sock.close()
        for waiting in self._waiting.values():
            while waiting:
                waiting.pop(0)(None)
        self._ready.clear()

    def _order(self, family: int) -> None:
        """Request as many as are waited for, and a few more; those over the limit wait for replies."""
        spare = 0 if family == _socket.AF_NETLINK else READY
        wanted = len(self._waiting.get(family, ())) + spare - len(self._ready[family]) - self._requested.count(family)
        for _ in range(min(wanted, MAX_REQUESTED - len(self._requested))):
            try:
                self._helper.ask_socket(family)
            except OSError:  # the session has ended
                self.close()
                return
            self._requested.append(family)
