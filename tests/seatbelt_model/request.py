"""What a program asks of the kernel, as a profile sees it. Pure.

Paths are resolved before Seatbelt looks at them, so a request made here is resolved too: `/tmp/x` is asked as
`/private/tmp/x`. What a request does not say is not assumed to be harmless: a filter on it is undecided, and the models
try both outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

from netsandbox.backends.seatbelt.profile.mac_paths import resolved
from netsandbox.backends.seatbelt.profile.operations import KNOWN
from tests.seatbelt_model.values import ProfileError, printable

TCP, UDP = "tcp", "udp"


@dataclass(frozen=True)
class Endpoint:
    """One end of a connection. `own` says that it is an address of this machine on some other interface."""

    protocol: str
    address: IPv4Address | IPv6Address
    port: int
    own: bool = False


@dataclass(frozen=True)
class Request:
    """One operation on one object. `attributes` are values for named filters, such as `global-name`; None: has none."""

    operation: str
    path: str | None = None
    remote: Endpoint | None = None
    local: Endpoint | None = None
    attributes: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.operation not in KNOWN or self.operation == "default":
            raise ProfileError(f"no operation {printable(self.operation)} can be asked; see operations.py")
        if self.path is not None:
            object.__setattr__(self, "path", resolved(self.path))


def connect(address: str, port: int, protocol: str = TCP, *, own: bool = False) -> Request:
    """`connect`, or a datagram sent, to an address."""
    remote = Endpoint(protocol, ip_address(address), port, own)
    return Request("network-outbound", remote=remote, attributes={"control-name": None})


def connect_unix(path: str) -> Request:
    return Request("network-outbound", path=path, attributes={"control-name": None})


def bind(address: str, port: int, protocol: str = TCP) -> Request:
    return Request("network-bind", local=Endpoint(protocol, ip_address(address), port))


def listen(address: str, port: int) -> Request:
    """`listen` and `accept` at a local address; who connects is not said."""
    return Request("network-inbound", local=Endpoint(TCP, ip_address(address), port))


def lookup(service: str) -> Request:
    """A mach service, by name."""
    return Request("mach-lookup", attributes={"global-name": service, "local-name": None, "xpc-service-name": None})


def file(operation: str, path: str) -> Request:
    return Request(operation, path=path)
