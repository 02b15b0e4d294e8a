"""Notices before the command runs, about options that do less than they seem to. Each is loaded for its option only."""

from __future__ import annotations

import os
import stat

from netsandbox.config.profiles.profile_files import is_profile_file
from netsandbox.paths import short
from netsandbox.policy.decision import is_loopback_name
from netsandbox.policy.policy import LOCALHOST, OFFLINE
from netsandbox.policy.variables import Patterns
from netsandbox.system import IS_LINUX
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from netsandbox.policy.policy import AddressRule, DomainRule, Policy

MAX_LINES = 5


def contradiction_lines(pairs: Iterable[tuple[DomainRule, DomainRule]], *, verbose: bool) -> list[str]:
    """A line for each allow that a deny closes. To deny a part of a profile is no mistake."""
    told = [pair for pair in pairs if verbose or not is_profile_file(pair[0].origin)]
    lines = [
        single_line(
            f"{short(allow.origin)}: {allow.text} is denied by {short(deny.origin)} ({deny.text}), which wins;"
            " leave one of them out"
        )
        for allow, deny in told[:MAX_LINES]
    ]
    if len(told) > MAX_LINES:
        lines.append(f"and {len(told) - MAX_LINES} more names are both allowed and denied; see `netsandbox explain`")
    return lines


def closed_lines(policy: Policy) -> list[str]:
    """The options that allow something where a file or profile has closed the network: a mode wins over rules."""
    if policy.mode not in (OFFLINE, LOCALHOST):
        return []
    allows: list[DomainRule | AddressRule] = [*policy.allow_domains, *policy.allow_addresses]
    rules = [rule for rule in allows if rule.origin.startswith("--")]
    return [
        single_line(
            f"{rule.origin}: {rule.text} opens nothing, because a file or profile sets the mode {policy.mode};"
            " `netsandbox config show` names its line, and --no-config does without it"
        )
        for rule in rules[:1]
    ]


def localhost_lines(rules: Iterable[DomainRule]) -> list[str]:
    """Rules for names of the loopback, which is the session's own and needs none."""
    return [
        single_line(
            f"{short(rule.origin)}: {rule.text} is the session's own, and needs no rule; to reach a server of this"
            f" machine use --connect-host {rule.ports[0] if rule.ports else 'PORT'}"
        )
        for rule in rules
        if is_loopback_name(rule.name)
    ]


def unset_lines(patterns: Sequence[str]) -> list[str]:
    """The variables of --pass-env that nobody has set."""
    names = [name.upper() for name in os.environb]
    lines = []
    for pattern in dict.fromkeys(patterns):
        found = Patterns((pattern,))
        if not any(found.names(name) or found.fits(name) for name in names):
            what = "no variable here has such a name" if "*" in pattern else "this variable is not set here"
            lines.append(f"--pass-env {pattern}: {what}, so nothing is passed; set and export it, or leave it out")
    return lines


def unheard_lines(ports: Iterable[int]) -> list[str]:
    """The ports of --connect-host at which no server of this machine listens yet."""
    if not IS_LINUX:
        return []
    try:
        taken = set(_host_ports())
    except (OSError, ValueError):  # the kernel does not tell; a connection that fails says it later
        return []
    return [
        f"--connect-host {port}: nothing listens at port {port} of this machine's localhost yet, and the command cannot"
        f" listen there; for a server of the command use --publish {port}"
        for port in ports
        if port not in taken
    ]


def no_socket_lines(paths: Iterable[str]) -> list[str]:
    """The paths of --allow-unix-socket at which there is no socket. Those that are not absolute are an error later."""
    lines = []
    for path in dict.fromkeys(path for path in paths if path.startswith("/")):
        try:
            what = "" if stat.S_ISSOCK(os.stat(path).st_mode) else "this is no socket"
        except (OSError, ValueError):
            what = "nothing is there yet"
        if what:
            lines.append(
                single_line(f"--allow-unix-socket {short(path)}: {what}; start its server first, or correct the path")
            )
    return lines


def _host_ports() -> Iterator[int]:
    """Where servers of this machine listen."""
    import _socket

    from netsandbox.backends.namespaces import socket_diag

    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, socket_diag.SOCK_DIAG)
    try:
        for _, port, _ in socket_diag.internet_sockets(sock, socket_diag.TCP, socket_diag.LISTENING):
            yield port
    finally:
        sock.close()
