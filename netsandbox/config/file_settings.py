"""The merged settings of the configuration files and profiles of a run, and their form in the cache."""

from __future__ import annotations

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import PROJECT, PathRule
from netsandbox.policy.policy import DEFAULT_PORTS, AddressRule, DomainRule
from netsandbox.policy.variables import Layer as VariableLayer
from netsandbox.settings import WAIT, Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


_DOMAIN_FIELDS = ("text", "origin", "name", "ports", "apex", "below")
_PATHS = ("allow_read", "allow_write", "deny_read", "deny_write", "caches", "allow_execute")


@frozen
class FileSettings:
    """The merged values of all files; `FileSettings()` has the defaults."""

    kept: tuple[str, ...] = ()  # the files that no command may write: the user's own
    ignored: tuple[tuple[str, str], ...] = ()  # `TABLE.KEY` and `FILE:LINE` of settings that need trust
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
    allow_read: tuple[PathRule, ...] = ()
    allow_write: tuple[PathRule, ...] = ()
    deny_read: tuple[PathRule, ...] = ()
    deny_write: tuple[PathRule, ...] = ()
    caches: tuple[PathRule, ...] = ()
    files_mode: str = PROJECT
    share_tmp: bool = False
    allow_execute: tuple[PathRule, ...] = ()
    execute: str = "any"
    limits: tuple[tuple[str, str], ...] = ()  # each text with its origin
    debug: bool = True
    allow_devices: tuple[tuple[str, str], ...] = ()
    audit_log: str | None = None
    variables: tuple[VariableLayer, ...] = ()
    set_env: tuple[tuple[str, str], ...] = ()
    shell: str | None = None
    prompt_indicator: bool = True
    switches: tuple[str, ...] = ()
    raw: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    ask: bool = False
    ask_files: bool = False
    ask_wait: int = WAIT
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
        fields[name] = [tuple(getattr(rule, slot) for slot in _DOMAIN_FIELDS) for rule in fields[name]]
    fields["allow_addresses"] = [(rule.text, rule.origin) for rule in settings.allow_addresses]
    for name in _PATHS:
        fields[name] = _values(fields[name])
    fields["variables"] = _values(settings.variables)
    fields["localhost"] = dict(vars(settings.localhost))
    fields["bounds"] = dict(vars(settings.bounds))
    return fields


def from_plain(fields: dict[str, Any]) -> FileSettings:
    """The settings that `to_plain` wrote."""
    for name in ("allow_domains", "deny_domains"):
        fields[name] = tuple(
            DomainRule(text, origin, host, ports, apex=apex, below=below)
            for text, origin, host, ports, apex, below in fields[name]
        )
    fields["allow_addresses"] = tuple(_address_rule(text, origin) for text, origin in fields["allow_addresses"])
    for name in _PATHS:
        fields[name] = tuple(PathRule(*values) for values in fields[name])
    fields["variables"] = tuple(VariableLayer(*values) for values in fields["variables"])
    fields["localhost"] = LocalhostSettings(**fields["localhost"])
    fields["bounds"] = Bounds(**fields["bounds"])
    return FileSettings(**fields)


def _values(records: Iterable[object]) -> list[tuple[object, ...]]:
    return [tuple(vars(each).values()) for each in records]


def _address_rule(text: str, origin: str) -> AddressRule:
    from netsandbox.policy.rules import parse_address  # few have such a rule, and every launch loads this module

    return parse_address(text, origin)
