"""The engine's process: it makes the session's CA, imports mitmproxy, rehearses, and forks the worker that serves.

The first process never sees a byte of a client. It holds the keys and everything that was imported, so that a worker
that died is replaced within milliseconds, by the same CA, and without reading a file that the command could have
changed. It ends when the supervisor does. If it is killed itself, by a user or for want of memory, the CA is gone that
programs trust: inspected hosts are then refused until the session ends. The kernel kills a worker first.
"""

from __future__ import annotations

import _socket
import os
import sys

from netsandbox_proxy.inspect import sealing
from netsandbox_proxy.inspect.session_ca import SessionCa
from netsandbox_proxy.inspect.unchanged import import_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from netsandbox_proxy.inspect.authority import Authority

CONTROL = 3
MAX_INHERITED = 4096
MAX_TRUST = 16 << 20


def main(arguments: list[str]) -> None:
    """*arguments*: the session's id. The control channel is the first descriptor behind the standard ones."""
    sealing.die_with_parent()
    os.closerange(CONTROL + 1, MAX_INHERITED)  # whatever was left open for it by mistake
    order = sealing.OomOrder()
    sealing.hide()
    control = _socket.socket(fileno=CONTROL)
    os.set_inheritable(CONTROL, False)  # noqa: FBT003 (the C function takes no keyword)
    ca = SessionCa(arguments[0])
    import_unchanged()
    control.send(b'{"kind":"authority","pem":"%b"}' % ca.pem.replace("\n", "\\n").encode("ascii"))
    if control.recv(1):  # the command has started; what follows takes no time from its launch
        _serve(control, ca, order)


def _serve(control: _socket.socket, ca: SessionCa, order: sealing.OomOrder) -> None:
    """The command runs. It cannot write what is imported now (INV-8), and a file that it changed is not imported."""
    import gc

    from netsandbox_proxy.inspect.absent import keep_out

    keep_out()
    gc.disable()  # what is imported becomes no garbage; a tenth of the time
    from netsandbox_proxy.inspect import channel, layers, worker
    from netsandbox_proxy.inspect.authority import Authority
    from netsandbox_proxy.inspect.rehearsal import rehearse
    from netsandbox_proxy.inspect.tls_contexts import TlsContexts

    authority = Authority(ca)
    layers.install()
    rehearse(TlsContexts(authority, authority.pem.encode("ascii")))
    gc.freeze()  # what is there now stays, and workers share its memory
    gc.enable()
    keeper = Keeper(control, authority, worker, order)
    while (received := channel.receive(control)) is not None:
        (settings,), descriptors = received
        keeper.end()
        if settings["kind"] == "spawn":
            keeper.spawn(settings, descriptors)
    keeper.end()


class Keeper:
    """Holds the keys and starts workers, one at a time: a new one is the end of the one before."""

    def __init__(self, control: _socket.socket, authority: Authority, worker: Any, order: sealing.OomOrder) -> None:
        self._control = control
        self._order = order
        self._authority = authority
        self._worker = worker
        self._contexts: Any = None
        self._child = 0

    def spawn(self, settings: dict[str, Any], descriptors: list[int]) -> None:
        from netsandbox_proxy.inspect import channel
        from netsandbox_proxy.inspect.tls_contexts import TlsContexts

        trust = _content(descriptors.pop())
        if self._contexts is None:
            self._contexts = TlsContexts(self._authority, trust)
        self._child = self._order.fork()
        if self._child:
            return channel.close_all(descriptors)
        status = 1
        try:
            self._control.close()
            self._work(_socket.socket(fileno=descriptors[0]), settings)
            status = 0
        finally:
            os._exit(status)

    def end(self) -> None:
        child, self._child = self._child, 0
        if child:
            os.kill(child, sealing.SIGKILL)
            os.waitpid(child, 0)

    def _work(self, sock: _socket.socket, settings: dict[str, Any]) -> None:
        sealing.die_with_parent()
        sealing.hide()
        made = self._worker.prepared(sock, self._contexts, settings)
        sealing.seal(bytes.fromhex(settings["filter"]), int(settings["descriptors"]))
        made.run()


def _content(descriptor: int) -> bytes:
    """The bundle of CAs that servers are checked with."""
    with open(descriptor, "rb") as file:
        return file.read(MAX_TRUST)


if __name__ == "__main__":
    main(sys.argv[1:])
