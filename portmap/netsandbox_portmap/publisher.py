"""Publishes the session's listeners on the host's loopback for as long as they listen.

Rules:
1. Only loopback addresses are bound on the host, and a port is never shared with another program (INV-7).
2. A port is published after its record was written (INV-5). A failure is recorded once; the listener is remembered as
   hidden, and published at a later check if nothing is in the way any more.
3. A listener that returns gets its earlier port, unless another program took it meanwhile.
4. Connections outlive the publication of their port: they end when their two sides end.
"""

from __future__ import annotations

import time
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL

from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox_portmap.acceptor import bind_all, listen_all
from netsandbox_portmap.fixed_ports import reserve, split_faces
from netsandbox_portmap.forward import MAX_CONNECTIONS, Forward, hang_up
from netsandbox_portmap.publish_addresses import dial_address
from netsandbox_portmap.published import Published, PublishError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.relay import RelayPool
    from netsandbox_portmap.acceptor import Acceptor
    from netsandbox_portmap.assignment import Assignment
    from netsandbox_portmap.contract import Inside
    from netsandbox_portmap.publish_addresses import Face, HasDevice
    from netsandbox_portmap.published import Wanted

MAX_PORTS = 1024  # published at the same time
MAX_TARGETS = 16  # addresses inside for one port
MAX_HIDDEN = 64  # listeners that are remembered although they could not be published
MAX_NOTED = 4096  # records that are remembered, so that none is written twice
TRY_ANOTHER_PORT = (
    EADDRINUSE,
    EACCES,
    EADDRNOTAVAIL,
)  # another port may work after these, but not after EMFILE and others


class Listening:
    """One requested port and all its sockets; `targets` are (address as the kernel knows it, port)."""

    __slots__ = ("acceptors", "exe", "pid", "port", "since", "targets", "tls")

    def __init__(self, port: int, target: tuple[str, int], pid: int, exe: str) -> None:
        self.port = port
        self.targets = [target]
        self.pid = pid
        self.exe = exe
        self.since = time.time()
        self.tls = False  # as far as connections have shown
        self.acceptors: list[Acceptor] = []

    def close(self) -> None:
        while self.acceptors:
            self.acceptors.pop().close()


@frozen
class PublishPlan:
    """What to publish, and where on the host."""

    strategy: str
    window: HasDevice
    name: str
    wanted: Wanted
    device_given: bool = False
    excluded: Container[int] = ()  # ports inside that are doors of the supervisor


