"""The address guard: destinations that a public name has no business resolving to.

Loopback, private networks, cloud metadata and the host's own addresses are reached only where an address rule names
them. Rules kept: an IPv4 address inside an IPv6 address is checked as that IPv4 address, for each of the known ways to
embed it; documentation ranges are ordinary networks (no intranet uses them) and pass.
"""

from __future__ import annotations

from netsandbox.policy.ip import Address, embedded4, parse4, parse6

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

METADATA = "metadata"
OWN = "own-address"
LOOPBACK = "loopback"


def _number(text: str) -> int:
    value = parse6(text) if ":" in text else parse4(text)
    assert value is not None
    return value


def _table(ranges: tuple[tuple[str, str], ...], bits: int) -> tuple[tuple[int, int, str], ...]:
    """(shift, prefix, name) for each CIDR: an address is inside when address >> shift == prefix."""
    rows = []
    for cidr, name in ranges:
        network, length = cidr.split("/")
        shift = bits - int(length)
        rows.append((shift, _number(network) >> shift, name))
    return tuple(rows)


_METADATA4 = frozenset(
    map(
        _number,
        (
            "169.254.169.254",  # most clouds
            "169.254.169.253",  # AWS resolver
            "169.254.169.123",  # AWS time
            "169.254.170.2",  # container credentials
            "169.254.170.23",  # pod identity
            "100.100.100.200",  # Alibaba
            "168.63.129.16",  # Azure wire server
            "192.0.0.192",  # Oracle
        ),
    )
)
_METADATA6 = frozenset(map(_number, ("fd00:ec2::254", "fd00:ec2::253", "fd00:ec2::23", "fd20:ce::254")))

_RANGES4 = _table(
    (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "cgnat"),
        ("127.0.0.0/8", LOOPBACK),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol-assignments"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmark"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    ),
    32,
)
_RANGES6 = _table(
    (
        ("::/128", "unspecified"),
        ("::1/128", LOOPBACK),
        ("64:ff9b:1::/48", "private"),  # NAT64 into someone's own network (RFC 8215)
        ("fc00::/7", "ula"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    ),
    128,
)


def guarded(address: Address, own: Collection[Address] = ()) -> str | None:
    """The name of the guarded range that *address* is in, or None; *own* holds the host's own addresses."""
    if address.version == 4:
        return _guarded4(address.value, own)
    value = address.value
    if value in _METADATA6:
        return METADATA
    for shift, prefix, name in _RANGES6:
        if value >> shift == prefix:
            return name
    if address in own:
        return OWN
    for embedded in embedded4(value):
        name4 = _guarded4(embedded, own)
        if name4 is not None:
            return name4
    return None


def _guarded4(value: int, own: Collection[Address]) -> str | None:
    if value in _METADATA4:
        return METADATA
    for shift, prefix, name in _RANGES4:
        if value >> shift == prefix:
            return name
    return OWN if own and Address(4, value) in own else None
