"""One session from start to end: helper, log, supervisor, last record.

Order matters. The helper is started first, so that the kernel makes the namespaces while we still load the policy and
open the log; the command itself waits for `go`, which is given only when the doors stand, the policy is whole and the
log has its first record. Its first instruction already runs behind the doors (attack 203).
"""

from __future__ import annotations

import os
import sys
import time

from netsandbox_portmap.door_ports import PROXY_URL
from netsandbox_portmap.reservation import Reservation

from netsandbox.backends.environment import session_environment
from netsandbox.backends.namespaces import launch, plan, seccomp
from netsandbox.backends.namespaces.mount_view import bytecode_folders, session_view
from netsandbox.backends.namespaces.syscalls import abi_of
from netsandbox.errors import HostError, UsageError
from netsandbox.paths import (
    is_made,
    log_path,
    made_config_folders,
    new_session_id,
    packages,
    session_dir,
    session_state_home,
    unused_state_home,
)
from netsandbox.runtime.stdio import check_stdio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.denial_stream import DenialStream
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.namespaces.file_view import FileView
    from netsandbox.backends.namespaces.unix_pins import Pin
    from netsandbox.backends.namespaces.watched_paths import WatchedPaths
    from netsandbox.policy.policy import Policy
    from netsandbox.session.supervisor import Supervisor
    from netsandbox.settings import Command, RunSettings


