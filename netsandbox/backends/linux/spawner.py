"""Requests to the process inside a session that starts the commands of `netsandbox exec` (native/spawner.h)."""

from __future__ import annotations

from netsandbox.errors import HostError
from netsandbox.runtime.control_socket import send_descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket


def pass_request(spawner: _socket.socket | None, request: bytes, descriptors: list[int]) -> None:
    """Raises a HostError if the session has no such process any more, or it does not take the request."""
    if spawner is None:
        raise HostError("the session has no process that starts commands; is its limit of processes too low?")
    try:
        send_descriptors(spawner, request, descriptors)
    except BlockingIOError:
        raise HostError("the process that starts commands does not answer; the session may be stopped") from None
    except OSError:
        raise HostError("the process that starts commands is gone; the session has ended or killed it") from None
