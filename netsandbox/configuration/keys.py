"""Every key that a file may have: what reads it, how layers of it are joined, and who may say it.

The one table behind reading, merging, trust and the JSON Schema; docs/cli.md has a row for each.
"""

from __future__ import annotations

from netsandbox_portmap.strategies import STRATEGIES

from netsandbox.configuration import readers
from netsandbox.localhost import settings as localhost
from netsandbox.policy.policy import LOCALHOST, MODES, OFFLINE
from netsandbox.record import record
from netsandbox.seatbelt import switch_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.configuration.entry import Entry

TEXT: dict[str, object] = {"type": "string", "minLength": 1}
TEXTS: dict[str, object] = {"type": "array", "items": TEXT}
TRUTH: dict[str, object] = {"type": "boolean"}
PORT: dict[str, object] = {"type": "integer", "minimum": 1, "maximum": 65535}
PORTS: dict[str, object] = {"type": "array", "items": PORT}


def always(value: object) -> bool:
    """Whatever it says, it could open something."""
    return True


def never(value: object) -> bool:
    """Whatever it says, it opens nothing."""
    return False


@record
class Key:
    """`widens(value)`: a project's own file may say so only after the user trusted it; an empty list opens nothing.
    `adds`: lists of several files are joined; otherwise the highest one's value is taken. `stacks`: each file's value
    is kept, with its rank. `field` is that of `Settings`; '' where the value is used up before."""

    field: str
    read: Callable[[Entry], object]
    about: str
    schema: dict[str, object]
    widens: Callable[[object], bool]
    adds: bool = False
    stacks: bool = False
    means: tuple[str, str] | None = None  # another spelling of that table's key


HARMLESS_PROFILES = ("base", OFFLINE, LOCALHOST)


def names_opening(profiles: object) -> bool:
    """Whether any of them could open something."""
    return not isinstance(profiles, tuple) or any(name not in HARMLESS_PROFILES for name, _ in profiles)


def opens_the_network(mode: object) -> bool:
    return mode not in (OFFLINE, LOCALHOST)


