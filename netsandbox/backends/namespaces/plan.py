"""Builds the plan for the helper as bytes (pure). native/plan.h defines the format.

The plan makes these parts: a private /proc, /dev/shm and resolver configuration; read-only kernel settings; our own
code, logs and state out of the command's reach (INV-8); hidden secrets, and restricted writing if configured; loopback,
with every other destination captured; and the doors inside the namespace.
"""

from __future__ import annotations

import sys

from netsandbox_portmap import ASKING_PORT, DATAGRAM_PORT, DNS_PORT, MIXED_PORT, TRANSPARENT_PORT

from netsandbox.backends.namespaces import nft_bytes
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.namespaces.session_root import Step

    Option = tuple[tuple[int, int], bytes]

BIND, READ_ONLY, OPTIONAL = 1, 2, 4
AF_INET, AF_INET6 = 2, 10
SOCK_STREAM, SOCK_DGRAM = 1, 2
NETLINK_ROUTE, NETLINK_NETFILTER = 0, 12
BACKLOG = 4096

# (level, option) of ip(7), ipv6(7) and socket(7)
REUSE_ADDRESS = (1, 2)
RECEIVE_BUFFER = (1, 8)
IP_TRANSPARENT, IPV6_TRANSPARENT = (0, 19), (41, 75)
IP_ORIGINAL_DESTINATION, IPV6_ORIGINAL_DESTINATION = (0, 20), (41, 74)
IP_PACKET_INFO, IPV6_PACKET_INFO = (0, 8), (41, 49)
IPV6_ONLY = (41, 26)
IPV6_FREE_BIND = (41, 78)  # a reply leaves from the queried address, which is routed to us but not assigned
IP_ADD_MEMBERSHIP, IPV6_ADD_MEMBERSHIP = (0, 35), (41, 20)
ON = (1).to_bytes(4, sys.byteorder)
BIG_BUFFER = (1 << 20).to_bytes(4, sys.byteorder)
LOOPBACK_ADDRESS, LOOPBACK_INDEX = bytes([127, 0, 0, 1]), (1).to_bytes(4, sys.byteorder)
# Multicast reaches a transparent socket only if it joined the group. mDNS, LLMNR and SSDP are joined to be recorded.
MULTICAST_GROUPS = (bytes([224, 0, 0, 251]), bytes([224, 0, 0, 252]), bytes([239, 255, 255, 250]))
MULTICAST_GROUPS6 = (
    "ff0200000000000000000000000000fb",
    "ff020000000000000000000000010003",
    "ff02000000000000000000000000000c",
)


@frozen
class Door:
    """A socket made inside the namespace and served from outside."""

    name: str
    family: int
    kind: int
    port: int
    loopback: bool
    options: tuple[Option, ...]


def doors() -> tuple[Door, ...]:
    """In the order in which their descriptors arrive at the supervisor."""
    reuse, v6, big = (REUSE_ADDRESS, ON), (IPV6_ONLY, ON), (RECEIVE_BUFFER, BIG_BUFFER)
    return (
        _stream("mixed", AF_INET, MIXED_PORT, reuse, loopback=True),
        _stream("mixed6", AF_INET6, MIXED_PORT, reuse, v6, loopback=True),
        _stream("transparent", AF_INET, TRANSPARENT_PORT, reuse, (IP_TRANSPARENT, ON)),
        _stream("transparent6", AF_INET6, TRANSPARENT_PORT, reuse, v6, (IPV6_TRANSPARENT, ON)),
        _datagram("dns", AF_INET, DNS_PORT, big, (IP_PACKET_INFO, ON)),
        _datagram("dns6", AF_INET6, DNS_PORT, big, v6, (IPV6_PACKET_INFO, ON), (IPV6_FREE_BIND, ON)),
        _stream("dns-tcp", AF_INET, DNS_PORT, reuse),
        _stream("dns-tcp6", AF_INET6, DNS_PORT, reuse, v6),
        _datagram("udp", AF_INET, DATAGRAM_PORT, (IP_TRANSPARENT, ON), (IP_ORIGINAL_DESTINATION, ON), *_groups()),
        _datagram(
            "udp6",
            AF_INET6,
            DATAGRAM_PORT,
            v6,
            (IPV6_TRANSPARENT, ON),
            (IPV6_ORIGINAL_DESTINATION, ON),
            *_groups6(),
        ),
    )


def localhost_doors(host_ports: Iterable[int], *, asking: bool) -> tuple[Door, ...]:
    """The doors of the session's localhost: ports of the host, and the preload library's requests."""
    reuse, v6 = (REUSE_ADDRESS, ON), (IPV6_ONLY, ON)
    found = [_stream("asking", AF_INET, ASKING_PORT, reuse, loopback=True)] if asking else []
    for port in host_ports:
        found.append(_stream(f"host-{port}", AF_INET, port, reuse, loopback=True))
        found.append(_stream(f"host6-{port}", AF_INET6, port, reuse, v6, loopback=True))
    return tuple(found)


