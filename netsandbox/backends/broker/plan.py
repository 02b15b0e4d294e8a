"""Builds the plan for the broker as bytes (pure). native/setup.h defines the format."""

from __future__ import annotations

from netsandbox.backends.linux.plan_steps import numbers, step, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOORS = ("mixed", "transparent", "dns-tcp", "dns", "udp")  # in the order of enum door
NETWORK_RIGHTS = 3  # linux/landlock.h: to bind and to connect TCP sockets


def addresses(base: int, device: str) -> tuple[int, int, int]:
    """The session's addresses in 127.0.0.0/8 as numbers: its device, the one for IPv6, the rendezvous. The last two are
    beside the device that belongs to the window's *base*, which no other session has."""
    own = 127 << 24 | base << 8
    return _number(device), own | 2, own | 3


def _number(address: str) -> int:
    value = 0
    for part in address.split("."):
        value = value << 8 | int(part)
    return value


def build(
    network: tuple[int, int, int, int],
    host_ports: Iterable[int],
    filters: tuple[bytes, bytes, bytes],
    *,
    handled: int,
    permits: Sequence[tuple[int, str]],
    sockets: str,
    limits: bytes = b"",
    working: str | None = None,
) -> bytes:
    """The whole plan. *network*: `addresses`, and whether the loopback is routed to other devices. *filters*: as
    `filter.build_all` makes them. *sockets*: a folder out of the session's reach, where Unix sockets are bound.
    *working*: where the command begins."""
    steps = [step(b"N", numbers(*network)), *(step(b"O", numbers(port)) for port in host_ports), limits]
    steps.append(step(b"H", numbers(handled, NETWORK_RIGHTS)))
    steps += [step(b"P", numbers(rights) + texts(path)) for rights, path in permits]
    steps.append(step(b"S", texts(sockets)))
    if working is not None:
        steps.append(step(b"W", texts(working)))
    steps += [step(b"F", each) for each in filters]
    return b"".join(steps)