class Session:
    """Run once. After `run`, `log` has the counts and the denials."""

    def __init__(self, settings: RunSettings, *, sealed: bool) -> None:
        self.settings = settings
        self._sealed = sealed  # whether this process is ours alone, so that its imports can be sealed
        self.id = new_session_id()
        self.log_path = log_path(self.id, settings.audit_log)
        self._log: AuditLog | None = None
        self._denials: DenialStream | None = None
        self._supervisor: Supervisor | None = None
        self._watched: WatchedPaths | None = None

    @property
    def log(self) -> AuditLog:
        """Opened when it is first asked for: a log that the user placed must exist before the helper protects it."""
        if self._log is None:
            from netsandbox.audit.log import AuditLog

            cap = None if self.settings.audit_log else self.settings.bounds.log_megabytes << 20
            self._log = AuditLog.open(self.log_path, self.id, cap_bytes=cap)
            if self.settings.audit_log:
                from netsandbox.audit.placed_log import note

                note(self.id, self.log_path)
            self._log.observer = self._denials
        return self._log

    def run(self, policy: Callable[[], Policy], command: Command) -> int:
        """Run *command* to its end; its wait status. *policy* is asked once, while the helper works.

        Whatever is raised on the way, the command has not run, or has ended.
        """
        if sys.platform not in ("linux", "darwin"):
            raise HostError("this version runs on Linux and macOS only; on other systems nothing is run unconfined")
        if "NETSANDBOX_SESSION" in os.environ:
            raise HostError("this is a session of netsandbox already; start the second one outside of it")
        if self.settings.debug or self.settings.debug_log:
            self._denials = self._denial_stream(command.stdio[2])
        try:
            return self._on_this_system(policy, command)
        finally:
            if self._denials is not None:
                self._denials.close()

    def _on_this_system(self, policy: Callable[[], Policy], command: Command) -> int:
        if sys.platform == "darwin":
            from netsandbox.backends.seatbelt.session import MacSession

            return MacSession(self, sealed=self._sealed).run(policy, command)
        check_stdio(command.stdio, (*self.settings.configs, self.settings.audit_log))
        state = session_state_home()
        reservation = Reservation(self.settings.localhost, state)
        try:
            return self._run(reservation, state, policy, command)
        finally:
            reservation.close()
            if self._supervisor is not None and self._supervisor.control is not None:
                self._supervisor.control.close()

    def _run(self, reservation: Reservation, state: str, policy: Callable[[], Policy], command: Command) -> int:
        began = time.monotonic()
        helper = self._start(reservation, state, command)
        try:
            if self.settings.name is not None:
                reservation.take_name(self.settings.name)
            decided = policy()
            if bool(decided.allow_unix_sockets) != self.settings.unix_sockets:
                raise AssertionError("the seccomp filter does not fit the policy")
            if decided.mode != self.settings.mode:
                raise AssertionError("the command is told another mode than the policy's")
            supervisor = self._supervise(helper, decided, reservation, command)
            self.write_end(began, exit_status(supervisor.status))
            if supervisor.exec_errno:
                path = os.fsdecode(command.environment.get(b"PATH", b""))
                raise launch.exec_failure(command.words[0], supervisor.exec_errno, path)
            if supervisor.failure is not None:
                raise launch.set_up_failure(*supervisor.failure)
        finally:
            helper.close()
            if self._log is not None:
                self._log.close()
        return supervisor.status

    def _start(self, reservation: Reservation, state: str, command: Command) -> launch.Helper:
        placed, logs = self.placed_log()
        abi = abi_of(os.uname().machine)
        program = seccomp.build(
            abi, unix_sockets=self.settings.unix_sockets, asked=reservation.asked, watched=self._file_calls()
        )
        wanted = self.settings
        inside = session_environment(
            command.environment,
            self.id,
            mode=wanted.mode,
            name=wanted.name,
            proxy=PROXY_URL if wanted.proxy_env else None,
        )
        helper = launch.Helper(command.words, reservation.environment(inside), command.stdio)
        view = session_view(
            state,
            placed,
            *made_config_folders(),
            *filter(is_made, bytecode_folders()),
            *self.settings.configs,
            self.settings.debug_log,
            logs=logs,
            unused=unused_state_home(),
            covers=reservation.covers(),
            rules=self._file_view(helper, command.environment),
        )
        helper.send_plan(plan.build(view, program, reservation.doors()))
        return helper

    def _file_view(self, helper: launch.Helper, environment: Mapping[bytes, bytes]) -> FileView:
        """While the kernel makes the namespaces."""
        from netsandbox.backends.namespaces.file_view import file_view

        try:
            view = file_view(self.settings.files, environment)
            if self.settings.watch_files:
                from netsandbox.backends.namespaces.watched_paths import watched_places

                self._watched = watched_places(view, environment)
            return view
        except BaseException:
            helper.close()
            raise

    def _file_calls(self) -> tuple[int, ...]:
        """Those that are to be watched."""
        if not self.settings.watch_files:
            return ()
        from netsandbox.backends.namespaces.file_calls import file_calls

        return tuple(file_calls(os.uname().machine))

    def _denial_stream(self, stderr: int) -> DenialStream:
        """Made before the command can put anything at the file's path."""
        from netsandbox.audit.denial_stream import DenialStream, open_debug_log

        path = self.settings.debug_log
        file = None if path is None else open_debug_log(path)
        return DenialStream(stderr if self.settings.debug else None, file, self.id)

    def placed_log(self) -> tuple[str | None, str | None]:
        """Where the user put the log: the file to protect, or the folder of many sessions' logs to hide."""
        if not self.settings.audit_log:
            return None, None
        path = self.log.path
        if path == os.path.abspath(self.settings.audit_log):
            return path, None
        folder = os.path.dirname(path)
        if (os.path.realpath(os.curdir) + "/").startswith(os.path.realpath(folder) + "/"):
            raise UsageError(f"--audit-log {folder} is where the command works; give a folder of its own, or a file")
        return None, folder

    def _supervise(
        self, helper: launch.Helper, policy: Policy, reservation: Reservation, command: Command
    ) -> Supervisor:
        pins = _pins(policy)
        try:
            self.write_start(command.words, policy, reservation, backend="namespaces", name=self.settings.name)
            facts = self.facts(command.words, policy, reservation)
            return self._serve(helper, policy, pins, reservation, facts, command.stdio[2])
        finally:
            for pin in pins:
                pin.close()

    def _serve(
        self,
        helper: launch.Helper,
        policy: Policy,
        pins: list[Pin],
        reservation: Reservation,
        facts: dict[str, object],
        stderr: int,
    ) -> Supervisor:
        from netsandbox.runtime.signals import Forwarder
        from netsandbox.session.host_resolver import (
            host_resolver,  # what the helper need not wait for is imported behind it
        )

        parent, resolver = self.parent(), host_resolver(self.settings)
        self._trust_imports(policy)
        sockets = helper.doors(plan.doors() + reservation.doors())
        reservation.stands()
        forwarder = Forwarder(helper.signal)
        forwarder.hold()
        try:
            helper.go()
            from netsandbox.session.supervisor import Supervisor  # loads while the command starts

            supervisor = self._supervisor = Supervisor(
                helper,
                policy,
                self.log,
                sockets,
                resolver=resolver,
                pins=pins,
                parent=parent,
                bounds=self.settings.bounds,
                reservation=reservation,
                facts=facts,
                stderr=stderr,
                ask=self.settings.ask,
                watched=self._watched,
            )
            forwarder.release()
            supervisor.run()
        finally:
            forwarder.restore()
        return supervisor

    def _trust_imports(self, policy: Policy) -> None:
        """Before the command can write a file: see `netsandbox.runtime.import_sealing`."""
        from netsandbox.runtime import import_sealing

        if policy.allow_unix_sockets:
            __import__("netsandbox.backends.namespaces.unix_connect")
        if self.settings.localhost.guarded:
            __import__("netsandbox.backends.namespaces.bind_guard")
        if policy.allow_unix_sockets or self.settings.localhost.guarded:
            __import__("netsandbox.backends.namespaces.syscall_broker")  # with it ctypes, which is the interpreter's
        if policy.allow_query_types:
            __import__("netsandbox_dns.reply_rebuild")
        if self.settings.ask is not None:
            __import__("netsandbox.session.approvals.inbox")
        if self.settings.watch_files:
            __import__("netsandbox.backends.namespaces.file_watch")
        if self._sealed:
            import_sealing.seal(packages())
        else:
            import_sealing.load_everything()

    def parent(self) -> Parent | None:
        if self.settings.upstream_proxy is None:
            return None
        from netsandbox.session.upstream_proxy import resolve_parent

        return resolve_parent(self.settings.upstream_proxy)

    def write_start(
        self, command: Sequence[str], policy: Policy, reservation: Reservation, *, backend: str, name: str | None
    ) -> None:
        """No command without this record (INV-5)."""
        written = self.log.write(
            "session.start",
            name=name,
            folder=_working_folder(),
            command=command[0],
            args=len(command) - 1,
            mode=policy.mode,
            backend=backend,
            strategy=reservation.settings.strategy,
            window=None if reservation.window is None else str(reservation.window),
            ask=self.settings.ask,
        )
        if not written:
            raise HostError(f"the audit log cannot be written: {self.log.failed}; free space or use --audit-log")

    def facts(self, command: Sequence[str], policy: Policy, reservation: Reservation) -> dict[str, object]:
        """What `netsandbox ps` shows of the session and never changes."""
        window = reservation.window
        return {
            "session": self.id,
            "pid": os.getpid(),
            "command": list(command),
            "folder": _working_folder(),
            "started": time.time(),
            "mode": policy.mode,
            "strategy": reservation.settings.strategy,
            "engine": reservation.settings.engine,
            "window": None if window is None else {"base": window.base, "count": window.count},
            "device": None if window is None else window.device,
            "audit_log": self.log.path,
            "ask": self.settings.ask,
            "control": os.path.join(session_dir(self.id), "control"),
        }

    def write_end(self, began: float, status: int) -> None:
        self.log.write("session.end", status=status, ms=int((time.monotonic() - began) * 1000))


def exit_status(status: int) -> int:
    """A wait status as shells tell it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed, or lies where we may not look
        return None


def _pins(policy: Policy) -> list[Pin]:
    """Taken before the command can put anything else at those paths; an error leaves none behind."""
    if not policy.allow_unix_sockets:
        return []
    from netsandbox.backends.namespaces.unix_pins import Pin

    pins: list[Pin] = []
    try:
        for path in policy.allow_unix_sockets:
            pins.append(Pin(path))
    except BaseException:
        for pin in pins:
            pin.close()
        raise
    return pins
