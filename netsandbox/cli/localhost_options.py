"""The options about the session's localhost, and how they become settings."""

from __future__ import annotations

import sys

from netsandbox_portmap import localhost_settings as localhost
from netsandbox_portmap.strategies import STRATEGIES, default_strategy

from netsandbox.cli.options import FLAG, LIST, VALUE, Option
from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import LocalhostSettings

    from netsandbox.cli.options import Parsed
    from netsandbox.config.file_settings import FileSettings

_DEFAULT = default_strategy(sys.platform)
_STRATEGIES = ", ".join(f"{name} (default)" if name == _DEFAULT else name for name in STRATEGIES)
LOCALHOST_OPTIONS = (
    Option("publish", LIST, "", "PORT[:HOSTPORT]", "show this port of it on the host, and no other (default: all)"),
    Option("no-publish", FLAG, "", "", "show no port of it on the host"),
    Option("connect-host", LIST, "", "PORT", "let the command reach this port of the host's localhost"),
    Option("network-strategy", VALUE, "", "NAME", f"how ports show: {_STRATEGIES}", STRATEGIES),
    Option(
        "rewrite-engine",
        VALUE,
        "",
        "NAME",
        "who rewires: kernel (default), or preload, a library in the command",
        localhost.ENGINES,
    ),
    Option("listening-base-port", VALUE, "", "PORT", "first port of its window, the ports of the host that it has"),
    Option("listening-port-count", VALUE, "", "N", "how many ports the window has (default: 100)"),
    Option("listening-loopback", VALUE, "", "IP", "its loopback address on the host, such as 127.0.0.2"),
)
NAMES = frozenset(option.name for option in LOCALHOST_OPTIONS)


def localhost_of(parsed: Parsed, file: FileSettings | None) -> LocalhostSettings:
    """The command line's word wins over the file's; lists add up."""
    given = parsed.values.keys() | parsed.lists.keys() | parsed.flags
    base = file.localhost if file is not None else localhost.LocalhostSettings()
    if given.isdisjoint(NAMES):
        return localhost.check(base)
    values = dict(vars(base))
    for option, field, read in _READERS:
        if option in parsed.values:
            values[field] = read(parsed.values[option], f"--{option}")
    values["chosen"] = base.chosen or "network-strategy" in parsed.values
    values["publish"] = _publish(parsed, base)
    listed = localhost.host_ports(parsed.all("connect-host"), "--connect-host")
    values["connect_host"] = tuple(sorted({*base.connect_host, *listed}))
    return localhost.check(localhost.LocalhostSettings(**values))


def _publish(parsed: Parsed, base: LocalhostSettings) -> tuple[tuple[int, int | None], ...] | None:
    listed = parsed.all("publish")
    if "no-publish" in parsed.flags:
        if listed:
            raise UsageError("--publish and --no-publish exclude each other; choose one")
        return ()
    if not listed:
        return base.publish
    given = localhost.publications(listed, "--publish")
    inner = {port for port, _ in given}
    return (*(pair for pair in base.publish or () if pair[0] not in inner), *given)


_READERS = (
    ("network-strategy", "strategy", localhost.strategy),
    ("rewrite-engine", "engine", localhost.engine),
    ("listening-base-port", "base", localhost.base_port),
    ("listening-port-count", "count", localhost.port_count),
    ("listening-loopback", "device", localhost.device),
)
