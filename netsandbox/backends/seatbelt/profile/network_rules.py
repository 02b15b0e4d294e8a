"""The rules for ports that a session reaches and listens on. Pure.

Everything is closed first. Then ports of localhost are opened one by one, by number, and these allow rules are the last
of the profile. So the same rule wins whether the last match wins, the filtered one or the most specific. The profile
never has an allow rule without a filter, a host other than `localhost`, a `local` filter on an outbound rule, or port
`*`.
"""

from __future__ import annotations

from netsandbox_portmap import FAIL, MAC_STRATEGIES, REWIRE_DEVICE, REWIRE_PORT

from netsandbox.backends.seatbelt.profile.mac_paths import checked
from netsandbox.backends.seatbelt.profile.profile_settings import DOORS, NOTHING
from netsandbox.backends.seatbelt.profile.sbpl_string import quoted
from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.backends.seatbelt.profile.profile_settings import NetworkSettings, OwnPaths

MAX_PORTS = 4096  # in a window: the slots of a port map
WINDOWS = {
    FAIL: "The window: where the session listens. Elsewhere it is refused.",
    REWIRE_DEVICE: "The window: where the session listens. No device can be named, so other ports stay closed.",
    REWIRE_PORT: "The window: where the session listens, whatever ports its programs ask for.",
}
RESOLVER_PORTS = (53, 5353)  # a resolver there would forward any query to any server
RESOLVER_SOCKETS = ("/private/var/run/mDNSResponder", "/var/run/mDNSResponder")


def network_rules(network: NetworkSettings, own: OwnPaths) -> str:
    """The end of the profile; `resolver.sbpl` comes before it."""
    window = range(network.base, network.base + network.count)
    hidden = [f"  (subpath {quoted(path)})" for path in sorted(set(own.hidden))]
    host = _ends("remote tcp", network.connect_host)
    sockets = [f"  (literal {quoted(path)})" for path in sorted(set(network.unix_sockets))]
    return "\n".join(
        (
            _rule("deny", "network-outbound", hidden, "Our own sockets."),
            _rule("allow", "network-outbound", sockets, "Sockets of the host that the user opened by name."),
            _rule("allow", "network-bind", _ends("local ip", window), WINDOWS[network.strategy]),
            _rule("allow", "network-inbound", _ends("local ip", window), "The window: who listens is connected to."),
            _rule("allow", "network-outbound", _ends("remote tcp", window), "The window: the session's own servers."),
            _rule("allow", "network-outbound", host, "Ports of the host that the user opened."),
            _rule("allow", "network-outbound", _doors(network), "The doors: the only ways out."),
        )
    )


def _doors(network: NetworkSettings) -> list[str]:
    tcp = [port for port in (network.http_door, network.dns_door, network.requests_door) if port]
    udp = [network.dns_door] if network.dns_door else []
    return [*_ends("remote tcp", tcp), *_ends("remote udp", udp)]


def _ends(end: str, ports: Iterable[int]) -> list[str]:
    return [f'  ({end} "localhost:{port:d}")' for port in sorted(set(ports))]


def _rule(action: str, operation: str, filters: list[str], why: str) -> str:
    """One rule, or an empty text without filters, so that no unfiltered allow rule can be made."""
    return f"; {why}\n({action} {operation}\n" + "\n".join(filters) + ")\n" if filters else ""


def check_network(network: NetworkSettings, own: OwnPaths) -> None:
    """Raise an error for settings that Seatbelt cannot enforce, or that contradict each other."""
    if network.strategy not in MAC_STRATEGIES:
        known = ", ".join(MAC_STRATEGIES)
        raise UsageError(f"the strategy {network.strategy!a} does not exist on macOS; use one of {known}")
    _check_doors(network)
    _check_window(network)
    for port in network.connect_host:
        _check_port(port, "port of the host")
        if port in RESOLVER_PORTS:
            raise UsageError(f"port {port} of the host is a resolver's, which lets any data out; leave it out")
    for path in network.unix_sockets:
        checked(path, "socket")
        if path in RESOLVER_SOCKETS:
            raise UsageError(f"{path!a} is the system's resolver, which lets any data out; leave it out")
        if any(is_within(path, place) for place in own.hidden):
            raise UsageError(f"{path!a} is netsandbox's own and stays closed; leave it out")


def _check_doors(network: NetworkSettings) -> None:
    doors = [port for port in (network.http_door, network.dns_door, network.requests_door) if port]
    if network.mode not in (NOTHING, DOORS):
        raise UsageError(f"unknown network mode {network.mode!a}; use {NOTHING} or {DOORS}")
    if network.mode == NOTHING and (network.http_door or network.dns_door):
        raise UsageError(f"mode {NOTHING} has no doors to the network; leave them out, or use mode {DOORS}")
    if network.mode == DOORS and not network.http_door:
        raise UsageError(f"mode {DOORS} needs the port of its HTTP door; give it")
    for port in doors:
        _check_port(port, "door")
        if network.base <= port < network.base + network.count:
            raise UsageError(f"the door {port} is within the window, where the command listens; choose another")
    if len(set(doors)) != len(doors):
        raise UsageError("two doors have the same port; give each its own")


def _check_window(network: NetworkSettings) -> None:
    if not 0 <= network.count <= MAX_PORTS:
        raise UsageError(f"a window of {network.count} ports cannot be; use 1 to {MAX_PORTS}, or 0 for none")
    if network.count and not 1024 <= network.base <= 65536 - network.count:
        raise UsageError(f"a window of {network.count} ports from {network.base} does not fit; use 1024 to 65535")


def _check_port(port: int, what: str) -> None:
    if type(port) is not int or not 1 <= port <= 65535:
        raise UsageError(f"{port!a} is not a {what}; use a number from 1 to 65535")
