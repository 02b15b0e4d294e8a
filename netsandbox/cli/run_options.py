"""The options that make a session's policy and settings, shared by `run`, `explain` and `learn`."""

from __future__ import annotations

import os

from netsandbox_portmap import STRATEGIES, default_strategy
from netsandbox_portmap import localhost_settings as localhost

from netsandbox.config.paths import DESCRIPTORS, project_files, user_files
from netsandbox.errors import UsageError
from netsandbox.paths import config_home, home, working_folder
from netsandbox.policy.file_rules import FILE_MODES, FileRules, path_rule
from netsandbox.policy.variables import Layer, VariableRules, check_pattern
from netsandbox.runtime.option_parser import DOMAINS, FLAG, LIST, PROFILES, SWITCHES, VALUE, VARIABLES, Option
from netsandbox.settings import Bounds, RunSettings
from netsandbox.system import IS_MACOS, NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox_portmap.localhost_settings import LocalhostSettings

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.file_rules import PathRule
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.option_parser import Parsed

PATH_OPTIONS = ("allow-read", "allow-write", "rw", "deny-read", "blacklist", "deny-write")
POLICY_OPTIONS = (
    Option(
        "allow-domain",
        LIST,
        "",
        "PATTERN",
        "allow this name: example.com, *.example.com, host:8443, a URL",
        DOMAINS,
    ),
    Option("deny-domain", LIST, "", "PATTERN", "deny this name; wins over every allow", DOMAINS),
    Option("allow-address", LIST, "", "CIDR[:PORT]", "allow this address, private ones included"),
    Option("allow-unix-socket", LIST, "", "PATH", "let the command connect to this socket of the host"),
    Option(
        "files",
        VALUE,
        "",
        "MODE",
        "project: project, system, toolchains; readable: all but secrets; open: writes too",
        FILE_MODES,
    ),
    Option("allow-read", LIST, "", "PATH", "show the command this file or folder, secrets too: ~/.ssh"),
    Option("allow-write", LIST, "", "PATH", "let the command read and write there"),
    Option("deny-read", LIST, "", "PATH", "hide this file or folder from the command; wins over every allow"),
    Option("deny-write", LIST, "", "PATH", "keep this read-only, inside of what the command may write"),
    Option("share-tmp", FLAG, "", "", "use this machine's /tmp; otherwise the session has its own"),
    Option("fresh-home", FLAG, "", "", "begin with an empty home, and throw it away at the end"),
    Option("rw", LIST, "", "PATH", "the same as --allow-write"),
    Option("blacklist", LIST, "", "PATH", "the same as --deny-read"),
    Option("allow-query-type", LIST, "", "TYPE", "forward DNS queries of this type for allowed names: TXT, MX"),
    Option("offline", FLAG, "", "", "nothing leaves (the default when nothing is allowed)"),
    Option("localhost", FLAG, "", "", "the same as --offline; the session's own localhost always works"),
    Option("online", FLAG, "", "", "allow everything except denied names, private addresses and DNS-over-HTTPS"),
    Option("config", VALUE, "c", "FILE", "read further rules and settings from this TOML file"),
    Option("no-config", FLAG, "", "", "ignore your configuration and the project's, and detect no profile"),
    Option(
        "profile",
        LIST,
        "p",
        "NAME",
        "use this profile; see `netsandbox profile list`. A name before -- does the same",
        PROFILES,
    ),
    Option("no-detect", FLAG, "", "", "do not choose profiles by the project's files"),
    Option(
        "pass-env",
        LIST,
        "",
        "NAME",
        "pass this variable although it looks like a secret: GITHUB_TOKEN",
        VARIABLES,
    ),
    Option(
        "seatbelt-switch",
        LIST,
        "",
        "NAME",
        "on macOS: open trustd, fsevents, …, or close one: no-debug",
        SWITCHES,
    ),
    Option("upstream-dns", LIST, "", "ADDRESS[:PORT]", "resolve names at this server, not by the host's resolv.conf"),
    Option("upstream-proxy", VALUE, "", "URL", "connect through this HTTP proxy: http://proxy.example.com:3128"),
)
MODES = ("offline", "localhost", "online")
PROCESSES = frozenset(("limit", "no-debug", "allow-device", "allow-execute"))
CLOSED = ("offline", "localhost")
ASKING = frozenset(("ask", "mode", "ask-wait"))
DYNAMIC, STATIC = "dynamic", "static"  # values of --mode
FILTERED = "filtered"  # as `policy.FILTERED`, which is loaded later than the command's environment is made


def read_config(parsed: Parsed) -> FileSettings | None:
    """The merged settings of the user's file, the project's, the file of --config and profiles; None without any."""
    user: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    detect = "no-config" not in parsed.flags and "no-detect" not in parsed.flags
    if "no-config" not in parsed.flags:
        user, project = user_files(), project_files()
    named = parsed.values.get("config")
    names = tuple(parsed.all("profile"))
    if not (user or project or names or detect) and named is None:
        return None
    from netsandbox.config.cache import ConfigSources, recall_settings

    here = working_folder() or ""
    sources = ConfigSources(here, home(), config_home(), user, project, named, names, detect, _mode(parsed, names))
    known = recall_settings(sources)
    if known is not None:
        return known[0]
    from netsandbox.config.effective import load

    return load(sources)


