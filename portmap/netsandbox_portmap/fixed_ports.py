"""Ports of the host from `--publish PORT:HOSTPORT`: bound before the command starts, listening later.

A port that is bound and does not listen refuses connections, and no other program can bind it. So a port that is taken
is an error at the start of the session, and not when the server starts.
"""

from __future__ import annotations

from netsandbox_portmap.acceptor import bind_all
from netsandbox_portmap.publish_addresses import LOCALHOST, faces
from netsandbox_portmap.published import PublishError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping

    from netsandbox_portmap.publish_addresses import Face, HasDevice


def reserve(
    wanted: Mapping[int, int], strategy: str, window: HasDevice, *, device_given: bool
) -> dict[int, list[_socket.socket]]:
    """The bound sockets for each requested port, or `PublishError` with nothing held."""
    held: dict[int, list[_socket.socket]] = {}
    for port, host_port in wanted.items():
        group, _ = split_faces(strategy, port, window, device_given=device_given, host_port=host_port)
        try:
            held[port] = bind_all([address for address, _ in group], host_port)
        except OSError as error:
            for sockets in held.values():
                for sock in sockets:
                    sock.close()
            raise PublishError(_why_not(port, host_port, error)) from error
    return held


def split_faces(
    strategy: str, requested: int, window: HasDevice, *, device_given: bool, host_port: int | None
) -> tuple[list[Face], list[Face]]:
    """The addresses that must all be bound at one port, and those that may be missing."""
    wanted = faces(strategy, requested, window, device_given=device_given, host_port=host_port)
    number = wanted[0][1]
    group = [face for face in wanted if face[1] == number and (face[0] in LOCALHOST or face == wanted[0])]
    return list(dict.fromkeys(group)), [face for face in wanted if face not in group]


def _why_not(port: int, host_port: int, error: OSError) -> str:
    what = f"--publish {port}:{host_port}: port {host_port} of this machine "
    if isinstance(error, PermissionError):
        return what + "is for administrators; choose one from 1024 on"
    return what + f"cannot be had ({error.strerror}); choose another, or write --publish {port} to get a free one"
