"""The options about the session's localhost and the host's ports. `run_options` loads this module if one is given."""

from __future__ import annotations

from netsandbox_portmap import localhost_settings as localhost

from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import Parsed

READERS = (
    ("gateway-port", "gateway_port", localhost.gateway_port),
    ("network-strategy", "strategy", localhost.strategy),
    ("rewrite-engine", "engine", localhost.engine),
    ("listening-base-port", "base", localhost.base_port),
    ("listening-port-count", "count", localhost.port_count),
    ("listening-loopback", "device", localhost.device),
)


def with_options(base: localhost.LocalhostSettings, parsed: Parsed) -> localhost.LocalhostSettings:
    """*base* with what the command line says, which wins; lists add up."""
    values = dict(vars(base))
    for option, field, read in READERS:
        if option in parsed.values:
            values[field] = read(parsed.values[option], f"--{option}")
    values["keep_host"] = base.keep_host or "keep-host" in parsed.flags
    values["chosen"] = base.chosen or "network-strategy" in parsed.values
    values["publish"] = _publish(parsed, base)
    listed = localhost.host_ports(parsed.all("connect-host"), "--connect-host")
    values["connect_host"] = localhost.joined(base.connect_host, listed)
    return localhost.check(localhost.LocalhostSettings(**values))


def _publish(parsed: Parsed, base: localhost.LocalhostSettings) -> tuple[tuple[int, int | None], ...] | None:
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