def _mode(parsed: Parsed, names: Sequence[str]) -> str | None:
    """The mode that the command line sets, by an option or by a profile's name."""
    given = [(mode, f"--{mode}") for mode in MODES if mode in parsed.flags]
    given += [(mode, mode) for mode in MODES if mode in names]
    if len({mode for mode, _ in given}) > 1:
        raise UsageError(f"{given[0][1]} and {given[1][1]} exclude each other; choose one")
    if not given:
        return None
    mode, written = given[0]
    if mode != "online" and (parsed.all("allow-domain") or parsed.all("allow-address")):
        raise UsageError(f"{written} lets nothing out, so --allow-… has no meaning with it; leave one of them out")
    return mode


def policy_of(parsed: Parsed, file: FileSettings | None) -> Policy:
    """The policy of the options and the files: lists add up, the command line's mode wins."""
    from netsandbox.policy.policy import Policy

    mode = _chosen_mode(parsed, file)
    closed = False
    if _asked(parsed, file)[0] is not None:
        closed, mode = mode in CLOSED, FILTERED  # in a closed mode everything is asked, whatever rules files have
    allow, addresses = parsed.all("allow-domain"), parsed.all("allow-address")
    unix_sockets, query_types = parsed.all("allow-unix-socket"), parsed.all("allow-query-type")
    if file is None:
        return Policy(
            allow,
            parsed.all("deny-domain"),
            addresses,
            mode=mode,
            allow_unix_sockets=unix_sockets,
            allow_query_types=query_types,
        )
    return Policy(
        [*(() if closed else file.allow_domains), *allow],
        [*file.deny_domains, *parsed.all("deny-domain")],
        [*(() if closed else file.allow_addresses), *addresses],
        mode=mode,
        default_ports=file.default_ports,
        allow_unix_sockets=[*file.allow_unix_sockets, *unix_sockets],
        allow_query_types=[*file.allow_query_types, *query_types],
    )


def mode_of(parsed: Parsed, file: FileSettings | None) -> str:
    """The mode of `policy_of`, which is made later than the command's environment."""
    if _asked(parsed, file)[0] is not None:
        return FILTERED
    mode = _chosen_mode(parsed, file)
    if mode is not None:
        return mode
    opened = parsed.all("allow-domain") or parsed.all("allow-address")
    return FILTERED if opened or (file and (file.allow_domains or file.allow_addresses)) else "offline"


def _chosen_mode(parsed: Parsed, file: FileSettings | None) -> str | None:
    return _mode(parsed, parsed.all("profile")) or (file.mode if file else None)


def _asked(parsed: Parsed, file: FileSettings | None) -> tuple[int | None, int | None]:
    """How many seconds a question about a name, and one about a file, waits for the user; None: nobody is asked."""
    if ASKING.isdisjoint((*parsed.flags, *parsed.values)) and not (file is not None and (file.ask or file.ask_files)):
        return None, None
    from netsandbox.cli.ask_options import asked

    return asked(parsed, file, _chosen_mode(parsed, file), _files(parsed, file).mode)


def settings_of(parsed: Parsed, file: FileSettings | None) -> RunSettings:
    """The other settings, such as the name servers and the path of the log."""
    servers = parsed.all("upstream-dns") or (list(file.upstream_dns) if file else [])
    proxy = parsed.values.get("upstream-proxy")
    if proxy is not None:
        from netsandbox.config.readers import check_proxy

        proxy = check_proxy(proxy, "--upstream-proxy")
    names, paths = _asked(parsed, file)
    log = parsed.values.get("audit-log") or os.environ.get("SANDBOX_AUDIT_LOG")
    made = RunSettings(
        upstream_dns=tuple(_server(text) for text in servers),
        upstream_proxy=proxy or (file.upstream_proxy if file else None),
        proxy_env="no-proxy-env" not in parsed.flags and (file is None or file.proxy_env),
        mode=mode_of(parsed, file),
        backend=parsed.values.get("backend"),
        unix_sockets=(*(file.allow_unix_sockets if file else ()), *parsed.all("allow-unix-socket")),
        variables=_variables(parsed, file),
        set_env=file.set_env if file else (),
        files=_files(parsed, file),
        audit_log=log or (file.audit_log if file else None),
        debug="debug" in parsed.flags,
        debug_log=os.path.abspath(parsed.values["debug-log"]) if parsed.values.get("debug-log") else None,
        configs=_configs(file.kept) if file else (),
        switches=_switches(parsed, file),
        raw=file.raw if file else (),
        name=_name(parsed, file),
        verbose="verbose" in parsed.flags,
        ask=names,
        ask_files=paths,
        bounds=file.bounds if file else Bounds(),
        localhost=localhost_of(parsed, file),
    )
    if (file is None or not file.has_process_rules) and PROCESSES.isdisjoint((*parsed.lists, *parsed.flags)):
        return made
    from netsandbox.cli.process_options import with_process_rules

    return with_process_rules(made, parsed, file)


