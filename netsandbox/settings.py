"""The settings of one run, apart from its policy."""

from __future__ import annotations

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import PROJECT, FileRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.policy.path_folding import EntryLimits
    from netsandbox.policy.variables import Layer as VariableLayer

WAIT, MAX_WAIT = 60, 3600  # seconds that a question waits for the user: the default and the maximum


@frozen
class Bounds:
    """Limits of a session's resources. A limit that is reached closes something; it never allows anything (INV-1)."""

    connections: int = 4096  # at the same time, for each door
    idle_seconds: int = 3600  # without a byte in either direction
    log_megabytes: int = 64  # per file of the log, seven are kept; a log that the user placed has no limit


@frozen
class Command:
    """The command of a session: its arguments, the variables it may have, and the descriptors 0, 1 and 2."""

    words: Sequence[str]
    environment: Mapping[bytes, bytes]
    stdio: tuple[int, int, int]


@frozen
class RunSettings:
    """Checked values. The command line or the caller decides where they come from."""

    upstream_dns: tuple[tuple[str, int], ...] = ()  # empty: the servers of the host's resolv.conf
    upstream_proxy: str | None = None
    proxy_env: bool = True
    mode: str = "offline"  # the policy's mode: the command's environment is made before the policy is read
    unix_sockets: tuple[str, ...] = ()  # those of the policy: filter and files are made before the policy is read
    variables: tuple[VariableLayer, ...] = ()  # in addition to the defaults, lowest priority first
    set_env: tuple[tuple[str, str], ...] = ()  # the last value of a name applies
    files: FileRules = FileRules()  # what may be read and written, as configured
    learn_files: EntryLimits | None = None  # record refused files in every mode, and changes where none is refused
    audit_log: str | None = None  # None: in the session's state directory, rotated
    debug: bool = False  # write each denial to standard error when it happens
    debug_log: str | None = None  # write each denial to this file (an absolute path), with or without `debug`
    configs: tuple[str, ...] = ()  # the files that the policy was read from
    raw: tuple[tuple[str, str], ...] = ()  # SBPL rules for the Seatbelt profile, each with its origin
    switches: tuple[str, ...] = ()  # switches of the Seatbelt profile; the last value of a switch applies
    backend: str | None = None  # a name in `backends.BACKENDS`; None: this system's backend
    name: str | None = None  # None: made from the working folder and its branch
    verbose: bool = False  # write to standard error how the session is set up
    ask: int | None = None  # seconds that a name without a rule waits for the user; None: the user is not asked
    ask_files: int | None = None  # the same for files that the session does not see or write
    bounds: Bounds = Bounds()
    limits: tuple[tuple[str, int], ...] = ()  # of its processes (`policy.limits`)
    no_debug: bool = False  # no process reads or changes the memory of another one
    localhost: LocalhostSettings = LocalhostSettings()

    @property
    def asks_files(self) -> bool:
        """In other modes than `project` a session sees all files but secrets, and nobody is asked about those."""
        return self.ask_files is not None and self.files.mode == PROJECT
