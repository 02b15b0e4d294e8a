"""Every key of a configuration file: its reader, how values of several layers are merged, and which values need trust.

This table is the only source for reading, merging, trust, the JSON Schema and the tables of docs/configuration.md.
"""

from __future__ import annotations

from netsandbox_portmap import STRATEGIES, default_strategy
from netsandbox_portmap import localhost_settings as localhost

from netsandbox.backends import BACKENDS
from netsandbox.backends.seatbelt.profile import switches
from netsandbox.config import key as keys
from netsandbox.config import readers
from netsandbox.config.key import PORT, PORTS, PORTS_OR_TEXTS, TEXT, TEXTS, TRUTH, Key, always, never
from netsandbox.frozen import copy_with
from netsandbox.policy.file_rules import FILE_MODES
from netsandbox.policy.policy import MODES
from netsandbox.settings import MAX_WAIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Reader = Callable[[keys.Entry], object]
    Widens = Callable[[object], bool]


def _rules(field: str, read: Reader, about: str, *options: str, widens: Widens = bool) -> Key:
    """A list of texts, to which each file adds."""
    return Key(field, read, about, TEXTS, widens, adds=True, options=options)


def _switch(field: str, about: str, widens: Widens, *options: str, default: str = "") -> Key:
    """`true` or `false`."""
    return Key(field, readers.truth, about, TRUTH, widens, options=options, default_text=default)


def _text(field: str, read: Reader, about: str, *options: str, default: str = "") -> Key:
    """A text that takes effect only in a trusted file."""
    return Key(field, read, about, TEXT, always, options=options, default_text=default)


def _choice(read: Reader, about: str, values: Iterable[str], **more: object) -> Key:
    """One of a few texts."""
    return Key(read=read, about=about, schema={"enum": list(values)}, **more)  # type: ignore[arg-type]


def _number(read: Reader, about: str, most: int, **more: object) -> Key:
    """A number from 1 to *most*."""
    schema = {"type": "integer", "minimum": 1, "maximum": most}
    return Key(read=read, about=about, schema=schema, **more)  # type: ignore[arg-type]


def _alias(table: str, name: str, key: Key) -> Key:
    """Another spelling of a key."""
    return copy_with(key, about=f"the same as `{table}.{name}`", alias_of=(table, name), options=(), default_text="")


_MODE = _choice(
    readers.mode,
    "what is allowed if no rule matches",
    MODES,
    field="mode",
    widens=keys.opens_the_network,
    options=("offline", "localhost", "filtered", "online"),
    default_text='`"offline"`; `"filtered"` if any name or address is allowed',
)
_PROFILES = _rules("", readers.profile_names, "profiles to use below this file", "profile", widens=keys.names_opening)
_LOG = _text(
    "audit_log",
    readers.path,
    "the path of the audit log; of two sessions at once the second writes a file beside it",
    "audit-log",
    default="in the state folder",
)