def _stream(name: str, family: int, port: int, *options: Option, loopback: bool = False) -> Door:
    return Door(name, family, SOCK_STREAM, port, loopback, options)


def _datagram(name: str, family: int, port: int, *options: Option) -> Door:
    return Door(name, family, SOCK_DGRAM, port, False, options)  # noqa: FBT003 (a record is made by position)


def _groups() -> list[Option]:
    return [(IP_ADD_MEMBERSHIP, group + LOOPBACK_ADDRESS) for group in MULTICAST_GROUPS]


def _groups6() -> list[Option]:
    return [(IPV6_ADD_MEMBERSHIP, bytes.fromhex(group) + LOOPBACK_INDEX) for group in MULTICAST_GROUPS6]


@frozen
class View:
    """How the session's files differ from the host's."""

    uid: int
    gid: int
    files: tuple[tuple[str, str], ...]  # (ours, the host's path it covers)
    hidden: tuple[str, ...]  # folders that appear empty
    read_only: tuple[str, ...]  # paths that cannot be written
    pinned: tuple[str, ...] = ()  # folders that cannot be moved or removed, outer folders first
    covered: tuple[tuple[str, str], ...] = ()  # (an empty file of ours, the file that appears empty)
    writable: tuple[str, ...] | None = None  # the only writable paths; None: writing is not restricted
    links: tuple[str, ...] = ()  # symbolic links that cannot be replaced
    root: tuple[Step, ...] | None = None  # the steps of a root of its own; None: the host's root, changed as above


def build(view: View, filter_program: bytes, extra: tuple[Door, ...] = ()) -> bytes:
    """The whole plan; *extra* doors follow those of `doors()`."""
    steps = [_step(b"I", _numbers(view.uid, view.gid)), *(_host_view(view) if view.root is None else _root(view.root))]
    steps.append(_step(b"K", _numbers(NETLINK_ROUTE, nft_bytes.ROUTE_ACKNOWLEDGEMENTS) + nft_bytes.ROUTE))
    steps.append(_step(b"K", _numbers(NETLINK_NETFILTER, nft_bytes.FILTER_ACKNOWLEDGEMENTS) + nft_bytes.FILTER))
    for door in doors() + extra:
        steps += _door(door)
    steps.append(_step(b"F", filter_program))
    return b"".join(steps)


def _root(root: Iterable[Step]) -> Iterable[bytes]:
    yield _step(b"R", b"")
    for operation, number, texts in root:
        yield _step(operation.encode("ascii"), (b"" if number is None else _numbers(number)) + _texts(*texts))
    yield from _kernel_switches()
    yield _step(b"E", b"")


def _kernel_switches() -> Iterable[bytes]:
    for path in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
        yield _mount(BIND | READ_ONLY | OPTIONAL, path, path)


def _host_view(view: View) -> list[bytes]:
    # A mount point cannot be renamed. These come first, so that later mounts are made on top of them.
    steps = [_mount(BIND, path, path) for path in view.pinned]
    steps += [_step(b"L", _texts(path)) for path in view.links]
    steps.append(_mount(0, "proc", "/proc", "proc"))
    steps += _kernel_switches()
    steps.append(_mount(BIND | READ_ONLY | OPTIONAL, "/sys", "/sys"))
    steps.append(_mount(OPTIONAL, "tmpfs", "/dev/mqueue", "tmpfs", "mode=1777"))
    steps.append(_mount(OPTIONAL, "tmpfs", "/dev/shm", "tmpfs", "mode=1777"))  # noqa: S108
    steps += [_mount(BIND | READ_ONLY | OPTIONAL, ours, theirs) for ours, theirs in view.files]
    steps += [_mount(BIND | READ_ONLY, path, path) for path in view.read_only]
    steps += [_mount(READ_ONLY, "tmpfs", path, "tmpfs", "mode=0555,size=4k") for path in view.hidden]
    steps += [_mount(BIND | READ_ONLY, ours, theirs) for ours, theirs in view.covered]
    if view.writable is not None:  # last: earlier mounts stay as they are
        steps.append(_step(b"W", _texts(*view.writable)))
    return steps


def _door(door: Door) -> Iterable[bytes]:
    backlog = BACKLOG if door.kind == SOCK_STREAM else 0
    yield _step(b"D", _numbers(door.family, door.kind, door.port, int(door.loopback), backlog))
    for (level, name), value in door.options:
        yield _step(b"O", _numbers(level, name) + value)
    yield _step(b"B", b"")


def _mount(flags: int, source: str, target: str, kind: str = "", data: str = "") -> bytes:
    return _step(b"M", _numbers(flags) + _texts(source, target, kind, data))


def _texts(*texts: str) -> bytes:
    return b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in texts)


def _step(operation: bytes, payload: bytes) -> bytes:
    return operation + _numbers(len(payload)) + payload


def _numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, sys.byteorder) for value in values)
