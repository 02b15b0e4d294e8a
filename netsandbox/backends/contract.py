"""What a session needs from a backend, and what a backend gets from a session.

A backend is one way to confine a command: Linux namespaces, the Linux broker, macOS Seatbelt. `session.session` makes
one object of it for each session and calls its methods in this order:

| step | call | afterwards |
|---|---|---|
| 1 | `prepare()` | the host's part that needs no policy is set up; slow work of the kernel has begun |
| 2 | `confine(policy)` | the session's resources are held; `reservation` is complete |
| 3 | `seal_imports(policy)` | nothing that the command can write will be imported into this process |
| 4 | `wait_ready()` | the sandbox is set up; the command does not run yet |
| 5 | `start()` | the command runs, or an error states why it did not |
| 6 | `serve(loop, ended)`, `doors()` | the supervisor serves until `ended(status)` is called |
| 7 | `raise_failure()`, `stop()`, `close()` | the command has ended and was reaped; all resources are free |

With `serves_first`, step 6 comes before step 3. Rules that every backend keeps:

1. If anything raises before `start` returns, the command has not run (INV-1).
2. When this process dies, the kernel ends the command and frees what the session holds (INV-10).
3. `stop` and `close` can be called after any step, and twice.
"""

from __future__ import annotations

import os

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Collection, Mapping
    from typing import Protocol

    from netsandbox_portmap.contract import Dial
    from netsandbox_portmap.reservation import Reservation

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.ip import Address
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.settings import Command, RunSettings

    Clock = Callable[[], float]
    OwnAddresses = Callable[[], Collection[Address]]  # this host's addresses, for the address guard
    Attribution = Callable[..., tuple[int, str] | None]  # peer, "tcp" or "udp" -> pid and program

LOOPBACK = b"localhost,127.0.0.1,::1,.localhost,0.0.0.0"  # to dial 0.0.0.0 is to dial the loopback
PROXY_NAMES = (b"http_proxy", b"https_proxy", b"all_proxy")
NAME = b"NETSANDBOX_NAME"
EVERY_NAME = frozenset((*PROXY_NAMES, b"no_proxy", b"ftp_proxy", b"socks_proxy", b"rsync_proxy"))


@frozen
class SessionContext:
    """The facts about a session before its policy is read."""

    id: str
    settings: RunSettings
    command: Command
    sealed: bool  # whether this process exists for this one session, so that its imports can be sealed
    open_log: Callable[[], AuditLog]  # opens the log when first called
    started: Callable[[], None] | None = None  # called when the command has been executed

    @property
    def log(self) -> AuditLog:
        return self.open_log()

    @property
    def stderr(self) -> int:
        return self.command.stdio[2]

    def placed_log(self) -> tuple[str | None, str | None]:
        """The log that the user placed, which exists now: a file to protect, or a folder of many logs to hide."""
        if not self.settings.audit_log:
            return None, None
        path = self.log.path
        if path == os.path.abspath(self.settings.audit_log):
            return path, None
        folder = os.path.dirname(path)
        if (os.path.realpath(os.curdir) + "/").startswith(os.path.realpath(folder) + "/"):
            raise UsageError(f"--audit-log {folder} is where the command works; give a folder of its own, or a file")
        return None, folder


@frozen
class DoorSockets:
    """The sockets of a session's doors by service, and the facts that the doors need about their peers."""

    mixed: tuple[_socket.socket, ...]  # HTTP proxy and SOCKS5 on one port
    dns: tuple[_socket.socket, ...]
    dns_tcp: tuple[_socket.socket, ...]
    own_addresses: Callable[[Clock], OwnAddresses]
    attribution: Callable[[Clock], Attribution]
    transparent: tuple[_socket.socket, ...] = ()  # captured connections
    datagrams: tuple[_socket.socket, ...] = ()  # captured datagrams, recorded and dropped
    password: bytes | None = None  # None: only the session can reach the sockets
    # Where a captured connection was meant to go; None: its own address says it.
    destination: Callable[[_socket.socket], tuple[str, int]] | None = None
    dns_is_bound: bool = False  # whether each DNS socket has one address, so that replies need no source address

    @property
    def all(self) -> tuple[_socket.socket, ...]:
        return (*self.mixed, *self.transparent, *self.dns, *self.dns_tcp, *self.datagrams)


