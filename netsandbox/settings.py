"""How one run is to be made, besides its policy."""

from __future__ import annotations

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import FileRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.policy.variables import Layer as VariableLayer

WAIT, MAX_WAIT = 60, 3600  # seconds for which a question to the user stays: usually, and at most


@frozen
class Bounds:
    """How much a session may take of us. A bound that is reached closes; none of them lets anything through (INV-1)."""

    connections: int = 4096  # at once, at each door
    idle_seconds: int = 3600  # without a byte in either direction
    log_megabytes: int = 64  # of one file of the log; seven are kept. Not of a log that the user placed


@frozen
class Command:
    """What a session runs: the words, the variables of the caller's that it may have, the descriptors 0, 1 and 2."""

    words: Sequence[str]
    environment: Mapping[bytes, bytes]
    stdio: tuple[int, int, int]


@frozen
class RunSettings:
    """Checked values; where they come from is the command line's or the caller's business."""

    upstream_dns: tuple[tuple[str, int], ...] = ()  # empty: the host's resolv.conf
    upstream_proxy: str | None = None
    proxy_env: bool = True
    mode: str = "offline"  # that of the policy: the command's environment is made before the policy is read
    unix_sockets: bool = False  # whether the policy allows any: the seccomp filter is made before the policy is read
    variables: tuple[VariableLayer, ...] = ()  # beside the defaults, the lowest first
    set_env: tuple[tuple[str, str], ...] = ()  # the last one counts
    files: FileRules = FileRules()  # what may be read and written, as it was said
    watch_files: bool = False  # record what is written, and which secrets are tried; on Linux, at a price
    audit_log: str | None = None  # None: in the session's state directory, rotated
    debug: bool = False  # say each denial on standard error when it happens
    debug_log: str | None = None  # and, or, in this file; absolute
    configs: tuple[str, ...] = ()  # the files that the policy was read from
    raw: tuple[tuple[str, str], ...] = ()  # rules for a Mac's profile in its own words, each with its origin
    switches: tuple[str, ...] = ()  # words about a Mac's profile, the last one about a switch counts
    backend: str | None = None  # by its name in `backends.registry`; None: that of this system
    name: str | None = None  # None: from the working folder and its branch
    verbose: bool = False  # say on standard error how the session is made
    ask: int | None = None  # seconds that a name which no rule allows waits for the user's answer; None: none does
    bounds: Bounds = Bounds()
    localhost: LocalhostSettings = LocalhostSettings()
