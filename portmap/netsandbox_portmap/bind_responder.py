"""The replies to the preload library, which requests a port before it binds.

A reply is an errno, or a port that the bind guard lets the program bind. A rewrite is recorded before the reply and
before it is in the map (INV-5). A refusal is recorded, and a notice is written. The library is a convenience: the guard
checks its bind like any other (INV-7).
"""

from __future__ import annotations

import errno

from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox.text import join_host_port
from netsandbox_portmap import FAIL, REWIRE_DEVICE
from netsandbox_portmap.bind_rule import WILDCARD
from netsandbox_portmap.window import LOCALHOST_IPV4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox_portmap.assignment import Assignment
    from netsandbox_portmap.bind_rule import BindRule
    from netsandbox_portmap.notices import Notices
    from netsandbox_portmap.port_map import PortMap

PROTOCOLS = {6: "tcp", 17: "udp"}
REWRITTEN = (LOCALHOST_IPV4, WILDCARD)  # the addresses that the library rewrites; the kernel decides on all others


@frozen
class PortUse:
    """The assigned ports and the used ones. `look` refreshes the used ports; `make_room` releases unused ones."""

    assignment: Assignment
    table: PortMap
    look: Callable[[], None]
    make_room: Callable[[], None]


class BindResponder:
    """Called by the door for bind requests."""

    def __init__(self, strategy: str, rule: BindRule, ports: PortUse, repeats: FoldedRecords, notices: Notices) -> None:
        self._strategy = strategy
        self._rule = rule
        self._ports = ports
        self._repeats = repeats
        self._notices = notices

    def __call__(self, address: str, port: int, protocol: int) -> tuple[int, int]:
        """The errno, and the port to bind."""
        if self._strategy == REWIRE_DEVICE:
            return self._device(address, port, protocol)
        refusal = self._rule.check(address, port if self._strategy == FAIL else 0)
        if refusal is not None:
            return self._refuse(*refusal, address, port, protocol)
        if self._strategy == FAIL and port:
            return 0, port
        return self._window(address, port, protocol)

    def _device(self, address: str, port: int, protocol: int) -> tuple[int, int]:
        device = self._rule.devices[0]
        refusal = self._rule.check(device if address in REWRITTEN else address, port)
        if refusal is not None:
            return self._refuse(*refusal, address, port, protocol)
        if address == device:
            return 0, port
        return (0 if self._rewritten(address, port, device, port) else errno.EACCES), port

    def _window(self, address: str, port: int, protocol: int) -> tuple[int, int]:
        given = self._give(port)
        if given is None:
            self._ports.make_room()
            given = self._give(port)
        if given is None:
            return self._refuse(errno.EADDRINUSE, reasons.WINDOW_FULL, address, port, protocol)
        if port != given and not self._rewritten(address, port, LOCALHOST_IPV4, given):
            return errno.EACCES, 0
        self._ports.table.set(given, port or given)
        return 0, given

    def _give(self, port: int) -> int | None:
        """The port for *port*, or any free one for 0. An earlier assignment is returned without a search."""
        known = self._ports.assignment.port_of(port) if port else None
        if known is not None:
            return known
        self._ports.look()
        return self._ports.assignment.assign(port) if port else self._ports.assignment.any_port()

    def _rewritten(self, address: str, port: int, to: str, to_port: int) -> bool:
        return self._repeats.note(
            None,
            event="rewrite",
            door="preload",
            **{"from": join_host_port(address, port), "to": join_host_port(to, to_port)},
        )

    def _refuse(self, number: int, reason: str, address: str, port: int, protocol: int) -> tuple[int, int]:
        """Record the refusal, write a notice, and return the reply."""
        self._repeats.note(
            None,
            event="bind",
            verdict="deny",
            reason=reason,
            door="preload",
            address=address,
            port=port,
            protocol=PROTOCOLS.get(protocol, "?"),
        )
        self._notices.refused(self._rule, address, port)
        return number, 0
