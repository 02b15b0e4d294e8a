"""Readers of keys. Each takes an entry and returns its checked value, or raises a `UsageError` with file and line."""

from __future__ import annotations

import os

from netsandbox_portmap import DNS_PORT, window
from netsandbox_portmap import localhost_settings as localhost

from netsandbox.backends import AUTO, BACKENDS
from netsandbox.backends.seatbelt.profile.switches import check_word
from netsandbox.config.key import too_long
from netsandbox.config.paths import folder_of, is_profile_name
from netsandbox.errors import UsageError
from netsandbox.paths import home, working_folder
from netsandbox.policy import rules
from netsandbox.policy.file_rules import FILE_MODES, PathRule, path_rule
from netsandbox.policy.limits import parse_limits
from netsandbox.policy.names import BadName, canonical
from netsandbox.policy.policy import MODES, AddressRule, DomainRule
from netsandbox.policy.rules import parse_address, parse_domain, read_port
from netsandbox.policy.variables import check_name, check_pattern
from netsandbox.settings import MAX_WAIT, WAIT, Bounds
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.config.key import Entry

    Texts = tuple[tuple[str, str], ...]  # each with its origin

MAX_BOUNDS = {"connections": 16384, "idle_seconds": 7 * 86400, "log_megabytes": 4096}
HOSTS, REQUESTS = '["api.example.com"]', '["GET https://api.example.com/v1/**"]'
EXECUTE = ("any", "listed")
POOL = str(list(window.POOL))  # as it is written in the file


def mode(entry: Entry) -> str:
    return _mode_among(MODES, entry)


def files_mode(entry: Entry) -> str:
    return _mode_among(FILE_MODES, entry)


def backend(entry: Entry) -> str:
    return _mode_among((AUTO, *BACKENDS), entry, "backend")


def _mode_among(modes: tuple[str, ...], entry: Entry, what: str = "mode") -> str:
    listed = ", ".join(modes)
    name = entry.text(f"one of {listed} as a string")
    if name not in modes:
        raise UsageError(f"{entry.origin()}: {what} {quoted(name)} is unknown; write one of {listed}")
    return name


def allow_domains(entry: Entry) -> tuple[DomainRule, ...]:
    return tuple(parse_domain(text, origin) for text, origin in entry.items(str, '["example.com"]'))


def deny_domains(entry: Entry) -> tuple[DomainRule, ...]:
    return tuple(parse_domain(text, origin, deny=True) for text, origin in entry.items(str, '["example.com"]'))


def allow_addresses(entry: Entry) -> tuple[AddressRule, ...]:
    return tuple(parse_address(text, origin) for text, origin in entry.items(str, '["192.0.2.7:5432"]'))


def allow_http(entry: Entry) -> Texts:
    from netsandbox.policy.http_rules import parse_http

    return _checked(entry, REQUESTS, parse_http)


def deny_http(entry: Entry) -> Texts:
    from netsandbox.policy.http_rules import parse_http

    return _checked(entry, REQUESTS, lambda text, origin: parse_http(text, origin, deny=True))


def inspected_hosts(entry: Entry) -> Texts:
    """Patterns of names, or `*` for every name."""
    from netsandbox.policy.inspection import parse_host

    return _checked(entry, HOSTS, parse_host)


def hosts(entry: Entry) -> Texts:
    """Patterns of names."""
    return _checked(entry, HOSTS, lambda text, origin: parse_domain(text, origin, deny=True))


def secrets(entry: Entry) -> Texts:
    """Their values are read when a session starts."""
    from netsandbox.policy.secret_rules import parse_secret

    return _checked(entry, '["GITHUB_TOKEN@api.example.com"]', parse_secret)


def budgets(entry: Entry) -> Texts:
    from netsandbox.policy.budgets import parse_budget

    return _checked(entry, '["example.com=10MB"]', parse_budget)


def _checked(entry: Entry, wanted: str, parse: Callable[[str, str], object]) -> Texts:
    """Each text with its line; checked here, and parsed again by a session that has any."""
    found = tuple(entry.items(str, wanted))
    for text, origin in found:
        parse(text, origin)
    return found


def default_ports(entry: Entry) -> tuple[int, ...]:
    return rules.ports([port for port, _ in entry.items(int, "[80, 443]")], entry.origin())