class Publisher:
    """`on_refused(port)` gets a port inside at which nothing answered; the callee looks and calls `check`."""

    def __init__(
        self,
        loop: Loop,
        plan: PublishPlan,
        assignment: Assignment,
        inside: Inside,
        relays: RelayPool,
        note: Callable[..., object],
    ) -> None:
        self._loop = loop
        self._plan = plan
        self._assignment = assignment
        self._gone: dict[int, None] = {}  # requested ports without a listener, longest ago first
        self._inside = inside
        self._relays = relays
        self._note = note
        self.by_name_port: int | None = None  # set by the gateway; None: URLs have port numbers
        self.reserved: dict[int, list[_socket.socket]] = {}  # sockets of `reserve`, which we close
        self._live: dict[int, Listening] = {}
        self.hidden: dict[tuple[str, int], tuple[int, str]] = {}  # pid and program of listeners that are not published
        self._order: dict[int, int] = {}  # requested port -> position in the order of first publication
        self._noted: set[tuple[object, ...]] = set()
        self._forwards: set[Forward] = set()
        self.on_refused: Callable[[int], None] = _ignore
        self.on_tls: Callable[[int], None] = _ignore  # gets a port whose URL begins with https from now on

    # Events of the session

    def listening(self, address: str, port: int, *, requested: int, pid: int, exe: str) -> Published | None:
        """Handle a new listener: publish it if it is wanted and listens on loopback or on every address.

        Returns what is newly published, or None.
        """
        if port in self._plan.excluded or not self._plan.wanted.wants(requested) or dial_address(address) is None:
            return None
        known = self._live.get(requested)
        if known is not None:
            known.pid, known.exe = pid, exe
            if (address, port) not in known.targets and len(known.targets) < MAX_TARGETS:
                known.targets.append((address, port))
            return None
        entry = Listening(requested, (address, port), pid, exe)
        self._gone.pop(requested, None)
        if self.is_full or not self._open(entry):
            if len(self.hidden) < MAX_HIDDEN:
                self.hidden[address, port] = pid, exe
            self._record_once("deny", self._obstacle(requested), port=requested, address=address, pid=pid, exe=exe)
            return None
        self.hidden.pop((address, port), None)
        self._live[requested] = entry
        self._order.setdefault(requested, len(self._order))
        published = self._describe(entry, self._first())
        if self._record(published):
            return published
        self._withdraw(entry)
        return None

    def check(self, alive: Callable[[], Container[tuple[str, int]]]) -> None:
        """Withdraw and forget what no longer listens; *alive* is called only if there is anything."""
        still = alive() if self._live or self.hidden else ()
        for entry in tuple(self._live.values()):
            entry.targets = [target for target in entry.targets if target in still]
            if not entry.targets:
                self._withdraw(entry)
        for target in tuple(self.hidden):
            if target not in still:
                del self.hidden[target]

    def close(self) -> None:
        """Close every connection and release every port."""
        for entry in self._live.values():
            entry.close()
        self._live.clear()
        for forward in tuple(self._forwards):
            forward.close()
        for sockets in self.reserved.values():
            for sock in sockets:
                sock.close()
        self.reserved.clear()

    # Queries

    def published(self) -> list[Published]:
        """In the order of first publication."""
        live = sorted(self._live.values(), key=self._age)
        return [self._describe(entry, live[0]) for entry in live]

    def targets(self, requested: int | None) -> list[tuple[str, int]]:
        """The addresses inside for a port; empty if it is not published. None means the port of the session's name: the
        published port that was published first.
        """
        if requested is None:
            requested = self.main_port()
        entry = self._live.get(requested) if requested is not None else None
        return [(dial_address(address) or address, port) for address, port in entry.targets] if entry else []

    def main_port(self) -> int | None:
        return self._first().port if self._live else None

    def speaks_tls(self, requested: int) -> bool:
        entry = self._live.get(requested)
        return entry is not None and entry.tls

    def learn_tls(self, requested: int, *, speaks: bool) -> None:
        entry = self._live.get(requested)
        if entry is not None and entry.tls != speaks:
            entry.tls = speaks
            if speaks:
                self.on_tls(requested)

    def url(self, requested: int) -> str:
        return self._url(self._live[requested], self._first())

    def host_url(self, requested: int) -> str:
        """The same by its address, for programs that do not resolve names below localhost."""
        return _address_url(self._live[requested])

    @property
    def connections(self) -> int:
        return len(self._forwards)

    @property
    def is_full(self) -> bool:
        return len(self._live) >= MAX_PORTS

    # Opening and closing

    def _obstacle(self, requested: int) -> str:
        """The reason why a port could not be opened."""
        if self.is_full:
            return reasons.LIMIT
        number = self._faces(requested)[0][0][1]  # None: any port of the window was allowed
        return reasons.WINDOW_FULL if number is None else reasons.PORT_TAKEN

    def _faces(self, requested: int) -> tuple[list[Face], list[Face]]:
        host_port = self._plan.wanted.fixed.get(requested)
        return split_faces(
            self._plan.strategy, requested, self._plan.window, device_given=self._plan.device_given, host_port=host_port
        )

    def _open(self, entry: Listening) -> bool:
        group, extra = self._faces(entry.port)
        addresses = [address for address, _ in group]
        number = group[0][1]
        reserved = self.reserved.pop(entry.port, None)
        if reserved is not None:
            opened = self._listen(entry, reserved)
        elif number is not None:
            opened = self._open_one_of(entry, addresses, [number])
        else:
            opened = self._open_one_of(entry, addresses, self._candidates(entry))
        if opened:
            for address, port in extra:
                self._open_one_of(entry, [address], [port or entry.port])
        return opened

    def _candidates(self, entry: Listening) -> Iterator[int]:
        """The earlier port or a new one; in a full window, one whose listener has gone."""
        assignment = self._assignment
        number = assignment.assign(entry.port)
        while number is not None or self._gone:
            if number is None:
                assignment.release(next(iter(self._gone)))
                del self._gone[next(iter(self._gone))]
                number = assignment.assign(entry.port)
                continue
            yield number
            if entry.targets[0][1] != entry.port:  # otherwise the program's own socket has the number
                return
            number = assignment.reassign(entry.port)

    def _open_one_of(self, entry: Listening, addresses: Sequence[str], ports: Iterable[int]) -> bool:
        for port in ports:
            try:
                sockets = bind_all(addresses, port)
            except OSError as error:
                if error.errno in TRY_ANOTHER_PORT:
                    continue
                return False
            if self._listen(entry, sockets):
                return True
        return False

    def _listen(self, entry: Listening, sockets: list[_socket.socket]) -> bool:
        def receive(client: _socket.socket) -> None:
            self._receive(entry, client)

        try:
            entry.acceptors += listen_all(self._loop, sockets, receive)
        except OSError:  # another program bound it at the same time and listened first
            return False
        return True

    def _withdraw(self, entry: Listening) -> None:
        del self._live[entry.port]
        entry.close()
        self._gone[entry.port] = None
        host_port = self._plan.wanted.fixed.get(entry.port)
        if host_port is not None:
            again = {entry.port: host_port}
            try:
                self.reserved |= reserve(
                    again, self._plan.strategy, self._plan.window, device_given=self._plan.device_given
                )
            except PublishError:  # taken just now: the next listen tries again
                pass

    # Connections and records

    def _receive(self, entry: Listening, client: _socket.socket) -> None:
        if len(self._forwards) >= MAX_CONNECTIONS:
            return hang_up(client)
        inside_port = entry.targets[0][1]
        forward = Forward(client, self._relays, self._over, lambda: self.on_refused(inside_port))
        self._forwards.add(forward)
        return forward.start(self._loop, self._inside, self.targets(entry.port))

    def _over(self, forward: Forward, moved: object) -> None:
        self._forwards.discard(forward)

    def _age(self, entry: Listening) -> int:
        return self._order[entry.port]

    def _first(self) -> Listening:
        return min(self._live.values(), key=self._age)

    def _describe(self, entry: Listening, main: Listening) -> Published:
        first = entry.acceptors[0]
        device = [face for face in entry.acceptors if face.address == self._plan.window.device]
        return Published(
            entry.port,
            entry.targets[0],
            (first.address, first.port),
            (device[0].address, device[0].port) if device else None,
            self._url(entry, main),
            entry.pid,
            entry.exe,
            entry.since,
        )

    def _url(self, entry: Listening, main: Listening) -> str:
        if self.by_name_port is None:
            return _address_url(entry)
        scheme = "https" if entry.tls else "http"
        label = "" if main is entry else f"{entry.port}."
        return f"{scheme}://{label}{self._plan.name}.localhost:{self.by_name_port}/"

    def _record(self, published: Published) -> bool:
        return self._record_once(
            "allow",
            reasons.LOOPBACK,
            port=published.port,
            address=published.inside_address,
            host_address=published.host_address,
            host_port=published.host_port,
            url=published.url,
            pid=published.pid,
            exe=published.exe,
        )

    def _record_once(self, verdict: str, reason: str, *, pid: int, **fields: object) -> bool:
        """Record each combination once, since a program may listen and stop a thousand times a second."""
        kind = (verdict, *fields.values())
        if kind in self._noted:
            return True
        written = self._note("publish", verdict=verdict, reason=reason, pid=pid, **fields) is not False
        if written and len(self._noted) < MAX_NOTED:
            self._noted.add(kind)
        return written


def _address_url(entry: Listening) -> str:
    scheme = "https" if entry.tls else "http"
    return f"{scheme}://{entry.acceptors[0].address}:{entry.acceptors[0].port}/"


def _ignore(port: int) -> None:
    """The default of `on_refused` and `on_tls`."""
