"""A published port of this session for another session of the user (`--connect-host NAME:PORT` there).

The other session's supervisor sends the request over our control socket, and gets a socket that is connected inside.
This session's own rule decides: what it does not publish is refused. The record comes first (INV-5).
"""

from __future__ import annotations

from netsandbox_portmap.session_dial import ANOTHER_NAME, NOT_LISTENING, NOT_PUBLISHED, REACHED

from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox_portmap.contract import Dial
    from netsandbox_portmap.reservation import Reservation
    from netsandbox_portmap.session_dial import PortRequest

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.contract import Localhost

    Give = Callable[[_socket.socket | None, bytes], None]


def offer(
    request: PortRequest, reservation: Reservation, localhost: Localhost | None, log: AuditLog, give: Give
) -> Dial | None:
    """Call *give* once, now or later, with the connected socket or None, and the reply. The dial, if there is one."""
    if request.name != reservation.name:
        give(None, ANOTHER_NAME)
        return None
    if not _record(request, reservation, log):
        give(None, NOT_PUBLISHED)
        return None

    def reached(sock: _socket.socket | None, why: str) -> None:
        give(sock, NOT_LISTENING if sock is None else REACHED)

    dial = localhost.dial(request.port, reached) if localhost is not None else None
    if dial is None:
        give(None, NOT_LISTENING)
    return dial


def _record(request: PortRequest, reservation: Reservation, log: AuditLog) -> bool:
    """Whether the port may be reached: this session publishes it, and the record is in the log."""
    publish = reservation.settings.publish
    allowed = publish is None or request.port in dict(publish)
    fields = {"port": request.port, "caller": request.caller}
    if not allowed:
        hint = f"--publish {request.port}"
        log.write("ingress", verdict="deny", reason=reasons.NOT_PUBLISHED, hint=hint, **fields)
    return allowed and log.write("ingress", verdict="allow", reason=reasons.LOOPBACK, **fields)
