"""The outcome of a check of a trapped call: an `AllowedCall` to be made on copies, or a `Refusal`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox.backends.linux.seccomp_notify import TrappedCall


class Refusal:
    """Why a call is not made. There is no record if the kernel would have failed the call in the same way."""

    __slots__ = ("event", "number", "record")

    def __init__(self, number: int, record: dict[str, object] | None = None, *, event: str = "socket") -> None:
        self.number = number
        self.record = record  # the reason and other fields of the record
        self.event = event


class AllowedCall:
    """A call that will be made: the copied socket, the action, and a descriptor to keep open until then."""

    __slots__ = ("act", "address", "call", "name", "sock", "target")

    def __init__(
        self,
        call: TrappedCall,
        name: str,
        sock: _socket.socket,
        address: bytes = b"",
        *,
        target: int = -1,
        act: Callable[[], int] | None = None,
    ) -> None:
        self.call = call
        self.name = name
        self.sock = sock
        self.address = address
        self.target = target
        self.act = act  # replaces the call with *address*; never blocks

    def close(self) -> None:
        self.sock.close()
        if self.target >= 0:
            os.close(self.target)