KEYS: dict[str, dict[str, Key]] = {
    "sandbox": {
        "network": Key(
            "mode",
            readers.mode,
            "the same as `network.mode`",
            {"enum": list(MODES)},
            opens_the_network,
            means=("network", "mode"),
        ),
        "default_network": Key(
            "mode",
            readers.mode,
            "the same as `network.mode`",
            {"enum": list(MODES)},
            opens_the_network,
            means=("network", "mode"),
        ),
        "inherit_global": Key(
            "",
            readers.truth,
            "false in a project's file: leave your own file out",
            TRUTH,
            lambda inherits: not inherits,
        ),
        "profiles": Key(
            "", readers.profile_names, "profiles that this file builds on", TEXTS, names_opening, adds=True
        ),
        "default_profiles": Key(
            "",
            readers.profile_names,
            "the same as `sandbox.profiles`",
            TEXTS,
            names_opening,
            adds=True,
            means=("sandbox", "profiles"),
        ),
        "shell": Key("shell", readers.path, "what runs when no command is given", TEXT, always),
        "prompt_indicator": Key(
            "prompt_indicator", readers.truth, "whether the prompt of that shell shows the mode", TRUTH, never
        ),
        "log_file": Key("audit_log", readers.path, "the same as `audit.log`", TEXT, always, means=("audit", "log")),
    },
    "network": {
        "mode": Key(
            "mode",
            readers.mode,
            "what leaves when no rule says otherwise",
            {"enum": list(MODES)},
            opens_the_network,
        ),
        "allow_domains": Key("allow_domains", readers.allow_domains, "names let through", TEXTS, bool, adds=True),
        "deny_domains": Key(
            "deny_domains",
            readers.deny_domains,
            "names never let through; wins over every allow",
            TEXTS,
            never,
            adds=True,
        ),
        "allow_addresses": Key(
            "allow_addresses",
            readers.allow_addresses,
            "addresses let through, private ones included",
            TEXTS,
            bool,
            adds=True,
        ),
        "default_ports": Key(
            "default_ports", readers.default_ports, "the ports of a rule that names none", PORTS, always
        ),
        "allow_unix_sockets": Key(
            "allow_unix_sockets",
            readers.allow_unix_sockets,
            "Unix sockets of the host that may be connected to",
            TEXTS,
            bool,
            adds=True,
        ),
        "allow_query_types": Key(
            "allow_query_types",
            readers.allow_query_types,
            "types of DNS questions that are forwarded for allowed names",
            TEXTS,
            bool,
            adds=True,
        ),
        "upstream_dns": Key("upstream_dns", readers.upstream_dns, "who resolves allowed names", TEXTS, always),
        "upstream_proxy": Key(
            "upstream_proxy", readers.upstream_proxy, "the HTTP proxy that everything is dialled through", TEXT, always
        ),
        "proxy_env": Key("proxy_env", readers.truth, "whether proxy variables are set", TRUTH, never),
    },
    "filesystem": {
        "allow_read": Key(
            "allow_read", readers.paths, "paths at or below which secrets may be read", TEXTS, bool, adds=True
        ),
        "allow_write": Key(
            "allow_write",
            readers.paths,
            "paths that may be written beside the working and temporary folders; `[]`: no others",
            TEXTS,
            bool,
            adds=True,
        ),
        "deny_read": Key(
            "deny_read", readers.paths, "paths that are hidden; wins over every allow", TEXTS, never, adds=True
        ),
        "allow_execute": Key(
            "allow_execute",
            readers.paths,
            "on a Mac: programs, or folders of them, that may be run beside the usual ones",
            TEXTS,
            bool,
            adds=True,
        ),
    },
    "localhost": {
        "network_strategy": Key(
            "strategy",
            readers.word(localhost.strategy, '"isolate"'),
            "how ports of the session show on the host",
            {"enum": list(STRATEGIES)},
            always,
        ),
        "rewrite_engine": Key(
            "engine",
            readers.word(localhost.engine, '"kernel"'),
            "who rewires: the kernel's side, or a library in the command",
            {"enum": list(localhost.ENGINES)},
            never,
        ),
        "listening_base_port": Key(
            "base", readers.number(localhost.base_port), "first port of the session's window", PORT, always
        ),
        "listening_port_count": Key(
            "count", readers.number(localhost.port_count), "how many ports the window has", {"type": "integer"}, never
        ),
        "listening_loopback": Key(
            "device", readers.word(localhost.device, '"127.0.0.2"'), "the session's loopback address", TEXT, always
        ),
        "port_pool": Key("pool", readers.port_pool, "first and last port that windows are taken from", PORTS, always),
        "publish": Key("publish", readers.publish, "ports shown on the host, and no others", TEXTS, bool),
        "connect_host": Key(
            "connect_host",
            readers.connect_host,
            "ports of the host's localhost that are reached",
            PORTS,
            bool,
            adds=True,
        ),
    },
    "shell": {
        "pass_env": Key(
            "pass_env",
            readers.variables,
            "variables that the command gets though they look like secrets",
            TEXTS,
            bool,
            stacks=True,
        ),
        "deny_env": Key(
            "deny_env", readers.variables, "variables that the command never gets", TEXTS, never, stacks=True
        ),
        "set_env": Key(
            "set_env",
            readers.set_env,
            "variables set for the command",
            {"type": "object", "additionalProperties": {"type": "string"}},
            bool,
            adds=True,
        ),
    },
    "seatbelt": {
        "switches": Key(
            "switches",
            readers.switches,
            "parts of a Mac that are opened, or with no- closed: see docs/seatbelt-profile.md",
            {"type": "array", "items": {"enum": list(switch_words.WORDS)}},
            switch_words.widens,
            adds=True,
        ),
        "raw": Key(
            "raw",
            readers.raw,
            "rules in Seatbelt's own words, for a Mac: see docs/profiles.md",
            TEXT,
            always,
            adds=True,
        ),
    },
    "profiles": {
        "auto_detect": Key(
            "",
            readers.truth,
            "whether profiles are chosen by the project's files",
            TRUTH,
            bool,
        ),
        "detect": Key(
            "",
            readers.detection,
            "by which files a profile is chosen; `[]`: by none",
            {"type": "object", "additionalProperties": TEXTS},
            bool,
            adds=True,
        ),
    },
    "limits": {
        name: Key(
            name, readers.bound(name), about, {"type": "integer", "minimum": 1, "maximum": readers.MOST[name]}, always
        )
        for name, about in (
            ("connections", "connections at once, at each door"),
            ("idle_seconds", "how long a connection may be silent"),
            ("log_megabytes", "size of one file of the audit log; seven are kept"),
        )
    },
    "session": {"name": Key("name", readers.text("a name as a string"), "the session's name", TEXT, never)},
    "audit": {"log": Key("audit_log", readers.path, "where the audit log is written", TEXT, always)},
}
