"""The merged settings of the configuration files and profiles of a run, and their form in the cache."""

from __future__ import annotations

from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import PROJECT, PathRule
from netsandbox.policy.policy import DEFAULT_PORTS, AddressRule, DomainRule
from netsandbox.policy.variables import Layer as VariableLayer
from netsandbox.settings import WAIT, Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


_PATHS = ("allow_read", "allow_write", "deny_read", "deny_write", "caches", "copies", "allow_execute")


@frozen
class FileSettings:
    """The merged values of all files; `FileSettings()` has the defaults."""

    kept: tuple[str, ...] = ()  # the files that no command may write: the user's own
    ignored: tuple[tuple[str, str], ...] = ()  # `TABLE.KEY` and `FILE:LINE` of settings that need trust
    bounded: tuple[tuple[str, str, str], ...] = ()  # a field of modes, the widest one, and the line that sets it
    narrowed: tuple[str, ...] = ()  # a line for each value that was wider
    mode: str | None = None
    mode_origin: str = ""
    allow_domains: tuple[DomainRule, ...] = ()
    deny_domains: tuple[DomainRule, ...] = ()
    allow_addresses: tuple[AddressRule, ...] = ()
    default_ports: tuple[int, ...] = DEFAULT_PORTS
    allow_http: tuple[tuple[str, str], ...] = ()  # rules for requests; each text with its origin
    deny_http: tuple[tuple[str, str], ...] = ()
    inspect: tuple[tuple[str, str], ...] = ()
    inspect_except: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()  # rules for secrets, never a value
    budgets: tuple[tuple[str, str], ...] = ()
    allow_unix_sockets: tuple[str, ...] = ()
    allow_query_types: tuple[str, ...] = ()
    upstream_dns: tuple[str, ...] = ()
    upstream_proxy: str | None = None
    proxy_env: bool = True
    allow_read: tuple[PathRule, ...] = ()
    allow_write: tuple[PathRule, ...] = ()
    deny_read: tuple[PathRule, ...] = ()
    deny_write: tuple[PathRule, ...] = ()
    caches: tuple[PathRule, ...] = ()
    copies: tuple[PathRule, ...] = ()
    files_mode: str = PROJECT
    share_tmp: bool = False
    allow_execute: tuple[PathRule, ...] = ()
    execute: str = "any"
    limits: tuple[tuple[str, str], ...] = ()  # each text with its origin
    debug: bool = True
    allow_devices: tuple[tuple[str, str], ...] = ()
    backend: str | None = None
    audit_log: str | None = None
    record_query: bool = False
    variables: tuple[VariableLayer, ...] = ()
    clean_env: bool = False
    set_env: tuple[tuple[str, str], ...] = ()
    shell: str | None = None
    prompt_indicator: bool = True
    switches: tuple[str, ...] = ()
    raw: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    ask: bool = False
    ask_files: bool = False
    ask_wait: int = WAIT
    notify: bool = True
    bounds: Bounds = Bounds()
    localhost: LocalhostSettings = LocalhostSettings()
    profiles: tuple[tuple[str, str], ...] = ()  # those in force, the lowest first, and why each is used
    registry_tools: tuple[str, ...] = ()  # the tools whose registries are among the rules
    notes: tuple[str, ...] = ()  # what was skipped, a line each

    @property
    def has_process_rules(self) -> bool:
        return bool(self.limits or self.allow_devices) or not self.debug or self.execute != "any"


def to_plain(settings: FileSettings) -> dict[str, Any]:
    """The settings as plain values, for the cache."""
    fields: dict[str, Any] = dict(vars(settings))
    for name in ("allow_domains", "deny_domains"):
        fields[name] = list(map(_plain_domain, fields[name]))
    fields["allow_addresses"] = [(rule.text, rule.origin) for rule in settings.allow_addresses]
    for name in _PATHS:
        fields[name] = _values(fields[name])
    fields["variables"] = _values(settings.variables)
    fields["localhost"] = {**vars(settings.localhost), "connect_host": _values(settings.localhost.connect_host)}
    fields["bounds"] = dict(vars(settings.bounds))
    return fields


def from_plain(fields: dict[str, Any]) -> FileSettings:
    """The settings that `to_plain` wrote."""
    for name in ("allow_domains", "deny_domains"):
        fields[name] = tuple(map(_domain, fields[name]))
    fields["allow_addresses"] = tuple(_address_rule(text, origin) for text, origin in fields["allow_addresses"])
    for name in _PATHS:
        fields[name] = tuple(PathRule(*values) for values in fields[name])
    fields["variables"] = tuple(VariableLayer(*values) for values in fields["variables"])
    doors = tuple(HostPort(*values) for values in fields["localhost"]["connect_host"])
    fields["localhost"] = LocalhostSettings(**{**fields["localhost"], "connect_host": doors})
    fields["bounds"] = Bounds(**fields["bounds"])
    return FileSettings(**fields)


def _plain_domain(rule: DomainRule) -> tuple[Any, ...]:
    exceptions = tuple(map(_plain_domain, rule.exceptions))
    return rule.text, rule.origin, rule.name, rule.ports, rule.apex, rule.below, exceptions


def _domain(values: tuple[Any, ...]) -> DomainRule:
    text, origin, name, ports, apex, below, listed = values
    exceptions = tuple(map(_domain, listed)) if listed else ()
    return DomainRule(text, origin, name, ports, apex=apex, below=below, exceptions=exceptions)


def _values(records: Iterable[object]) -> list[tuple[object, ...]]:
    return [tuple(vars(each).values()) for each in records]


def _address_rule(text: str, origin: str) -> AddressRule:
    from netsandbox.policy.rules import parse_address  # few have such a rule, and every launch loads this module

    return parse_address(text, origin)