KEYS: dict[str, dict[str, Key]] = {
    "sandbox": {
        "network": _alias("network", "mode", _MODE),
        "default_network": _alias("network", "mode", _MODE),
        "inherit_global": _switch(
            "", "`false` in a project's file ignores your own file", keys.leaves_the_user_out, default="`true`"
        ),
        "profiles": _PROFILES,
        "default_profiles": _alias("sandbox", "profiles", _PROFILES),
        "shell": _text("shell", readers.path, "the program to run without a command", default="`$SHELL`"),
        "prompt_indicator": _switch("prompt_indicator", "show the mode in the prompt of that shell", never),
        "log_file": _alias("audit", "log", _LOG),
        "backend": _choice(
            readers.backend,
            "how the command is confined; `auto` takes the strongest that the machine can make",
            ("auto", *BACKENDS),
            field="backend",
            widens=keys.weakens_the_backend,
            options=("backend",),
            default_text='`"auto"`',
        ),
    },
    "network": {
        "mode": _MODE,
        "allow_domains": _rules("allow_domains", readers.allow_domains, "allowed names", "allow-domain"),
        "deny_domains": _rules(
            "deny_domains", readers.deny_domains, "denied names; wins over every allow", "deny-domain", widens=never
        ),
        "allow_addresses": _rules(
            "allow_addresses", readers.allow_addresses, "allowed addresses, private ones included", "allow-address"
        ),
        "allow_http": _rules("allow_http", readers.allow_http, "the only requests to their hosts", "allow-http"),
        "deny_http": _rules(
            "deny_http", readers.deny_http, "denied requests; wins over every allow", "deny-http", widens=never
        ),
        "inspect": _rules(
            "inspect",
            readers.inspected_hosts,
            "hosts whose requests are recorded; `*` is every host",
            "inspect",
            widens=never,
        ),
        "inspect_except": _rules("inspect_except", readers.hosts, "hosts that are never inspected", "inspect-except"),
        "secrets": _rules("secrets", readers.secrets, "variables whose value stays outside, and its hosts", "secret"),
        "budgets": _rules(
            "budgets",
            readers.budgets,
            'bytes that hosts may send and get: `["example.com=10MB,up=1MB"]`; without a host, the whole session',
            "budget",
            widens=never,
        ),
        "default_ports": Key(
            "default_ports", readers.default_ports, "the ports of a rule without a port", PORTS, always
        ),
        "allow_unix_sockets": _rules(
            "allow_unix_sockets",
            readers.allow_unix_sockets,
            "Unix sockets of the host that the command may connect to",
            "allow-unix-socket",
        ),
        "allow_query_types": _rules(
            "allow_query_types",
            readers.allow_query_types,
            "DNS query types that are forwarded for allowed names",
            "allow-query-type",
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
        "upstream_proxy": _text(
            "upstream_proxy", readers.upstream_proxy, "the HTTP proxy for all outgoing connections", "upstream-proxy"
        ),
        "proxy_env": _switch("proxy_env", "set the proxy variables", never, "no-proxy-env"),
    },
    "filesystem": {
        "mode": _choice(
            readers.files_mode,
            "`project`: the project, the system and toolchains are there, nothing else of the home; `readable`: every"
            " file but secrets can be read; `open`: and written",
            FILE_MODES,
            field="files_mode",
            widens=keys.opens_files,
            options=("files",),
        ),
        "share_tmp": _switch("share_tmp", "use the host's /tmp and /var/tmp, not own ones", bool, "share-tmp"),
        "allow_read": _rules(
            "allow_read", readers.paths, "paths that are shown, with everything below, secrets too", "allow-read"
        ),
        "allow_write": _rules(
            "allow_write",
            readers.paths,
            "writable paths, besides the project and the temporary folders",
            *("allow-write", "rw"),
        ),
        "cache": _rules(
            "caches",
            readers.paths,
            "folders that are shown, and whose changes are kept for the project instead of written to the host",
        ),
        "copy": _rules(
            "copies",
            readers.paths,
            "folders that are shown, and of which a session changes a copy that is kept for the project; on a Mac, and"
            " with `readable`, they are read-only",
        ),
        "deny_read": _rules(
            "deny_read",
            readers.paths,
            "hidden paths; wins over every allow",
            *("deny-read", "blacklist"),
            widens=never,
        ),
        "deny_write": _rules(
            "deny_write",
            readers.paths,
            "paths that stay read-only inside of what is writable",
            "deny-write",
            widens=never,
        ),
        "allow_execute": _rules(
            "allow_execute",
            readers.paths,
            "programs, or folders of programs, that may be executed: on a Mac besides the usual ones, on Linux if"
            ' `execute` is `"listed"`',
            "allow-execute",
        ),
        "execute": _choice(
            readers.execute,
            'on Linux: `"listed"` lets nothing be executed but the command and `allow_execute`',
            readers.EXECUTE,
            field="execute",
            widens=lambda value: value == "any",
        ),
    },
    "processes": {
        "limit": _rules(
            "limits",
            readers.limits,
            'limits of all processes: `["memory=2G", "processes=500", "cpu=200%"]`; the last value of a name counts',
            "limit",
            widens=always,
        ),
        "debug": _switch("debug", "`false`: no program inside may read or trace another one", bool, "no-debug"),
        "allow_devices": _rules(
            "allow_devices", readers.devices, "devices of the host that are opened: `/dev/kvm`", "allow-device"
        ),
    },
    "localhost": {
        "network_strategy": _choice(
            readers.checked_text(localhost.strategy, '"isolate"'),
            "how the host sees ports of the session",
            STRATEGIES,
            field="strategy",
            widens=always,
            options=("network-strategy",),
            default_text=f'`"{default_strategy("linux")}"`, on a Mac `"{default_strategy("darwin")}"`',
        ),
        "rewrite_engine": _choice(
            readers.checked_text(localhost.engine, '"kernel"'),
            "what rewrites ports: the kernel's side, or a library in the command",
            localhost.ENGINES,
            field="engine",
            widens=never,
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
        "listening_port_count": _number(
            readers.number(localhost.port_count),
            "number of ports in the window",
            localhost.MAX_PORTS,
            field="count",
            widens=never,
            options=("listening-port-count",),
            default_text="`100`, or fewer where there is no room",
        ),
        "listening_loopback": _text(
            "device",
            readers.checked_text(localhost.device, '"127.0.0.2"'),
            "the session's loopback address",
            "listening-loopback",
        ),
        "port_pool": Key("pool", readers.port_pool, "the first and the last port for windows", PORTS, always),
        "gateway_port": Key(
            "gateway_port",
            readers.number(localhost.gateway_port),
            "the port of the host's localhost where names of sessions are served",
            PORT,
            always,
            options=("gateway-port",),
            default_text=f"`{localhost.GATEWAY_PORT}`",
        ),
        "keep_host": _switch(
            "keep_host",
            "`true` shows servers the Host that was opened, such as `shop.localhost:7878`",
            never,
            "keep-host",
            default="`false`: they see `localhost:PORT`",
        ),
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
            "ports of the host's localhost, or of another session, that the command may reach",
            PORTS_OR_TEXTS,
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
        "clean_env": _switch(
            "clean_env",
            "pass only `PATH`, `HOME`, `TERM`, `LANG` and the like, and variables of `pass_env`",
            keys.passes_more,
            "clean-env",
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
        "raw": Key("raw", readers.raw, "rules in Seatbelt's language, for a Mac", TEXT, always, adds=True),
    },
    "profiles": {
        "auto_detect": _switch(
            "", "choose profiles by the project's files and the command", bool, "no-detect", default="`true`"
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
        "ask": _switch("ask", "ask you about names that no rule allows, instead of refusing them", bool, "ask"),
        "files": _switch("ask_files", "ask you about files that the session does not see (Linux)", bool, "ask"),
        "notify": _switch("notify", "show questions on your desktop too, by notify-send or osascript", never),
        "until": _rules("", readers.until, "rules of this file that end, each a time and a rule", widens=never),
        "wait": _number(
            readers.number(readers.waiting),
            "seconds that a connection waits for your answer",
            MAX_WAIT,
            field="ask_wait",
            widens=always,
            options=("ask-wait",),
        ),
    },
    "limits": {
        name: _number(readers.bound(name), about, readers.MAX_BOUNDS[name], field=name, widens=always)
        for name, about in (
            ("connections", "open connections at each door"),
            ("idle_seconds", "seconds without a byte until a connection is closed"),
            ("log_megabytes", "size of one file of the audit log; seven are kept. It does not apply to `audit.log`"),
        )
    },
    "session": {
        "name": _text(  # a name is an origin in browsers, and what `stop` and `open` look for
            "name",
            readers.text("a name as a string"),
            "the session's name",
            "name",
            default="from the folder and its branch",
        )
    },
    "audit": {
        "log": _LOG,
        "record_query": _switch(
            "record_query", "record the queries of inspected requests too, without credentials", bool, "record-query"
        ),
    },
}
