"""What a judge says of a trapped call: a `AllowedCall` to be carried out on copies, or a `Refusal`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox.backends.namespaces.seccomp_notify import TrappedCall


class Refusal:
    """Why a call is not made. Without a record nothing was attempted: the kernel would have said the same."""

    __slots__ = ("event", "number", "record")

    def __init__(self, number: int, record: dict[str, object] | None = None, *, event: str = "socket") -> None:
        self.number = number
        self.record = record  # reason and whatever else the log should know
        self.event = event


class AllowedCall:
    """A call that will be made: the copied socket, what to do with it, and a descriptor to keep open until then."""

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
        self.act = act  # instead of the call itself with *address*; never waits

    def close(self) -> None:
        self.sock.close()
        if self.target >= 0:
            os.close(self.target)