def allow_unix_sockets(entry: Entry) -> tuple[str, ...]:
    """`~` is the user's home, `$XDG_RUNTIME_DIR` the folder of that variable, `$SSH_AUTH_SOCK` the socket of an agent;
    without the variable there is no such socket."""
    listed = [(_placed(text), origin) for text, origin in entry.items(str, '["/run/example.sock"]')]
    return tuple(path for text, origin in listed if text for path in rules.unix_sockets([text], origin))


def _placed(path: str) -> str:
    variable, slash, rest = path.partition("/")
    if not (path == "$SSH_AUTH_SOCK" or (variable == "$XDG_RUNTIME_DIR" and slash)):
        return os.path.expanduser(path) or "."
    place = os.environ.get(variable[1:], "")
    return f"{place}{slash}{rest}" if place.startswith("/") else ""


def allow_query_types(entry: Entry) -> tuple[str, ...]:
    listed = entry.items(str, '["TXT"]')
    return tuple(name for text, origin in listed for name in rules.query_types([text], origin))


def upstream_dns(entry: Entry) -> tuple[str, ...]:
    if not (servers := entry.items(str, '["192.0.2.53"]')):
        raise UsageError(f"{entry.origin()}: the list is empty; write at least one server, or leave upstream_dns out")
    for text, origin in servers:
        name_server(text, origin)
    return tuple(text for text, _ in servers)


def upstream_proxy(entry: Entry) -> str:
    return check_proxy(entry.text('"http://proxy.example.com:3128"'), entry.origin())


def execute(entry: Entry) -> str:
    return _mode_among(EXECUTE, entry)


def limits(entry: Entry) -> Texts:
    return _checked(entry, '["memory=2G", "processes=500"]', lambda text, origin: parse_limits([(text, origin)]))


def devices(entry: Entry) -> tuple[tuple[str, str], ...]:
    """They are looked up when a session starts: not every machine has each of them."""
    return tuple(entry.items(str, '["/dev/kvm"]'))


def until(entry: Entry) -> tuple[tuple[str, int], ...]:
    from netsandbox.config.ending_rules import read_end

    wanted = '["2026-11-18T09:30:00Z example.com:443"]'
    found = []
    for text, origin in entry.items(str, wanted):
        try:
            found.append(read_end(text))
        except (ValueError, OverflowError):
            raise UsageError(
                f"{origin}: {quoted(text)} is not a time and a rule; write for instance {wanted}"
            ) from None
    return tuple(found)


def truth(entry: Entry) -> bool:
    return entry.truth()


def path(entry: Entry) -> str:
    """`~` is the user's home; a relative path begins at the folder in which the command runs."""
    return os.path.expanduser(entry.text("a path as a string"))


def paths(entry: Entry) -> tuple[PathRule, ...]:
    """`~` is the user's home; a relative path begins at the folder of the file."""
    base = folder_of(entry.path)
    return tuple(path_rule(_of_folder(text), origin, base, home) for text, origin in entry.items(str, '["~/.cache"]'))


def _of_folder(text: str) -> str:
    """`{folder}` is the working folder as agents call it where they keep something for each project."""
    if "{folder}" not in text:
        return text
    here = working_folder() or "/"
    return text.replace("{folder}", "".join(char if char.isascii() and char.isalnum() else "-" for char in here))


def text(wanted: str) -> Callable[[Entry], str]:
    return lambda entry: entry.text(wanted)


def checked_text(read: Callable[[str, str], str], wanted: str) -> Callable[[Entry], str]:
    return lambda entry: read(entry.text(wanted), entry.origin())


def number(read: Callable[[str, str], int]) -> Callable[[Entry], int]:
    def checked(entry: Entry) -> int:
        if type(entry.value) is not int or too_long(entry.value):
            raise entry.wrong("a number")
        return read(str(entry.value), entry.origin())

    return checked


def port_pool(entry: Entry) -> tuple[int, int]:
    ports = [port for port, _ in entry.items(int, POOL)]
    if len(ports) != 2:
        raise UsageError(f"{entry.origin()}: port_pool is a first and a last port; write {POOL}")
    try:
        window.check_pool(*ports)
    except window.WindowError as error:
        raise UsageError(f"{entry.origin()}: {error}, for instance {POOL}") from None
    return ports[0], ports[1]


