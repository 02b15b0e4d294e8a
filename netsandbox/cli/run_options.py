"""The options that make a session's policy and settings, shared by `run`, `explain` and `learn`."""

from __future__ import annotations

import os

from netsandbox_portmap import STRATEGIES, default_strategy
from netsandbox_portmap import localhost_settings as localhost

from netsandbox.config.commands import selecting_name
from netsandbox.config.paths import DESCRIPTORS, organisation_files, project_files, user_files
from netsandbox.errors import UsageError
from netsandbox.paths import config_home, home, working_folder
from netsandbox.policy.file_rules import FILE_MODES, FileRules
from netsandbox.policy.variables import CLEAN, Layer, check_pattern
from netsandbox.runtime.option_parser import DOMAINS, FLAG, LIST, PROFILES, SWITCHES, VALUE, VARIABLES, Option
from netsandbox.settings import Bounds, RunSettings
from netsandbox.system import IS_MACOS, NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from netsandbox_portmap.localhost_settings import LocalhostSettings

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.budgets import BudgetRule
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.runtime.session_secrets import SessionSecrets

PATH_OPTIONS = ("allow-read", "allow-write", "rw", "deny-read", "blacklist", "deny-write")
POLICY_OPTIONS = (
    Option(
        "allow-domain", LIST, "", "PATTERN", "allow this name: example.com, *.example.com, host:8443, a URL", DOMAINS
    ),
    Option(
        "deny-domain",
        LIST,
        "",
        "PATTERN",
        "deny this name; wins over every allow: '**.corp.example except jira.corp.example'",
        DOMAINS,
    ),
    Option("allow-http", LIST, "", "RULE", "allow these requests only: 'GET,HEAD https://api.example.com/v1/**'"),
    Option("deny-http", LIST, "", "RULE", "deny these requests; wins over every allow: 'POST https://example.com/**'"),
    Option(
        "inspect",
        LIST,
        "",
        "HOST",
        "record each request to this host ('*': every host); its TLS ends at the session's door",
        DOMAINS,
    ),
    Option(
        "inspect-except", LIST, "", "HOST", "never inspect this host: for pinned keys, client certificates", DOMAINS
    ),
    Option(
        "secret",
        LIST,
        "",
        "NAME@HOST",
        "keep this variable's value outside; the host gets it: GITHUB_TOKEN@api.example.com",
    ),
    Option("budget", LIST, "", "[HOST=]SIZE", "limit bytes: HOST=10MB, HOST=10MB,up=1MB; without HOST all together"),
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
    Option("localhost", FLAG, "", "", "the session's own localhost, which always works, and what --allow-… names"),
    Option("filtered", FLAG, "", "", "what rules allow, also those of files that set another mode"),
    Option(
        "online", FLAG, "", "", "network open, files closed: all but denied names, private addresses, DNS-over-HTTPS"
    ),
    Option("config", VALUE, "", "FILE", "read further rules and settings from this TOML file"),
    Option("no-config", FLAG, "", "", "ignore your configuration and the project's, and detect no profile"),
    Option(
        "profile",
        LIST,
        "p",
        "NAME",
        "use this profile; see `netsandbox profile list`. A name before -- does the same",
        PROFILES,
    ),
    Option("no-detect", FLAG, "", "", "do not choose profiles by the project's files and the command's name"),
    Option("pass-env", LIST, "", "NAME", "pass this variable although it looks like a secret: GITHUB_TOKEN", VARIABLES),
    Option("clean-env", FLAG, "", "", "pass only PATH, HOME, TERM, LANG and the like, and those of --pass-env"),
    Option("seatbelt-switch", LIST, "", "NAME", "on macOS: open trustd, fsevents, …, or close one: no-debug", SWITCHES),
    Option("upstream-dns", LIST, "", "ADDRESS[:PORT]", "resolve names at this server, not by the host's resolv.conf"),
    Option("upstream-proxy", VALUE, "", "URL", "connect through this HTTP proxy: http://proxy.example.com:3128"),
)
MODES = ("offline", "localhost", "filtered", "online")
INSPECTING = ("allow-http", "deny-http", "inspect")
PROCESSES = frozenset(("limit", "no-debug", "allow-device", "allow-execute"))
CLOSED = ("offline", "localhost")
ASKING = frozenset(("ask", "mode", "ask-wait"))
DYNAMIC, STATIC = "dynamic", "static"  # values of --mode
FILTERED = "filtered"  # as `policy.FILTERED`, which is loaded later than the command's environment is made


