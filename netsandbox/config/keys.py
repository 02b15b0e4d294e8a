"""Every key of a configuration file: its reader, how values of several layers are merged, and which values need trust.

This table is the only source for reading, merging, trust, the JSON Schema and the tables of docs/configuration.md.
"""

from __future__ import annotations

from netsandbox_portmap import STRATEGIES, default_strategy
from netsandbox_portmap import localhost_settings as localhost

from netsandbox.backends.seatbelt.profile import switches
from netsandbox.config import readers
from netsandbox.config.key import (
    PORT,
    PORTS,
    TEXT,
    TEXTS,
    TRUTH,
    Key,
    always,
    leaves_the_user_out,
    names_opening,
    never,
    opens_files,
    opens_the_network,
)
from netsandbox.policy.file_rules import FILE_MODES
from netsandbox.policy.policy import MODES
from netsandbox.settings import MAX_WAIT

KEYS: dict[str, dict[str, Key]] = {
    "sandbox": {
        "network": Key(
            "mode",
            readers.mode,
            "the same as `network.mode`",
            {"enum": list(MODES)},
            opens_the_network,
            alias_of=("network", "mode"),
        ),
        "default_network": Key(
            "mode",
            readers.mode,
            "the same as `network.mode`",
            {"enum": list(MODES)},
            opens_the_network,
            alias_of=("network", "mode"),
        ),
        "inherit_global": Key(
            "",
            readers.truth,
            "`false` in a project's file ignores your own file",
            TRUTH,
            leaves_the_user_out,
            default_text="`true`",
        ),
        "profiles": Key(
            "",
            readers.profile_names,
            "profiles to use below this file",
            TEXTS,
            names_opening,
            adds=True,
            options=("profile",),
        ),
        "default_profiles": Key(
            "",
            readers.profile_names,
            "the same as `sandbox.profiles`",
            TEXTS,
            names_opening,
            adds=True,
            alias_of=("sandbox", "profiles"),
        ),
        "shell": Key(
            "shell", readers.path, "the program to run without a command", TEXT, always, default_text="`$SHELL`"
        ),
        "prompt_indicator": Key(
            "prompt_indicator", readers.truth, "show the mode in the prompt of that shell", TRUTH, never
        ),
        "log_file": Key("audit_log", readers.path, "the same as `audit.log`", TEXT, always, alias_of=("audit", "log")),
    },
    "network": {
        "mode": Key(
            "mode",
            readers.mode,
            "what is allowed if no rule matches",
            {"enum": list(MODES)},
            opens_the_network,
            options=("offline", "localhost", "online"),
            default_text='`"offline"`; `"filtered"` if any name or address is allowed',
        ),
        "allow_domains": Key(
            "allow_domains",
            readers.allow_domains,
            "allowed names",
            TEXTS,
            bool,
            adds=True,
            options=("allow-domain",),
        ),
        "deny_domains": Key(
            "deny_domains",
            readers.deny_domains,
            "denied names; wins over every allow",
            TEXTS,
            never,
            adds=True,
            options=("deny-domain",),
        ),
        "allow_addresses": Key(
            "allow_addresses",
            readers.allow_addresses,
            "allowed addresses, private ones included",
            TEXTS,
            bool,
            adds=True,
            options=("allow-address",),
        ),
        "default_ports": Key(
            "default_ports", readers.default_ports, "the ports of a rule without a port", PORTS, always
        ),
        "allow_unix_sockets": Key(
            "allow_unix_sockets",
            readers.allow_unix_sockets,
            "Unix sockets of the host that the command may connect to",
            TEXTS,
            bool,
            adds=True,
            options=("allow-unix-socket",),
        ),
        "allow_query_types": Key(
            "allow_query_types",
            readers.allow_query_types,
            "DNS query types that are forwarded for allowed names",
            TEXTS,
            bool,
            adds=True,
            options=("allow-query-type",),
        ),
        "upstream_dns": Key(
            "upstream_dns",
            readers.upstream_dns,
            "the DNS servers for allowed names",
            TEXTS,
            always,
            options=("upstream-dns",),
            default_text="the host's resolv.conf",
        ),
        "upstream_proxy": Key(
            "upstream_proxy",
            readers.upstream_proxy,
            "the HTTP proxy for all outgoing connections",
            TEXT,
            always,
            options=("upstream-proxy",),
        ),
        "proxy_env": Key(
            "proxy_env", readers.truth, "set the proxy variables", TRUTH, never, options=("no-proxy-env",)
        ),
    },
    "filesystem": {
        "mode": Key(
            "files_mode",
            readers.files_mode,
            "`project`: the project, the system and toolchains are there, nothing else of the home; `readable`: every"
            " file but secrets can be read; `open`: and written",
            {"enum": list(FILE_MODES)},
            opens_files,
            options=("files",),
        ),
        "share_tmp": Key(
            "share_tmp",
            readers.truth,
            "use the host's /tmp and /var/tmp, not own ones",
            TRUTH,
            bool,
            options=("share-tmp",),
        ),
        "allow_read": Key(
            "allow_read",
            readers.paths,
            "paths that are shown, with everything below, secrets too",
            TEXTS,
            bool,
            adds=True,
            options=("allow-read",),
        ),
        "allow_write": Key(
            "allow_write",
            readers.paths,
            "writable paths, besides the project and the temporary folders",
            TEXTS,
            bool,
            adds=True,
            options=("allow-write", "rw"),
        ),
        "cache": Key(
            "caches",
            readers.paths,
            "folders that are shown, and whose changes are kept for the project instead of written to the host",
            TEXTS,
            bool,
            adds=True,
        ),
        "deny_read": Key(
            "deny_read",
            readers.paths,
            "hidden paths; wins over every allow",
            TEXTS,
            never,
            adds=True,
            options=("deny-read", "blacklist"),
        ),
        "deny_write": Key(
            "deny_write",
            readers.paths,
            "paths that stay read-only inside of what is writable",
            TEXTS,
            never,
            adds=True,
            options=("deny-write",),
        ),
        "allow_execute": Key(
            "allow_execute",
            readers.paths,
            "on a Mac: programs, or folders of programs, that may run besides the usual ones",
            TEXTS,
            bool,
            adds=True,
        ),
    },
    "localhost": {
        "network_strategy": Key(
            "strategy",
            readers.checked_text(localhost.strategy, '"isolate"'),
            "how the host sees ports of the session",
            {"enum": list(STRATEGIES)},
            always,
            options=("network-strategy",),
            default_text=f'`"{default_strategy("linux")}"`, on a Mac `"{default_strategy("darwin")}"`',
        ),
        "rewrite_engine": Key(
            "engine",
            readers.checked_text(localhost.engine, '"kernel"'),
            "what rewrites ports: the kernel's side, or a library in the command",
            {"enum": list(localhost.ENGINES)},
            never,
            options=("rewrite-engine",),
        ),
        "listening_base_port": Key(
            "base",
            readers.number(localhost.base_port),
            "the first port of the session's window",
            PORT,
            always,
            options=("listening-base-port",),
            default_text="the first free one of `port_pool`",
        ),
        "listening_port_count": Key(
            "count",
            readers.number(localhost.port_count),
            "number of ports in the window",
            {"type": "integer", "minimum": 1, "maximum": localhost.MAX_PORTS},
            never,
            options=("listening-port-count",),
            default_text="`100`, or fewer where there is no room",
        ),
        "listening_loopback": Key(
            "device",
            readers.checked_text(localhost.device, '"127.0.0.2"'),
            "the session's loopback address",
            TEXT,
            always,
            options=("listening-loopback",),
        ),
        "port_pool": Key("pool", readers.port_pool, "the first and the last port for windows", PORTS, always),
        "publish": Key(
            "publish",
            readers.publish,
            "the only ports to publish: `3000`, or `3000:8000` for port 8000 of the host",
            TEXTS,
            bool,
            options=("publish", "no-publish"),
            default_text="every port that listens",
        ),
        "connect_host": Key(
            "connect_host",
            readers.connect_host,
            "ports of the host's localhost that the command may reach",
            PORTS,
            bool,
            adds=True,
            options=("connect-host",),
        ),
    },
    "shell": {
        "pass_env": Key(
            "pass_env",
            readers.variables,
            "variables to pass although they look like secrets",
            TEXTS,
            bool,
            stacks=True,
            options=("pass-env",),
        ),
        "deny_env": Key(
            "deny_env", readers.variables, "variables to withhold from the command", TEXTS, never, stacks=True
        ),
        "set_env": Key(
            "set_env",
            readers.set_env,
            'variables set for the command: `{ NODE_ENV = "test" }`',
            {"type": "object", "additionalProperties": {"type": "string"}},
            bool,
            adds=True,
        ),
    },
    "seatbelt": {
        "switches": Key(
            "switches",
            readers.switches,
            "parts of a Mac to open, or to close with `no-`; the last value for a part wins",
            {"type": "array", "items": {"enum": list(switches.WORDS)}},
            switches.widens,
            adds=True,
            options=("seatbelt-switch",),
        ),
        "raw": Key(
            "raw",
            readers.raw,
            "rules in Seatbelt's language, for a Mac",
            TEXT,
            always,
            adds=True,
        ),
    },
    "profiles": {
        "auto_detect": Key(
            "",
            readers.truth,
            "choose profiles by the project's files",
            TRUTH,
            bool,
            options=("no-detect",),
            default_text="`true`",
        ),
        "detect": Key(
            "",
            readers.detection,
            'the files that choose a profile: `{ node = ["package.json"] }`; `[]`: none',
            {"type": "object", "additionalProperties": TEXTS},
            bool,
            adds=True,
            default_text="the profile's own `detect`",
        ),
    },
    "approvals": {
        "ask": Key(
            "ask",
            readers.truth,
            "ask you about names that no rule allows, instead of refusing them",
            TRUTH,
            bool,
            options=("ask",),
        ),
        "wait": Key(
            "ask_wait",
            readers.number(readers.waiting),
            "seconds that a connection waits for your answer",
            {"type": "integer", "minimum": 1, "maximum": MAX_WAIT},
            always,
            options=("ask-wait",),
        ),
    },
    "limits": {
        name: Key(
            name,
            readers.bound(name),
            about,
            {"type": "integer", "minimum": 1, "maximum": readers.MAX_BOUNDS[name]},
            always,
        )
        for name, about in (
            ("connections", "open connections at each door"),
            ("idle_seconds", "seconds without a byte until a connection is closed"),
            (
                "log_megabytes",
                "size of one file of the audit log; seven are kept. It does not apply to `audit.log`",
            ),
        )
    },
    "session": {
        "name": Key(
            "name",
            readers.text("a name as a string"),
            "the session's name",
            TEXT,
            always,  # a name is an origin in browsers, and what `stop` and `open` look for
            options=("name",),
            default_text="from the folder and its branch",
        )
    },
    "audit": {
        "log": Key(
            "audit_log",
            readers.path,
            "the path of the audit log",
            TEXT,
            always,
            options=("audit-log",),
            default_text="in the state folder",
        )
    },
}
