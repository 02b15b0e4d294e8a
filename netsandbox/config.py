"""The configuration file: TOML in, checked settings out.

Rules kept: a file that cannot be read, an unknown table or key, a value of the wrong type and a rule that is not
plainly one are each an error that names file and line, and the command never starts; nothing is skipped, guessed or
defaulted because it was misspelled. Every rule carries `file:line` as its origin. An empty list allows nothing (INV-6).
"""

from __future__ import annotations

from netsandbox_portmap import window

from netsandbox.errors import UsageError
from netsandbox.localhost import settings as localhost
from netsandbox.localhost.settings import LocalhostSettings
from netsandbox.policy import rules
from netsandbox.policy.names import BadName, canonical, printable
from netsandbox.policy.patterns import AddressRule, DomainRule, parse_address, parse_domain, read_port
from netsandbox.policy.policy import DEFAULT_PORTS, MODES
from netsandbox.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

SIZE_LIMIT = 64 * 1024 * 1024
POOL = str(list(window.POOL))  # as it is written in the file


@record
class Settings:
    """What a configuration file says; `Settings()` is what no file says."""

    path: str | None = None
    mode: str | None = None
    allow_domains: tuple[DomainRule, ...] = ()
    deny_domains: tuple[DomainRule, ...] = ()
    allow_addresses: tuple[AddressRule, ...] = ()
    default_ports: tuple[int, ...] = DEFAULT_PORTS
    allow_unix_sockets: tuple[str, ...] = ()
    allow_query_types: tuple[str, ...] = ()
    upstream_dns: tuple[str, ...] = ()
    upstream_proxy: str | None = None
    proxy_env: bool = True
    audit_log: str | None = None
    name: str | None = None
    localhost: LocalhostSettings = LocalhostSettings()


def load(path: str) -> Settings:
    """Read and check the file at *path*; `UsageError` for anything wrong with it."""
    text = _read(path)
    document = _parse(path, text)
    if not document:
        raise UsageError(f"{path}: the file says nothing; write a [network] table, or leave out --config")
    from netsandbox.source_lines import locate

    lines = locate(text)
    values: dict[str, Any] = {"path": path}
    own: dict[str, Any] = {}  # of the [localhost] table
    for table, content in document.items():
        place = f"{path}:{lines.get((table,), 1)}"
        keys = _TABLES.get(table)
        if keys is None:
            raise UsageError(f"{place}: {_unknown('table', table, _TABLES)}")
        if not isinstance(content, dict):
            raise UsageError(f"{place}: {table} is not a table; write [{table}] on a line of its own")
        for key, value in content.items():
            entry = _Entry(path, (table, key), value, lines)
            if key not in keys:
                raise UsageError(f"{entry.origin()}: {_unknown('key', key, keys)}")
            field, read = keys[key]
            (own if table == "localhost" else values)[field] = read(entry)
    return Settings(**values, localhost=LocalhostSettings(**own, chosen="strategy" in own))


class _Entry:
    """One key of the file, its value, and the lines they stand on."""

    def __init__(
        self, path: str, key: tuple[str, str], value: object, lines: Mapping[tuple[str | int, ...], int]
    ) -> None:
        self.path = path
        self.key = key
        self.value = value
        self.lines = lines

    def origin(self, index: int | None = None) -> str:
        place = self.key if index is None else (*self.key, index)
        return f"{self.path}:{self.lines.get(place, 1)}"

    def wrong(self, wanted: str, index: int | None = None) -> UsageError:
        return UsageError(f"{self.origin(index)}: {self.key[1]} has a value of the wrong type; write {wanted}")

    def items(self, kind: type, wanted: str) -> list[tuple[Any, str]]:
        """Each item of a list with its origin."""
        if not isinstance(self.value, list):
            raise self.wrong(wanted)
        for index, item in enumerate(self.value):
            if type(item) is not kind or _too_long(item):
                raise self.wrong(wanted, index)
        return [(item, self.origin(index)) for index, item in enumerate(self.value)]

    def text(self, wanted: str) -> str:
        if not isinstance(self.value, str) or not self.value or "\0" in self.value:
            raise self.wrong(wanted)
        return self.value


def _too_long(value: object) -> bool:
    """Longer than TOML's 64 bits: Python refuses to write such numbers down."""
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63


def _mode(entry: _Entry) -> str:
    mode = entry.text(f"one of {', '.join(MODES)} as a string")
    if mode not in MODES:
        raise UsageError(f"{entry.origin()}: mode {printable(mode)} is unknown; write one of {', '.join(MODES)}")
    return mode


def _allow_domains(entry: _Entry) -> tuple[DomainRule, ...]:
    return tuple(parse_domain(text, origin) for text, origin in entry.items(str, '["example.com"]'))


def _deny_domains(entry: _Entry) -> tuple[DomainRule, ...]:
    return tuple(parse_domain(text, origin, deny=True) for text, origin in entry.items(str, '["example.com"]'))


def _allow_addresses(entry: _Entry) -> tuple[AddressRule, ...]:
    return tuple(parse_address(text, origin) for text, origin in entry.items(str, '["192.0.2.7:5432"]'))


def _default_ports(entry: _Entry) -> tuple[int, ...]:
    return rules.ports([port for port, _ in entry.items(int, "[80, 443]")], entry.origin())