def read_config(parsed: Parsed) -> FileSettings | None:
    """The merged settings of the user's file, the project's, the file of --config and profiles; None without any."""
    detect = "no-config" not in parsed.flags and "no-detect" not in parsed.flags
    user, project = (organisation_files(), ()) if "no-config" in parsed.flags else (user_files(), project_files())
    named = parsed.values.get("config")
    names = tuple(parsed.all("profile"))
    if not (user or project or names or detect) and named is None:
        return None
    from netsandbox.config.cache import ConfigSources, recall_settings

    here = working_folder() or ""
    command = selecting_name(parsed.command) if detect else ""
    mode = command_mode(parsed)[0]
    sources = ConfigSources(here, home(), config_home(), user, project, named, names, detect, mode, command)
    known = recall_settings(sources)
    if known is not None:
        return known[0]
    from netsandbox.cli.progress import progress
    from netsandbox.config.effective import load

    with progress("asking the tools of this project for their registries"):
        return load(sources)


def command_mode(parsed: Parsed) -> tuple[str | None, str]:
    """The mode that the command line sets, and the option or profile that does. To allow something sets `filtered`."""
    given = [(mode, f"--{mode}") for mode in MODES if mode in parsed.flags]
    given += [(mode, f"the profile {mode}") for mode in MODES if mode in parsed.all("profile")]
    if len({mode for mode, _ in given}) > 1:
        raise UsageError(f"{given[0][1]} and {given[1][1]} exclude each other; choose one")
    mode, written = given[0] if given else (None, "")
    rules = [f"--{name}" for name in ("allow-domain", "allow-address", "allow-http") if parsed.all(name)]
    if rules and mode == "offline":
        raise UsageError(f"{written} lets nothing out, so {rules[0]} has no meaning with it; leave one of them out")
    return (FILTERED, rules[0]) if rules and mode in (None, "localhost") else (mode, written)


def policy_of(parsed: Parsed, file: FileSettings | None, secrets: SessionSecrets | None = None) -> Policy:
    """The policy of the options and the files: lists add up, the command line's mode wins. Hosts of *secrets* are
    inspected."""
    from netsandbox.policy.policy import DEFAULT_PORTS, Policy

    mode, origin = _chosen_mode(parsed, file)
    ports = file.default_ports if file else DEFAULT_PORTS
    # In a closed mode --ask asks about everything, whatever rules files have.
    opening = None if mode in CLOSED else file
    allowing = [*(opening.allow_domains if opening else ()), *rules_of(parsed, "allow-domain")]
    inspection = None
    if secrets is not None or is_inspecting(parsed, file):
        from netsandbox.cli.inspection_options import inspection_of

        inspection = inspection_of(parsed, file, opening, secrets, ports, allowing)
    return Policy(
        allowing,
        [*(file.deny_domains if file else ()), *rules_of(parsed, "deny-domain")],
        [*(opening.allow_addresses if opening else ()), *rules_of(parsed, "allow-address")],
        mode=mode if _asked(parsed, file)[0] is None else FILTERED,
        default_ports=ports,
        allow_unix_sockets=[*(file.allow_unix_sockets if file else ()), *rules_of(parsed, "allow-unix-socket")],
        allow_query_types=[*(file.allow_query_types if file else ()), *rules_of(parsed, "allow-query-type")],
        mode_origin=origin,
        inspection=inspection,
        budgets=_budgets(parsed, file),
    )


def rules_of(parsed: Parsed, name: str) -> tuple[Any, ...]:
    """The rules of one option, which is their origin. A policy would name its own parameter instead."""
    texts, origin = parsed.all(name), f"--{name}"
    if not texts:
        return ()
    from netsandbox.policy import rules

    if name.endswith("-domain"):
        return rules.domains(texts, origin, deny=name == "deny-domain")
    read: Any = {"allow-address": rules.addresses, "allow-unix-socket": rules.unix_sockets}
    found: tuple[Any, ...] = read.get(name, rules.query_types)(texts, origin)
    return found


