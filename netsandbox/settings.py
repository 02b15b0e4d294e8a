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
    from netsandbox.runtime.detached import Detached
    from netsandbox.runtime.session_secrets import SessionSecrets

WAIT, MAX_WAIT = 60, 3600  # seconds that a question waits for the user: the default and the maximum


@frozen
class Bounds:
    """Limits of a session's resources. A limit that is reached closes something; it never allows anything (INV-1)."""

    connections: int = 4096  # at the same time, for each door
    idle_seconds: int = 3600  # without a byte in either direction
    log_megabytes: int = 64  # per file of the log, seven are kept; a log that the user placed has no limit


@frozen
class Command:
    """The command of a session: its arguments, the variables it may have, and the descriptors 0, 1 and 2. *lifeline* is
    a pipe of the program that started the session: a byte in it, or its end, kills the command. *detached* keeps the
    output of a session in the background."""

    words: Sequence[str]
    environment: Mapping[bytes, bytes]
    stdio: tuple[int, int, int] = (0, 1, 2)
    lifeline: int | None = None
    detached: Detached | None = None


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
    own_command: bool = False  # the command is a program of netsandbox, so what it could write stays trusted
    learn_files: EntryLimits | None = None  # record refused files in every mode, and changes where none is refused
    audit_log: str | None = None  # None: in the session's state directory, rotated
    log_may_move: bool = False  # of two sessions that write `audit_log` at once the second writes a file beside it
    debug: bool = False  # write each denial to standard error when it happens
    debug_log: str | None = None  # write each denial to this file (an absolute path), with or without `debug`
    denial_file: str | None = None  # a new file that gets a line for each denied connection and lookup at once
    configs: tuple[str, ...] = ()  # the files that the policy was read from
    raw: tuple[tuple[str, str], ...] = ()  # SBPL rules for the Seatbelt profile, each with its origin
    switches: tuple[str, ...] = ()  # switches of the Seatbelt profile; the last value of a switch applies
    backend: str | None = None  # a name in `backends.BACKENDS`; None: this system's backend
    name: str | None = None  # None: made from the working folder and its branch
    announce: bool = False  # write to a terminal where each server of the session is reached
    verbose: bool = False  # write to standard error how the session is set up
    ask: int | None = None  # seconds that a name without a rule waits for the user; None: the user is not asked
    ask_files: int | None = None  # the same for files that the session does not see or write
    notify: bool = False  # questions are shown on the desktop too
    inspect: bool = False  # the policy has rules for requests, so the session has an engine
    secret_rules: tuple[tuple[str, str], ...] = ()  # rules for secrets, each with its origin
    secrets: SessionSecrets | None = None  # those that apply, with their values
    har: str | None = None  # the file that gets the inspected requests (an absolute path)
    har_bodies: int = 0  # bytes of each body in it
    ca_bundle: tuple[str, tuple[str, ...]] | None = None  # the file of CAs, and the system's files that it lies over
    java_trust: tuple[str, tuple[str, ...]] | None = None  # the same in Java's format, and Java's own files
    bounds: Bounds = Bounds()
    limits: tuple[tuple[str, int], ...] = ()  # of its processes (`policy.limits`)
    no_debug: bool = False  # no process reads or changes the memory of another one
    localhost: LocalhostSettings = LocalhostSettings()

    @property
    def written(self) -> tuple[str, ...]:
        """The files that the session writes besides its log, which its command must not write."""
        return tuple(filter(None, (self.debug_log, self.denial_file, self.har)))

    @property
    def asks_files(self) -> bool:
        """In other modes than `project` a session sees all files but secrets, and nobody is asked about those."""
        return self.ask_files is not None and self.files.mode == PROJECT
