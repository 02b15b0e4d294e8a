"""Builds the plan for the helper as bytes (pure). native/plan.h defines the format.

The plan makes these parts: a private /proc, /dev/shm and resolver configuration; read-only kernel settings; our own
code, logs and state out of the command's reach (INV-8); hidden secrets, and restricted writing if configured; loopback,
with every other destination captured; and the doors inside the namespace.
"""

from __future__ import annotations

import sys

from netsandbox_portmap import DATAGRAM_PORT, DNS_PORT, MIXED_PORT, REQUESTS_PORT, TRANSPARENT_PORT

from netsandbox.backends.linux.plan_steps import numbers, step, texts
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.linux.session_root import Step

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

# Netlink messages that configure the session's network, as `python -m scripts.nft_rules` encodes them.
ROUTE_ACKNOWLEDGEMENTS = 3
ROUTE = bytes.fromhex(
    "2000000010000500010000000000000000000000010000000100000001000000240000001800050602000000000000000200"
    "0000ff04fe02000000000800040001000000240000001800050603000000000000000a000000ff04fe020000000008000400"
    "01000000"
)
FILTER_ACKNOWLEDGEMENTS = 8
FILTER = bytes.fromhex(
    "1400000010000100010000000000000000000a0024000000000a050c0200000000000000010000000f0001006e657473616e"
    "64626f78000058000000030a050c0300000000000000010000000f0001006e657473616e64626f7800000c00030063617074"
    "7572650014000400080001000000000008000200ffffff6a08000500000000010b00070066696c7465720000c4000000060a"
    "050c0400000000000000010000000f0001006e657473616e64626f7800000c00020063617074757265009400040034000100"
    "0c0001007061796c6f6164002400020008000100000000010800020000000002080003000000000208000400000000022c00"
    "010008000100636d700020000200080001000000000108000200000000000c0003000600010000350000300001000e000100"
    "696d6d6564696174650000001c0002000800010000000000100002000c0002000800010000000001c4000000060a050c0500"
    "000000000000010000000f0001006e657473616e64626f7800000c000200636170747572650094000400340001000c000100"
    "7061796c6f6164002400020008000100000000010800020000000002080003000000000008000400000000022c0001000800"
    "0100636d700020000200080001000000000108000200000000000c0003000600010000350000300001000e000100696d6d65"
    "64696174650000001c0002000800010000000000100002000c000200080001000000000114010000060a050c060000000000"
    "0000010000000f0001006e657473616e64626f7800000c0002006361707475726500e400040024000100090001006d657461"
    "0000000014000200080002000000000f08000100000000012c00010008000100636d70002000020008000100000000010800"
    "0200000000000c0003000500010002000000340001000c0001007061796c6f61640024000200080001000000000108000200"
    "00000001080003000000001008000400000000012c00010008000100636d7000200002000800010000000001080002000000"
    "00000c000300050001007f000000300001000e000100696d6d6564696174650000001c000200080001000000000010000200"
    "0c000200080001000000000120010000060a050c0700000000000000010000000f0001006e657473616e64626f7800000c00"
    "02006361707475726500f000040024000100090001006d6574610000000014000200080002000000000f0800010000000001"
    "2c00010008000100636d700020000200080001000000000108000200000000000c000300050001000a000000340001000c00"
    "01007061796c6f61640024000200080001000000000108000200000000010800030000000018080004000000001038000100"
    "08000100636d70002c0002000800010000000001080002000000000018000300140001000000000000000000000000000000"
    "0001300001000e000100696d6d6564696174650000001c0002000800010000000000100002000c0002000800010000000001"
    "d4000000060a050c0800000000000000010000000f0001006e657473616e64626f7800000c0002006361707475726500a400"
    "040024000100090001006d6574610000000014000200080002000000001008000100000000012c00010008000100636d7000"
    "20000200080001000000000108000200000000000c00030005000100060000002c0001000e000100696d6d65646961746500"
    "00001800020008000100000000010c0002000600010003f10000240001000b0001007470726f787900001400020008000100"
    "000000000800030000000001d4000000060a050c0900000000000000010000000f0001006e657473616e64626f7800000c00"
    "02006361707475726500a400040024000100090001006d657461000000001400020008000200000000100800010000000001"
    "2c00010008000100636d700020000200080001000000000108000200000000000c00030005000100110000002c0001000e00"
    "0100696d6d6564696174650000001800020008000100000000010c0002000600010003f20000240001000b0001007470726f"
    "78790000140002000800010000000000080003000000000114000000110001000a0000000000000000000a00"
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


def localhost_doors(host_ports: Iterable[int], *, requests: bool) -> tuple[Door, ...]:
    """The doors of the session's localhost: ports of the host, and the preload library's requests."""
    reuse, v6 = (REUSE_ADDRESS, ON), (IPV6_ONLY, ON)
    found = [_stream("requests", AF_INET, REQUESTS_PORT, reuse, loopback=True)] if requests else []
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
    covered: tuple[tuple[str, str], ...] = ()  # (a file of ours that cannot be opened, the hidden file)
    writable: tuple[str, ...] | None = None  # the only writable paths; None: writing is not restricted
    links: tuple[str, ...] = ()  # symbolic links that cannot be replaced
    overlay: tuple[str, str] | None = None  # a folder of which the session changes a copy, and mount options
    root: tuple[Step, ...] | None = None  # the steps of a root of its own; None: the host's root, changed as above


def build(view: View, filter_program: bytes, extra: tuple[Door, ...] = (), rules: bytes = b"") -> bytes:
    """The whole plan; *extra* doors follow those of `doors()`. *rules* are steps of `process_rules`."""
    steps = [step(b"I", numbers(view.uid, view.gid)), *(_host_view(view) if view.root is None else _root(view.root))]
    steps.append(step(b"K", numbers(NETLINK_ROUTE, ROUTE_ACKNOWLEDGEMENTS) + ROUTE))
    steps.append(step(b"K", numbers(NETLINK_NETFILTER, FILTER_ACKNOWLEDGEMENTS) + FILTER))
    for door in doors() + extra:
        steps += _door(door)
    steps += [rules, step(b"F", filter_program)]
    return b"".join(steps)


def _root(root: Iterable[Step]) -> Iterable[bytes]:
    yield step(b"R", b"")
    for operation, number, paths in root:
        payload = ("\0".join(paths) + "\0").encode("utf-8", "surrogateescape")
        yield step(operation.encode("ascii"), payload if number is None else numbers(number) + payload)
    yield step(b"E", b"")


def _host_view(view: View) -> list[bytes]:
    # A mount point cannot be renamed. These come early, so that later mounts are made on top of them.
    steps = [step(b"U", numbers(0) + texts(view.overlay[0], view.overlay[1], view.overlay[0]))] if view.overlay else []
    steps += [_mount(BIND, path, path) for path in view.pinned]
    steps += [step(b"L", texts(path)) for path in view.links]
    steps.append(_mount(READ_ONLY, "proc", "/proc", "proc"))
    steps.append(_mount(BIND | READ_ONLY | OPTIONAL, "/sys", "/sys"))
    steps.append(_mount(OPTIONAL, "tmpfs", "/dev/mqueue", "tmpfs", "mode=1777"))
    steps.append(_mount(OPTIONAL, "tmpfs", "/dev/shm", "tmpfs", "mode=1777"))  # noqa: S108
    steps += [_mount(BIND | READ_ONLY | OPTIONAL, ours, theirs) for ours, theirs in view.files]
    steps += [_mount(BIND | READ_ONLY, path, path) for path in view.read_only]
    steps += [_mount(BIND | READ_ONLY, ours, theirs) for ours, theirs in view.covered]  # ours is hidden by the next
    steps += [_mount(READ_ONLY, "tmpfs", path, "tmpfs", "mode=0555,size=4k") for path in view.hidden]
    if view.writable is not None:  # last: earlier mounts stay as they are
        steps.append(step(b"W", texts(*view.writable)))
    return steps


def _door(door: Door) -> Iterable[bytes]:
    backlog = BACKLOG if door.kind == SOCK_STREAM else 0
    yield step(b"D", numbers(door.family, door.kind, door.port, int(door.loopback), backlog))
    for (level, name), value in door.options:
        yield step(b"O", numbers(level, name) + value)
    yield step(b"B", b"")


def _mount(flags: int, source: str, target: str, kind: str = "", data: str = "") -> bytes:
    return step(b"M", numbers(flags) + texts(source, target, kind, data))