def _budgets(parsed: Parsed, file: FileSettings | None) -> tuple[BudgetRule, ...]:
    given = [*(file.budgets if file else ()), *((text, "--budget") for text in parsed.all("budget"))]
    if not given:
        return ()
    from netsandbox.policy.budgets import parse_budgets

    return parse_budgets(given)


def is_inspecting(parsed: Parsed, file: FileSettings | None) -> bool:
    """Whether there are rules for requests, or hosts to inspect."""
    if parsed.lists and any(parsed.all(name) for name in INSPECTING):
        return True
    return file is not None and bool(file.allow_http or file.deny_http or file.inspect)


def _secret_rules(parsed: Parsed, file: FileSettings | None) -> tuple[tuple[str, str], ...]:
    """The rules for secrets, each with its origin; of optional ones those whose variable is set."""
    given = parsed.all("secret") if parsed.lists else ()
    if given:
        from netsandbox.policy.secret_rules import parse_secret

        for text in given:
            parse_secret(text, "--secret")
    return (
        *(each for each in (file.secrets if file else ()) if ",optional=yes" not in each[0] or _has_source(each[0])),
        *((text, "--secret") for text in given),
    )


def _has_source(text: str) -> bool:
    """Cheaper than to parse the rule, since profiles have such rules for variables that few users set."""
    return any(f",{source}=" in text for source in ("env", "file", "command")) or text.partition("@")[0] in os.environ


def mode_of(parsed: Parsed, file: FileSettings | None) -> str:
    """The mode of `policy_of`, which is made later than the command's environment."""
    if _asked(parsed, file)[0] is not None:
        return FILTERED
    mode = _chosen_mode(parsed, file)[0]
    opened = file is not None and (file.allow_domains or file.allow_addresses or file.allow_http)
    return mode or (FILTERED if opened else "offline")


def _chosen_mode(parsed: Parsed, file: FileSettings | None) -> tuple[str | None, str]:
    """The mode, and the option or line that sets it. An address narrows no file's online: it opens a private one."""
    mode, origin = command_mode(parsed)
    if file is None:
        return mode, origin
    if mode is None or (origin == "--allow-address" and file.mode == "online"):
        mode, origin = file.mode, file.mode_origin
    return mode, check_bound(file, "mode", mode, origin) if mode else origin


def check_bound(file: FileSettings, field: str, mode: str, origin: str) -> str:
    """The organisation's modes are the widest. *origin*, or the organisation's line where that closes the network."""
    for bounded, widest, line in file.bounded:
        if bounded == field:
            from netsandbox.config.merging import is_wider

            if is_wider(mode, widest):
                raise UsageError(f"{origin}: {line} allows no mode wider than {widest}; leave it out")
            return line if widest in CLOSED else origin
    return origin


def _asked(parsed: Parsed, file: FileSettings | None) -> tuple[int | None, int | None]:
    """How many seconds a question about a name, and one about a file, waits for the user; None: nobody is asked."""
    if ASKING.isdisjoint((*parsed.flags, *parsed.values)) and not (file is not None and (file.ask or file.ask_files)):
        return None, None
    from netsandbox.cli.ask_options import asked

    names, files = asked(parsed, file, _chosen_mode(parsed, file)[0], _files(parsed, file).mode)
    if names is not None and file is not None:
        check_bound(file, "mode", FILTERED, "--ask")
    return names, files


