"""What the configuration files and profiles of a run say together, as values."""

from __future__ import annotations

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.frozen import frozen
from netsandbox.policy.policy import DEFAULT_PORTS
from netsandbox.settings import WAIT, Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.file_rules import PathRule
    from netsandbox.policy.rules import AddressRule, DomainRule
    from netsandbox.policy.variables import Layer as VariableLayer


@frozen
class FileSettings:
    """What the files say together; `FileSettings()` is what no file says."""

    kept: tuple[str, ...] = ()  # the files that no command may write: the user's own
    ignored: tuple[tuple[str, str], ...] = ()  # `TABLE.KEY` and `FILE:LINE` of what an untrusted file would open
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
    allow_write: tuple[PathRule, ...] | None = None
    deny_read: tuple[PathRule, ...] = ()
    allow_execute: tuple[PathRule, ...] = ()
    audit_log: str | None = None
    variables: tuple[VariableLayer, ...] = ()
    set_env: tuple[tuple[str, str], ...] = ()
    shell: str | None = None
    prompt_indicator: bool = True
    switches: tuple[str, ...] = ()
    raw: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    ask: bool = False
    ask_wait: int = WAIT
    bounds: Bounds = Bounds()
    localhost: LocalhostSettings = LocalhostSettings()
    profiles: tuple[tuple[str, str], ...] = ()  # those in force, the lowest first, and why each counts
    asked: tuple[str, ...] = ()  # the tools whose registries are among the rules
    notes: tuple[str, ...] = ()  # what was passed over on the way, a line each