def _configs(kept: Sequence[str]) -> tuple[str, ...]:
    """Files that the command must not write. For a descriptor it is the file behind it. A pipe of the shell, or the
    removed file of a here-document, has no name, so no command can replace it."""
    paths = [os.path.abspath(path) for path in kept]
    named = [os.path.realpath(path) if path.startswith(DESCRIPTORS) else path for path in paths]
    return tuple(path for path in named if path in paths or os.path.isfile(path))


def _variables(parsed: Parsed, file: FileSettings | None) -> tuple[Layer, ...]:
    layers = file.variables if file else ()
    passed = tuple(check_pattern(text, "--pass-env") for text in parsed.all("pass-env"))
    return (*layers, Layer(passed=passed)) if passed else layers


def _files(parsed: Parsed, file: FileSettings | None) -> FileRules:
    if file is None and parsed.lists.keys().isdisjoint(PATH_OPTIONS) and "files" not in parsed.values:
        return FileRules(share_tmp="share-tmp" in parsed.flags, fresh_home="fresh-home" in parsed.flags)
    return file_rules(parsed, file)


def _switches(parsed: Parsed, file: FileSettings | None) -> tuple[str, ...]:
    switches = file.switches if file else ()
    words = parsed.all("seatbelt-switch")
    if not words:
        return switches
    if not IS_MACOS and parsed.values.get("backend") != "seatbelt":
        raise UsageError(
            "--seatbelt-switch is about macOS; leave it out, or add --backend seatbelt and look at its profile"
        )
    from netsandbox.backends.seatbelt.profile.switches import check_word

    return (*switches, *(check_word(word, "--seatbelt-switch") for word in words))


def withheld_names(settings: RunSettings) -> list[str]:
    """The variables of this process that the command would not get."""
    from netsandbox.text import printable

    _, names = VariableRules(settings.variables).split(os.environb)
    return [printable(os.fsdecode(name)) for name in names]


def _name(parsed: Parsed, file: FileSettings | None) -> str | None:
    name = parsed.values.get("name", file.name if file else None)
    if name is not None:
        from netsandbox_portmap.session_name import check_name

        check_name(name)
    return name


def _server(text: str) -> tuple[str, int]:
    """ADDRESS or ADDRESS:PORT, IPv6 with a port in brackets."""
    from netsandbox.config.readers import check_server
    from netsandbox.policy.rules import parse_address

    rule = parse_address(check_server(text, "--upstream-dns"), "--upstream-dns")
    return rule.network.text, rule.ports[0] if rule.ports else 53


_DEFAULT = default_strategy(NAME)
_STRATEGIES = ", ".join(f"{name} (default)" if name == _DEFAULT else name for name in STRATEGIES)
LOCALHOST_OPTIONS = (
    Option("publish", LIST, "", "PORT[:HOSTPORT]", "publish this port on the host, and no other (default: all)"),
    Option("no-publish", FLAG, "", "", "publish no port"),
    Option("connect-host", LIST, "", "PORT", "let the command reach this port of the host's localhost"),
    Option("network-strategy", VALUE, "", "NAME", f"how the host sees ports: {_STRATEGIES}", STRATEGIES),
    Option(
        "rewrite-engine",
        VALUE,
        "",
        "NAME",
        "what rewrites ports: kernel (default), or preload, a library in the command",
        localhost.ENGINES,
    ),
    Option("listening-base-port", VALUE, "", "PORT", "the first port of the session's window of host ports"),
    Option("listening-port-count", VALUE, "", "N", "number of ports in the window (default: 100)"),
    Option("listening-loopback", VALUE, "", "IP", "the session's loopback address on the host, such as 127.0.0.2"),
)
NAMES = frozenset(option.name for option in LOCALHOST_OPTIONS)


def localhost_of(parsed: Parsed, file: FileSettings | None) -> LocalhostSettings:
    """The command line wins over the file; lists add up."""
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


def file_rules(parsed: Parsed, file: FileSettings | None) -> FileRules:
    """Lists add up; the mode of the command line wins."""
    from netsandbox.config.file_settings import FileSettings

    read, write, rw, hide, blacklist, keep = (_path_rules(parsed, name) for name in PATH_OPTIONS)
    known = file or FileSettings()
    mode = parsed.values.get("files", known.files_mode)
    if mode not in FILE_MODES:
        raise UsageError(f"--files: {mode!a} is no mode of files; write one of {', '.join(FILE_MODES)}")
    return FileRules(
        (*known.allow_read, *read),
        (*known.allow_write, *write, *rw),
        (*known.deny_read, *hide, *blacklist),
        known.allow_execute,
        (*known.deny_write, *keep),
        known.caches,
        mode,
        known.share_tmp or "share-tmp" in parsed.flags,
        "fresh-home" in parsed.flags,
    )


def _path_rules(parsed: Parsed, name: str) -> tuple[PathRule, ...]:
    texts = parsed.all(name)
    return tuple(path_rule(text, f"--{name}", _working_folder(), home) for text in texts)


def _working_folder() -> str:
    folder = working_folder()
    if folder is None:
        raise UsageError("the working folder does not exist any more; change to one that does")
    return folder