def _allow_unix_sockets(entry: _Entry) -> tuple[str, ...]:
    listed = entry.items(str, '["/run/example.sock"]')
    return tuple(path for text, origin in listed for path in rules.unix_sockets([text], origin))


def _allow_query_types(entry: _Entry) -> tuple[str, ...]:
    listed = entry.items(str, '["TXT"]')
    return tuple(name for text, origin in listed for name in rules.query_types([text], origin))


def _upstream_dns(entry: _Entry) -> tuple[str, ...]:
    return tuple(check_server(text, origin) for text, origin in entry.items(str, '["192.0.2.53"]'))


def _upstream_proxy(entry: _Entry) -> str:
    return check_proxy(entry.text('"http://proxy.example.com:3128"'), entry.origin())


def _proxy_env(entry: _Entry) -> bool:
    if not isinstance(entry.value, bool):
        raise entry.wrong("true or false")
    return entry.value


def _name(entry: _Entry) -> str:
    return entry.text("a name as a string")


def _log(entry: _Entry) -> str:
    return entry.text("a path as a string")


def _word(read: Callable[[str, str], str], wanted: str) -> Callable[[_Entry], str]:
    return lambda entry: read(entry.text(wanted), entry.origin())


def _number(read: Callable[[str, str], int]) -> Callable[[_Entry], int]:
    def checked(entry: _Entry) -> int:
        if type(entry.value) is not int or _too_long(entry.value):
            raise entry.wrong("a number")
        return read(str(entry.value), entry.origin())

    return checked


def _pool(entry: _Entry) -> tuple[int, int]:
    ports = [port for port, _ in entry.items(int, POOL)]
    if len(ports) != 2:
        raise UsageError(f"{entry.origin()}: port_pool is a first and a last port; write {POOL}")
    try:
        window.check_pool(*ports)
    except window.WindowError as error:
        raise UsageError(f"{entry.origin()}: {error}, for instance {POOL}") from None
    return ports[0], ports[1]


def _publish(entry: _Entry) -> tuple[tuple[int, int | None], ...]:
    return localhost.publications([text for text, _ in entry.items(str, '["3000", "8080:9000"]')], entry.origin())


def _connect_host(entry: _Entry) -> tuple[int, ...]:
    return localhost.host_ports([str(port) for port, _ in entry.items(int, "[5432]")], entry.origin())


def check_server(text: str, origin: str) -> str:
    """*text* if it is `ADDRESS[:PORT]` of one name server, IPv6 with a port in brackets."""
    rule = parse_address(text, origin)
    if not rule.exact or rule.ports == ():
        raise UsageError(f"{origin}: {printable(text)} is not one server; write 192.0.2.53 or 192.0.2.53:5353")
    return text


def check_proxy(text: str, origin: str) -> str:
    """*text* if it is `http://[USER:PASSWORD@]HOST:PORT`."""
    scheme, _, rest = text.partition("://")
    authority = rest.removesuffix("/")
    host, _, port = authority.rpartition("@")[2].rpartition(":")
    try:
        canonical(host)
    except BadName:
        port = ""
    if scheme.lower() != "http" or read_port(port) is None or any(char in authority for char in "/?#\\ "):
        raise UsageError(f"{origin}: the upstream proxy is not a proxy's URL; write http://proxy.example.com:3128")
    return text


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: cannot read the configuration: {reason}; check the path after --config") from None
    if len(data) > SIZE_LIMIT:
        raise UsageError(f"{path}: larger than {SIZE_LIMIT} bytes; check the path after --config")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from None


def _parse(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        what, _, place = str(error).partition(" (at line ")
        line = f":{place.partition(',')[0]}" if place else ""
        raise UsageError(f"{path}{line}: invalid TOML: {printable(what)[1:-1]}; correct the file") from None
    except ValueError:  # Python reads no number of thousands of digits
        raise UsageError(f"{path}: invalid TOML: a number without end; correct the file") from None


def _unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
    return f"unknown {kind} {printable(name)}; {advice}"


_TABLES: dict[str, dict[str, tuple[str, Callable[[_Entry], object]]]] = {
    "network": {
        "mode": ("mode", _mode),
        "allow_domains": ("allow_domains", _allow_domains),
        "deny_domains": ("deny_domains", _deny_domains),
        "allow_addresses": ("allow_addresses", _allow_addresses),
        "default_ports": ("default_ports", _default_ports),
        "allow_unix_sockets": ("allow_unix_sockets", _allow_unix_sockets),
        "allow_query_types": ("allow_query_types", _allow_query_types),
        "upstream_dns": ("upstream_dns", _upstream_dns),
        "upstream_proxy": ("upstream_proxy", _upstream_proxy),
        "proxy_env": ("proxy_env", _proxy_env),
    },
    "localhost": {
        "network_strategy": ("strategy", _word(localhost.strategy, '"isolate"')),
        "rewrite_engine": ("engine", _word(localhost.engine, '"kernel"')),
        "listening_base_port": ("base", _number(localhost.base_port)),
        "listening_port_count": ("count", _number(localhost.port_count)),
        "listening_loopback": ("device", _word(localhost.device, '"127.0.0.2"')),
        "port_pool": ("pool", _pool),
        "publish": ("publish", _publish),
        "connect_host": ("connect_host", _connect_host),
    },
    "session": {"name": ("name", _name)},
    "audit": {"log": ("audit_log", _log)},
}