def publish(entry: Entry) -> tuple[tuple[int, int | None], ...]:
    return localhost.publications([port for port, _ in entry.items(str, '["3000", "8080:9000"]')], entry.origin())


def connect_host(entry: Entry) -> tuple[localhost.HostPort, ...]:
    wanted = '[5432, "5432:6432", "db:5432"]'
    return localhost.host_ports([str(port) for port, _ in entry.items((int, str), wanted)], entry.origin())


def bound(name: str) -> Callable[[Entry], int]:
    most, default = MAX_BOUNDS[name], getattr(Bounds(), name)

    def checked(text: str, origin: str) -> int:
        if not (text.isdigit() and 1 <= int(text) <= most):
            raise UsageError(f"{origin}: {name} is a number from 1 to {most}; write one, such as {default}")
        return int(text)

    return number(checked)


def waiting(text: str, origin: str) -> int:
    """Seconds for which a request waits for the user's approval."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MAX_WAIT):
        raise UsageError(f"{origin}: {quoted(text)} is not a number of seconds from 1 to {MAX_WAIT}; write {WAIT}")
    return int(text)


def variables(entry: Entry) -> tuple[str, ...]:
    return tuple(check_pattern(name, origin) for name, origin in entry.items(str, '["GITHUB_TOKEN", "AWS_*"]'))


def set_env(entry: Entry) -> tuple[tuple[str, str], ...]:
    return tuple((check_name(name, origin), value) for name, value, origin in entry.pairs('{ NODE_ENV = "test" }'))


def switches(entry: Entry) -> tuple[str, ...]:
    return tuple(check_word(name, origin) for name, origin in entry.items(str, '["trustd", "no-debug"]'))


def raw(entry: Entry) -> tuple[tuple[str, str], ...]:
    """The rules are checked when a Mac's profile is generated, and by `netsandbox profile lint`."""
    return ((entry.text("rules as a string, such as '(deny file-read* (subpath \"/opt\"))'"), entry.origin()),)


def name_server(text: str, origin: str) -> tuple[str, int]:
    """Address and port of `ADDRESS[:PORT]`, IPv6 with a port in brackets."""
    rule = parse_address(text, origin)
    if not rule.exact or rule.ports == ():
        raise UsageError(f"{origin}: {quoted(text)} is not one server; write 192.0.2.53 or 192.0.2.53:5353")
    return rule.network.text, rule.ports[0] if rule.ports else DNS_PORT


def check_proxy(url: str, origin: str) -> str:
    """*url* if it is `http://[USER:PASSWORD@]HOST:PORT`."""
    scheme, _, rest = url.partition("://")
    authority = rest.removesuffix("/")
    host, _, port = authority.rpartition("@")[2].rpartition(":")
    try:
        canonical(host)
    except BadName:
        port = ""
    if scheme.lower() != "http" or read_port(port) is None or any(char in authority for char in "/?#\\ "):
        raise UsageError(f"{origin}: the upstream proxy is not a proxy's URL; write http://proxy.example.com:3128")
    return url


def profile_names(entry: Entry) -> tuple[tuple[str, str], ...]:
    """Each name with its line."""
    return tuple((check_profile(name, origin), origin) for name, origin in entry.items(str, '["node", "git"]'))


def detection(entry: Entry) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Each profile with the files that it is detected by, and its line."""
    if not isinstance(entry.value, dict):
        raise entry.wrong('{ node = ["package.json"] }')
    return tuple(
        (check_profile(name, origin), relative_files(entry.below(name)), origin)
        for name in entry.value
        if (origin := entry.origin(name))
    )


def relative_files(entry: Entry) -> tuple[str, ...]:
    for path, origin in (files := entry.items(str, '["package.json"]')):
        if not path or path.startswith("/") or "\0" in path or ".." in path.split("/") or "*" in path:
            raise UsageError(f"{origin}: {quoted(path)} is not a file of a project; write one such as package.json")
    return tuple(path for path, _ in files)


def check_profile(name: str, origin: str) -> str:
    """*name* if it is a valid name of a profile."""
    if not is_profile_name(name):
        raise UsageError(f"{origin}: {quoted(name)} is not the name of a profile; use letters, digits, - and _")
    return name
