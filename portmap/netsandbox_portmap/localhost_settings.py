"""The checked settings of a session's localhost (pure). Three lists: the ports that may be bound (the window), the
ports of the host that are reached (`connect_host`), and the ports that are published.
"""

from __future__ import annotations

from netsandbox import system
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox_portmap import DOOR_PORTS, FAIL, ISOLATE, REWIRE_PORT, STRATEGIES, default_strategy, is_name, window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ENGINES = ("kernel", "preload")
MAX_PORTS = window.MAX_PORTS
GATEWAY_PORT = 7878  # where names are served, for all sessions of a user
SECOND_PORTS = range(17878, 18878)  # where they are if another user has that port: one for each user id
MAX_HOST_PORTS = 24  # each needs two descriptors of the helper's message


@frozen
class HostPort:
    """One port of `--connect-host`: PORT inside, and what it leads to."""

    inside: int
    port: int | None = None  # at the other end; None: the same number
    session: str | None = None  # the name of another session; None: the host's localhost
    reported: str = ""  # why the other session did not offer it before the start, as the user read (`session_dial`)

    @property
    def reached(self) -> int:
        return self.inside if self.port is None else self.port

    @property
    def host(self) -> str:
        """The host's name in records."""
        return "localhost" if self.session is None else f"{self.session}.localhost"

    @property
    def owner(self) -> str:
        """What the port belongs to, in notices."""
        return "the host's localhost" if self.session is None else f"the session {self.session}"

    def __str__(self) -> str:
        """The option's value."""
        end = str(self.reached) if self.session is None else f"{self.session}:{self.reached}"
        return end if self.port is None else f"{self.inside}:{end}"


@frozen
class LocalhostSettings:
    """`publish` None: every listener; a tuple: only these ports, each with a port of the host or None."""

    strategy: str = default_strategy(system.NAME)
    chosen: bool = False  # whether the user chose the strategy; it is then used or refused, never replaced
    engine: str = "kernel"
    base: int | None = None
    count: int | None = None
    device: str | None = None
    pool: tuple[int, int] = window.POOL
    publish: tuple[tuple[int, int | None], ...] | None = None
    connect_host: tuple[HostPort, ...] = ()
    gateway_port: int = GATEWAY_PORT
    keep_host: bool = False  # servers see the Host that a client by name sent, not localhost:PORT

    @property
    def publishes(self) -> bool:
        return self.publish is None or bool(self.publish)

    @property
    def guarded(self) -> bool:
        """Whether bind and listen are trapped and checked: always, if the session promises to stay in its window."""
        return self.strategy == FAIL or self.engine == "preload"

    @property
    def trapped_calls(self) -> tuple[str, ...]:
        """The calls that the seccomp filter traps."""
        if self.guarded:
            return ("bind", "listen")
        return ("listen",) if self.publishes else ()

    @property
    def has_window(self) -> bool:
        return self.strategy != ISOLATE or self.publishes


def check(settings: LocalhostSettings) -> LocalhostSettings:
    """*settings*, if each value exists and they fit together.

    An unknown strategy would be one without a guard (INV-1).
    """
    _check_values(settings)
    if settings.strategy == ISOLATE and settings.engine == "preload":
        raise UsageError("isolate needs no rewriting; leave out --rewrite-engine, or choose another --network-strategy")
    if settings.device is not None and settings.strategy == REWIRE_PORT:
        raise UsageError("rewire-port changes ports, not devices; leave out --listening-loopback, or use rewire-device")
    if settings.device == window.LOCALHOST_IPV4 and settings.strategy != FAIL:
        raise UsageError(f"{settings.device} is the host's own; give --listening-loopback another, as 127.0.0.2")
    if not settings.has_window and (settings.base, settings.count, settings.device) != (None, None, None):
        raise UsageError("isolate without publishing has no window; leave out --listening-…, or --no-publish")
    _check_window(settings)
    _no_twice([outer for _, outer in settings.publish or () if outer is not None], "--publish")
    for door in settings.connect_host:
        if door.inside in DOOR_PORTS:
            why = f"port {door.inside} is a door of ours inside a session"
            raise UsageError(f"--connect-host {door}: {why}; write --connect-host PORT:{door.reached}")
    _no_twice([door.inside for door in settings.connect_host], "--connect-host")
    if len(settings.connect_host) > MAX_HOST_PORTS:
        raise UsageError(f"--connect-host takes at most {MAX_HOST_PORTS} ports; leave some out")
    return settings