if TYPE_CHECKING:  # a launch does not pay for these

    class Localhost(Protocol):
        """A session's localhost, while it is served."""

        @property
        def flows(self) -> int: ...

        @property
        def moved(self) -> int:
            """Bytes relayed between the host and the session."""

        def status(self) -> list[dict[str, object]]:
            """The session's ports, as `netsandbox ports` shows them."""

        def dial(self, port: int, done: Callable[[_socket.socket | None, str], None]) -> Dial | None:
            """Connect to a published port inside, for another session. None: nothing listens there."""

    class HeldAttempt(Protocol):
        @property
        def abandoned(self) -> bool:
            """Whether nobody waits for its answer any more."""

    class FileQuestions(Protocol):
        """The questions to the user about files (`session.approvals.inbox`)."""

        def answer_for_file(self, path: str, operation: str, secret: str | None) -> str | None: ...

        def approved_folder(self, path: str) -> str | None: ...

        def ask(
            self,
            place: tuple[str, int | str],
            attempt: HeldAttempt,
            by: tuple[int, str] | None,
            answered: Callable[[str, str | None], None],
            secret: str | None = None,
        ) -> str | None: ...

    class Serving(Protocol):
        """The backend's part while the supervisor's loop runs: traps, messages of a helper, the command's end."""

        inbox: FileQuestions | None  # the questions to the user, for a backend that asks about files

        @property
        def localhost(self) -> Localhost | None: ...

        def begin(self) -> None:
            """Watch the command, which runs now."""

        def awaits_records(self, status: int) -> bool:
            """Whether records may still arrive after a command that ended with *status*."""

        def settle(self) -> None:
            """Record what was counted or waits: a second command begins now, or has ended."""

        def close(self) -> None: ...

    class Backend(Protocol):
        """One session of one backend. `pid` is the command's or that of its first process; 0 until it exists."""

        name: str
        # Whether everything is served before the command starts, since nothing can be imported later.
        serves_first: bool
        needed_modules: tuple[str, ...]  # its modules that are imported after `start`, if imports are still possible

        @property
        def pid(self) -> int: ...

        @property
        def reservation(self) -> Reservation: ...

        @property
        def recorded_name(self) -> str | None:
            """The session's name for its first record; None if the session is named only on demand."""

        def prepare(self) -> None: ...
        def confine(self, policy: Policy) -> None: ...
        def seal_imports(self, policy: Policy) -> None: ...
        def wait_ready(self) -> None: ...
        def start(self) -> None: ...
        def open_loop(self, on_error: Callable[[BaseException], None]) -> Loop: ...
        def serve(self, loop: Loop, ended: Callable[[int | None], None]) -> Serving: ...

        def doors(self) -> DoorSockets | None:
            """None: nothing may leave the session, so there is no door."""

        def signal(self, number: int) -> None:
            """Forward a signal to the command."""

        def ask_to_end(self) -> None:
            """Ask every command of the session to end, by SIGTERM."""

        def kill(self) -> None:
            """End the command and its descendants at once."""

        def raise_failure(self) -> None:
            """Raise the error for a command that could not be executed, if `start` could not know."""

        def stop(self) -> None:
            """End the command, if it still runs, and reap it."""

        def execute(self, request: bytes, descriptors: list[int]) -> None:
            """Start another command in the session (`session.exec_requests` has the request). Raises HostError."""

        def usage(self) -> dict[str, object]:
            """How many processes run, their CPU time, memory and limits; what the backend cannot know is missing."""

        def lineage(self, pid: int) -> list[int]:
            """The process *pid* of the host and its parents, up to the first of the session, as the session numbers
            them."""

        def kept_files(self) -> tuple[str, ...]:
            """New files of the session's private home, as the session named them; none where it has no such home."""

        def close(self) -> None:
            """Free what the session holds."""


def path_of(environment: Mapping[bytes, bytes]) -> str:
    return os.fsdecode(environment.get(b"PATH", b""))


def session_environment(
    outer: Mapping[bytes, bytes], session: str, *, mode: str, name: str | None, proxy: bytes | None
) -> dict[bytes, bytes]:
    """The variables of the command (pure). *proxy* is the URL of the door; None sets no proxy variable.

    SANDBOX_MODE, NETSANDBOX_SESSION and, if the session has a name already, NETSANDBOX_NAME tell the command where it
    runs. Proxy variables are a convenience, not the boundary: without them every connection still ends at a door. The
    caller's own proxy variables are never inherited, in any spelling, since they name a proxy that the session cannot
    reach. A variable without a name is dropped, because Python passes it to no program.
    """
    inner = {key: value for key, value in outer.items() if key.lower() not in EVERY_NAME and key not in (NAME, b"")}
    inner[b"NETSANDBOX_SESSION"] = session.encode("ascii")
    inner[b"SANDBOX_MODE"] = mode.encode("ascii")
    if name is not None:
        inner[NAME] = name.encode("ascii")
    if proxy is not None:
        for key in PROXY_NAMES:
            inner[key] = inner[key.upper()] = proxy
        inner[b"no_proxy"] = inner[b"NO_PROXY"] = own_hosts(os.uname().nodename)
    return inner


def own_hosts(name: str) -> bytes:
    """The hosts of a session that are its own, for NO_PROXY; *name* is that of this machine, if it is a plain one."""
    plain = name.encode("ascii", "replace").lower()
    return LOOPBACK + b"," + plain if plain.replace(b"-", b"").isalnum() else LOOPBACK


def other_logs(state: str) -> list[str]:
    """Logs that users placed for sessions which still run, wherever this session could write them."""
    try:
        if not os.listdir(os.path.join(state, "log-heads")):
            return []
    except FileNotFoundError:
        return []
    from netsandbox.audit.kept_head import running_logs

    return running_logs()