def settings_of(parsed: Parsed, file: FileSettings | None) -> RunSettings:
    """The other settings, such as the name servers and the path of the log."""
    servers = parsed.all("upstream-dns") or (file.upstream_dns if file else ())
    proxy = parsed.values.get("upstream-proxy")
    if proxy is not None:
        from netsandbox.config.readers import check_proxy

        proxy = check_proxy(proxy, "--upstream-proxy")
    names, paths = _asked(parsed, file)
    log = parsed.values.get("audit-log") or os.environ.get("SANDBOX_AUDIT_LOG")
    made = RunSettings(
        upstream_dns=_name_servers(servers) if servers else (),
        upstream_proxy=proxy or (file.upstream_proxy if file else None),
        proxy_env="no-proxy-env" not in parsed.flags and (file is None or file.proxy_env),
        mode=mode_of(parsed, file),
        backend=parsed.values.get("backend") or (file.backend if file else None),
        unix_sockets=(*(file.allow_unix_sockets if file else ()), *parsed.all("allow-unix-socket")),
        variables=_variables(parsed, file),
        set_env=file.set_env if file else (),
        files=_files(parsed, file),
        audit_log=log or (file.audit_log if file else None),
        log_may_move=not log,
        debug="debug" in parsed.flags,
        debug_log=os.path.abspath(parsed.values["debug-log"]) if parsed.values.get("debug-log") else None,
        configs=_configs(file.kept) if file else (),
        switches=_switches(parsed, file),
        raw=file.raw if file else (),
        name=_name(parsed, file),
        announce="quiet" not in parsed.flags,
        verbose="verbose" in parsed.flags,
        ask=names,
        ask_files=paths,
        notify=file is None or file.notify,
        inspect=is_inspecting(parsed, file),
        secret_rules=_secret_rules(parsed, file),
        bounds=file.bounds if file else Bounds(),
        localhost=localhost_of(parsed, file),
    )
    if "har" in parsed.values or "har-bodies" in parsed.values:
        from netsandbox.cli.har_options import with_har

        made = with_har(made, parsed)
    if "record-query" in parsed.flags:
        from netsandbox.cli.inspection_options import check_query

        check_query(made)
    if (file is None or not file.has_process_rules) and PROCESSES.isdisjoint((*parsed.lists, *parsed.flags)):
        return made
    from netsandbox.cli.process_options import with_process_rules

    return with_process_rules(made, parsed, file)


def _name_servers(servers: Sequence[str]) -> tuple[tuple[str, int], ...]:
    from netsandbox.config.readers import name_server

    return tuple(name_server(text, "--upstream-dns") for text in servers)


def _configs(kept: Sequence[str]) -> tuple[str, ...]:
    """Files that the command must not write. For a descriptor it is the file behind it. A pipe of the shell, or the
    removed file of a here-document, has no name, so no command can replace it."""
    paths = [os.path.abspath(path) for path in kept]
    named = [os.path.realpath(path) if path.startswith(DESCRIPTORS) else path for path in paths]
    return tuple(path for path in named if path in paths or os.path.isfile(path))


def _variables(parsed: Parsed, file: FileSettings | None) -> tuple[Layer, ...]:
    layers = file.variables if file else ()
    if "clean-env" in parsed.flags or (file is not None and file.clean_env):
        layers = (*CLEAN, *layers)
    passed = tuple(check_pattern(text, "--pass-env") for text in parsed.all("pass-env"))
    return (*layers, Layer(passed=passed)) if passed else layers


def _files(parsed: Parsed, file: FileSettings | None) -> FileRules:
    if file is None and parsed.lists.keys().isdisjoint(PATH_OPTIONS) and "files" not in parsed.values:
        return FileRules(share_tmp="share-tmp" in parsed.flags, fresh_home="fresh-home" in parsed.flags)
    from netsandbox.cli.file_options import file_rules

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


def _name(parsed: Parsed, file: FileSettings | None) -> str | None:
    name = parsed.values.get("name", file.name if file else None)
    if name is not None:
        from netsandbox_portmap.session_name import check_name

        check_name(name)
    return name


_DEFAULT = default_strategy(NAME)
_STRATEGIES = ", ".join(f"{name} (default)" if name == _DEFAULT else name for name in STRATEGIES)
LOCALHOST_OPTIONS = (
    Option("publish", LIST, "", "PORT[:HOSTPORT]", "publish this port on the host, and no other (default: all)"),
    Option("no-publish", FLAG, "", "", "publish no port"),
    Option(
        "connect-host",
        LIST,
        "",
        "[PORT:][NAME:]PORT",
        "let the command reach this port of the host's localhost, or of the session NAME",
    ),
    Option("gateway-port", VALUE, "", "PORT", "serve NAME.localhost at this port of the host (default: 7878)"),
    Option("keep-host", FLAG, "", "", "by name, servers see the Host that was opened, not localhost:PORT"),
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
    base = file.localhost if file is not None else localhost.LocalhostSettings()
    if (parsed.values.keys() | parsed.lists.keys() | parsed.flags).isdisjoint(NAMES):
        return localhost.check(base)
    from netsandbox.cli.localhost_options import with_options

    return with_options(base, parsed)