def _check_values(settings: LocalhostSettings) -> None:
    """Check values from Python like those from the command line; `repr` distinguishes 3000 from "3000"."""
    strategy(settings.strategy, "strategy")
    engine(settings.engine, "engine")
    if settings.device is not None:
        device(settings.device, "device")
    if settings.base is not None:
        base_port(repr(settings.base), "base")
    if settings.count is not None:
        port_count(repr(settings.count), "count")
    for door in settings.connect_host:
        if not isinstance(door, HostPort):
            raise UsageError(f"connect_host: {door!a} is not a HostPort; write HostPort(5432)")
        host_port(str(door), "connect_host")
    gateway_port(repr(settings.gateway_port), "gateway_port")
    for inner, outer in settings.publish or ():
        number(repr(inner), "publish")
        if outer is not None:
            number(repr(outer), "publish")


def _check_window(settings: LocalhostSettings) -> None:
    try:
        window.check_pool(*settings.pool)
        if settings.base is not None:
            window.check_window(settings.base, settings.count or window.SIZES[0])
    except window.WindowError as error:
        raise UsageError(str(error)) from None


def strategy(text: str, origin: str) -> str:
    return _one_of(STRATEGIES, text, origin)


def engine(text: str, origin: str) -> str:
    return _one_of(ENGINES, text, origin)


def _one_of(known: tuple[str, ...], text: str, origin: str) -> str:
    if text not in known:
        raise UsageError(f"{origin}: {text!a} is unknown; use one of {', '.join(known)}")
    return text


def number(text: str, origin: str, low: int = 1, high: int = window.LAST_PORT, *, example: int = 3000) -> int:
    """A plain decimal number between *low* and *high*."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and low <= int(text) <= high):
        raise UsageError(f"{origin}: {text!a} is no number from {low} to {high}; write one, such as {example}")
    return int(text)


def base_port(text: str, origin: str) -> int:
    return number(text, origin, window.FIRST_PORT, example=window.POOL[0])


def second_port(port: int, user: int) -> int | None:
    """Where the names of *user* are if *port* is taken; None if it was chosen: then that is what the user wants."""
    return SECOND_PORTS[user % len(SECOND_PORTS)] if port == GATEWAY_PORT else None


def gateway_port(text: str, origin: str) -> int:
    return number(text, origin, window.FIRST_PORT, example=GATEWAY_PORT)


def port_count(text: str, origin: str) -> int:
    return number(text, origin, high=MAX_PORTS, example=window.SIZES[0])


def device(text: str, origin: str) -> str:
    try:
        window.check_device(text)
    except window.WindowError as error:
        raise UsageError(f"{origin}: {error}") from None
    return text


def publications(texts: Iterable[str], origin: str) -> tuple[tuple[int, int | None], ...]:
    """Each `PORT` or `PORT:HOSTPORT`; a repeated port, inside or outside, is an error."""
    found: list[tuple[int, int | None]] = []
    for text in texts:
        inner, colon, outer = text.partition(":")
        found.append((number(inner, origin), number(outer, origin) if colon else None))
    _no_twice([inner for inner, _ in found], origin)
    _no_twice([outer for _, outer in found if outer is not None], origin)
    return tuple(found)


def host_port(text: str, origin: str) -> HostPort:
    """`PORT[:HOSTPORT]` for the host's localhost, `[PORT:]NAME:PORT` for another session. A name is never a number."""
    *front, last = text.split(":")
    session = front.pop() if front and not front[-1].isdigit() else None
    if len(front) > 1 or (session is not None and not is_name(session)):
        forms = "5432, 5432:6432 (port 6432 of this machine), db:5432 or 6432:db:5432 (port 5432 of the session db)"
        raise UsageError(f"{origin}: {text[:80]!a} is no port to reach; write one such as {forms}")
    port = number(last, origin)
    inside = number(front[0], origin) if front else port
    return HostPort(inside, None if port == inside else port, session)


def host_ports(texts: Iterable[str], origin: str) -> tuple[HostPort, ...]:
    """In the order of the ports inside. One that leads to two places is an error."""
    found = list(dict.fromkeys(host_port(text, origin) for text in texts))
    _no_twice([door.inside for door in found], origin)
    return joined(found)


def joined(*lists: Iterable[HostPort]) -> tuple[HostPort, ...]:
    """Where two lists name the same port inside, the later one wins."""
    by_port = {door.inside: door for doors in lists for door in doors}
    return tuple(by_port[port] for port in sorted(by_port))


def _no_twice(ports: list[int], origin: str) -> None:
    for port in ports:
        if ports.count(port) > 1:
            raise UsageError(f"{origin}: port {port} is named twice; leave one out")
