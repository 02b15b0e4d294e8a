"""One session from start to end. This module owns the order of its steps; the backend knows how each is done.

| step | what happens | effect |
|---|---|---|
| prepare | the backend reserves ports and, on Linux, starts the helper | the kernel works while the policy is read |
| policy | the policy is read, once | an error in it ends the session before anything has run |
| confine | the backend fits the sandbox to the policy and takes what it needs | anything missing is an error now |
| seal | nothing that the command can write is imported from now on | it cannot put its code into this process |
| ready | the sandbox and its doors exist | the first instruction already runs behind them (attack 203) |
| record | the log gets `session.start` | no command runs without its record (INV-5) |
| serve | with `serves_first`, doors and control socket open now, and the two steps above come after this one | |
| start | signals are blocked, the command starts, signals are forwarded | none is lost, none reaches only us |
| run | the supervisor serves until shortly after the command's end | the last replies and records arrive |
| end | `session.end` is written, the log is sealed, reservations are freed | |
| control | the control socket closes last | its end tells `netsandbox stop` that the session has ended |

Rules:
1. After any exception, the command has not run or has ended; it never runs unconfined (INV-1).
2. Imports take most of the launch, so few happen before `start`; modules that the start does not need come after it.
"""

from __future__ import annotations

import os
import sys
import time

from netsandbox.backends import candidates, open_backend
from netsandbox.backends.contract import SessionContext
from netsandbox.errors import BackendUnavailable, HostError, NetsandboxError
from netsandbox.frozen import copy_with
from netsandbox.paths import log_beside, log_path, new_session_id, session_dir, state_home, working_folder
from netsandbox.runtime.imports import Bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.denial_file import DenialFile
    from netsandbox.audit.denials import DenialStream
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.contract import Backend
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.detached import Detached
    from netsandbox.session.inspection import SessionInspection
    from netsandbox.session.supervisor import Supervisor
    from netsandbox.settings import Command, RunSettings

    OpenBackend = Callable[[SessionContext], Backend]


class Session:
    """Runs once. After `run`, `log` has the counts and the denials. *backend* overrides the backend of the settings."""

    def __init__(
        self, settings: RunSettings, *, sealed: bool, backend: OpenBackend | None = None, id: str = ""
    ) -> None:
        self.settings = _with_effective_rules(settings)
        self._sealed = sealed  # whether this process exists only for this session, so that its imports can be sealed
        self._open_backend = backend
        self.id = id or new_session_id()
        self.log_path = log_path(self.id, settings.audit_log)
        self._log: AuditLog | None = None
        self._denials: DenialStream | None = None
        self._denial_file: DenialFile | None = None
        self._supervisor: Supervisor | None = None
        self._backend: Backend | None = None
        self._parent: Parent | None = None
        self._unavailable: list[str] = []  # why backends that were tried could not be made
        self._inspection: SessionInspection | None = None
        self.kept: tuple[str, ...] = ()  # new files of its private home

    def _choose_log(self) -> None:
        """Take a file beside the log that a configuration file names, if another session writes that one now."""
        from netsandbox.audit.log_file import LogInUse

        try:
            _ = self.log
        except LogInUse:
            self.log_path = log_beside(self.log_path, self.id)
            self.settings = copy_with(self.settings, audit_log=self.log_path)

    @property
    def log(self) -> AuditLog:
        """Opened at first use, since a log that the user placed must exist before the sandbox protects it."""
        if self._log is None:
            from netsandbox.audit.log import AuditLog

            cap = None if self.settings.audit_log else self.settings.bounds.log_megabytes << 20
            self._log = AuditLog.open(self.log_path, self.id, cap_bytes=cap)
            if self.settings.audit_log:
                from netsandbox.audit.kept_head import HeadKeeper
                from netsandbox.audit.placed_log import note

                note(self.id, self.log_path)
                self._log.keeper = HeadKeeper(self.log_path, self.id, self._log.head)
            self._log.observer = self._denial_file or self._denials
        return self._log

    def run(self, policy: Callable[[], Policy], command: Command) -> int:
        """Run *command* to its end and return its wait status. *policy* is called once, while the kernel works."""
        names = candidates(self.settings.backend)
        if "NETSANDBOX_SESSION" in os.environ:
            raise HostError(
                "this is a session of netsandbox already, and the kernel lets only one receive the calls of its"
                " programs; start the second one outside of it"
            )
        if self.settings.audit_log and self.settings.log_may_move:
            self._choose_log()
        if self.settings.inspect:
            from netsandbox.session.inspection import start_inspection

            self._inspection, self.settings, command = start_inspection(self.id, self.settings, command)
        context = self.context(command)
        self._settle_killed(context.stderr)
        if self.settings.debug or self.settings.debug_log:
            self._denials = self._denial_stream(context.stderr)
        if command.detached is not None:
            command.detached.open(self.id)
        try:
            return self._run_first(names, _once(policy), context)
        finally:
            if self._inspection is not None:
                self._inspection.close(context.stderr)
            if self._backend is not None:
                self._backend.close()
            for stream in (self._denials, self._denial_file):
                if stream is not None:
                    stream.close()  # its last line belongs to the output of a detached session
            if command.detached is not None:
                command.detached.close()
            if self._supervisor is not None and self._supervisor.control is not None:
                self._supervisor.control.close()

    def _settle_killed(self, stderr: int) -> None:
        """Look after sessions whose supervisor was killed. Most often no other session runs, and nothing is loaded."""
        try:
            names = os.listdir(os.path.join(state_home(), "unsettled"))
        except OSError:
            return
        if names:
            from netsandbox.backends.linux.unsettled import settle_killed
            from netsandbox.runtime.inherited import write_notice

            for line in settle_killed(state_home()):
                write_notice(stderr, line)

    def _run_first(self, names: tuple[str, ...], policy: Callable[[], Policy], context: SessionContext) -> int:
        """Run with the first backend that this machine can make. Each is really tried, and nothing has run before."""
        for number, name in enumerate(names, 1):
            made = self._open_backend(context) if self._open_backend is not None else open_backend(name, context)
            backend = self._backend = made
            if self.settings.denial_file is not None and self._denial_file is None:
                from netsandbox.audit.denial_file import DenialFile

                self._denial_file = DenialFile(self.settings.denial_file, self._lineage, self._denials)
            try:
                return self._run(backend, policy, context)
            except BackendUnavailable as error:
                if number == len(names):
                    raise _no_backend(self._unavailable, error) from None
                self._unavailable.append(str(error))
                backend.close()
                self._say_weaker(names[number], context.stderr)
        raise AssertionError("there is no backend to try")

    def _lineage(self, pid: int) -> list[int]:
        assert self._backend is not None
        return self._backend.lineage(pid)

    def _say_weaker(self, name: str, stderr: int) -> None:
        """One line at a terminal, unless the session is quiet."""
        if self.settings.verbose or (self.settings.announce and os.isatty(stderr)):
            from netsandbox.runtime.inherited import write_notice

            write_notice(
                stderr,
                f"user namespaces are not available here, so this session uses the weaker backend {name}: {WEAKER}",
            )

    def context(self, command: Command) -> SessionContext:
        detached = command.detached
        started = None if detached is None else lambda: self._on_start(detached)
        return SessionContext(self.id, self.settings, command, self._sealed, lambda: self.log, started)

    def _on_start(self, detached: Detached) -> None:
        """The command runs. The process that waits for that may look for the session at once."""
        assert self._supervisor is not None
        assert self._backend is not None
        self._supervisor.open_control()
        detached.started(self.id, self._backend.reservation.name)

    def _run(self, backend: Backend, policy: Callable[[], Policy], context: SessionContext) -> int:
        began = time.monotonic()
        is_final = True
        try:
            backend.prepare()
            decided = policy()
            if decided.mode != self.settings.mode:
                raise AssertionError("the command is told another mode than the policy's")
            backend.confine(decided)
            self._parent = self._parent_proxy()  # before the imports are sealed
            if self._inspection is not None:
                self._inspection.load()
            if not backend.serves_first:
                self._await(backend, decided)
            self.write_start(backend, decided, context.command)
            self._warn_of_changed_log(context.stderr)
            self.log.on_failure = lambda why: self._tell_of_log(context.stderr, why)
            try:
                status = self._serve(backend, decided, context)
            except (NetsandboxError, OSError) as error:
                status = error.status if isinstance(error, NetsandboxError) else HostError.status
                self._write_end(backend, began, status)
                raise
            failed = self.log.failed
            self._write_end(backend, began, exit_status(status))
            if failed is not None:
                self._tell_of_log(context.stderr, failed)
            backend.raise_failure()
            self.kept = backend.kept_files()
        except BackendUnavailable:
            is_final = False
            raise
        finally:
            backend.stop()
            if self._log is not None and is_final:
                self._log.close()
        return status

    def _await(self, backend: Backend, policy: Policy) -> None:
        """Seal the imports while the kernel makes the sandbox, then wait for it. Nothing has run if it cannot be made,
        so another backend may import what it needs."""
        _ = self.log
        undo = self._seal_imports(backend, policy)
        try:
            backend.wait_ready()
        except BackendUnavailable:
            undo()
            raise

    def _serve(self, backend: Backend, policy: Policy, context: SessionContext) -> int:
        from netsandbox.runtime.inherited import Forwarder

        parent, resolver_files = self._parent, self.resolver_files()
        facts = self.facts(backend, policy, context.command)

        def supervise() -> Supervisor:
            from netsandbox.session.supervisor import Supervisor
            from netsandbox.session.upstream import HostResolver, ServiceInputs

            resolver = HostResolver(self.settings.upstream_dns, *resolver_files)
            inputs = ServiceInputs(policy, self.log, resolver, parent, None, self._inspection, self._denial_file)
            self._supervisor = Supervisor(backend, context, inputs, facts)
            return self._supervisor

        if backend.serves_first:
            supervise().open_everything()
        forwarder = Forwarder(backend.signal)
        try:
            if backend.serves_first:
                self._seal_imports(backend, policy)
                backend.wait_ready()
            if self._inspection is not None:
                self._inspection.finish()
            forwarder.hold()
            backend.start()
            supervisor = self._supervisor or supervise()  # imported while the command starts
            forwarder.release()
            supervisor.run()
        finally:
            forwarder.restore()
            if self._supervisor is not None:
                self._supervisor.close()
        return supervisor.status

    def _parent_proxy(self) -> Parent | None:
        """The proxy of `--upstream-proxy`; it is never inherited from the environment."""
        if self.settings.upstream_proxy is None:
            return None
        from netsandbox.session.upstream import resolve_parent

        return resolve_parent(self.settings.upstream_proxy)

    def resolver_files(self) -> tuple[str, ...]:
        """The host's resolver configuration as it is before the command runs: a command of root could put other files
        in its place, and with them a name server of its choice for names that are allowed."""
        if self.settings.upstream_dns:  # these servers are asked alone
            return ()
        return _content("/etc/resolv.conf"), _content("/etc/hosts")

    def _seal_imports(self, backend: Backend, policy: Policy) -> Callable[[], None]:
        """Seal imports before the command can write a file (`netsandbox.runtime.imports`). Returns what undoes it."""
        finders = sys.meta_path[:]
        if policy.allow_query_types:
            __import__("netsandbox_dns.reply_rebuild")
        if self.settings.ask is not None or self.settings.ask_files is not None:
            __import__("netsandbox.session.approvals.inbox")
            __import__("netsandbox.session.approvals.desktop")
        if policy.budgets:
            __import__("netsandbox.runtime.http.metered_exchange")
        backend.seal_imports(policy)

        def undo() -> None:
            sys.meta_path[:] = [finder for finder in finders if not isinstance(finder, Bundle)]

        return undo

    def _denial_stream(self, stderr: int) -> DenialStream:
        """Opened before the command can create anything at the file's path."""
        from netsandbox.audit.denials import DenialStream, open_debug_log

        path = self.settings.debug_log
        file = None if path is None else open_debug_log(path)
        return DenialStream(stderr if self.settings.debug else None, file, self.id)

    def write_start(self, backend: Backend, policy: Policy, command: Command) -> None:
        """Write `session.start`; no command runs without it (INV-5)."""
        held = backend.reservation
        written = self.log.write(
            "session.start",
            name=backend.recorded_name,
            folder=working_folder(),
            command=command.words[0],
            args=len(command.words) - 1,
            mode=policy.mode,
            backend=backend.name,
            strategy=held.settings.strategy,
            window=None if held.window is None else str(held.window),
            ask=self.settings.ask,
            ask_files=self.settings.ask_files,
            budgets=[rule.text for rule in policy.budgets] or None,
        )
        if not written:
            raise HostError(f"the audit log cannot be written: {self.log.failed}; free space or use --audit-log")

    def _warn_of_changed_log(self, stderr: int) -> None:
        """A log that does not end as its last session left it was changed by somebody else."""
        text = "" if self.log.keeper is None else self.log.keeper.change
        if text:
            from netsandbox.runtime.inherited import write_notice

            self.log.write("policy", detail=text)
            write_notice(stderr, f"audit log {self.log_path!a}: {text}"[:2000])

    def _tell_of_log(self, stderr: int, why: str) -> None:
        from netsandbox.runtime.inherited import write_notice

        advice = "what is tried from then on is refused; free space, or place the log elsewhere with --audit-log"
        write_notice(stderr, f"the audit log cannot be written: {why}; {advice}"[:2000])

    def facts(self, backend: Backend, policy: Policy, command: Command) -> dict[str, object]:
        """The part of a session's status that never changes."""
        held = backend.reservation
        window = held.window
        return {
            "session": self.id,
            "pid": os.getpid(),
            "command": list(command.words),
            "folder": working_folder(),
            "started": time.time(),
            "mode": policy.mode,
            "strategy": held.settings.strategy,
            "engine": held.settings.engine,
            "window": None if window is None else {"base": window.base, "count": window.count},
            "device": None if window is None else window.device,
            "publishes": held.settings.publishes,
            "audit_log": self.log.path,
            "ask": self.settings.ask,
            "ask_files": self.settings.ask_files,
            "control": os.path.join(session_dir(self.id), "control"),
        }

    def _write_end(self, backend: Backend, began: float, status: int) -> None:
        name = backend.reservation.made_name
        used = None if self._supervisor is None else self._supervisor.budgets()
        took = int((time.monotonic() - began) * 1000)
        self.log.write("session.end", name=name, status=status, ms=took, budgets=used)


WEAKER = (
    "processes of the host are visible, servers are on the host's loopback, and some files cannot be protected;"
    " `netsandbox doctor` lists the differences, and `netsandbox doctor --fix` shows how to get namespaces"
)


def _once(policy: Callable[[], Policy]) -> Callable[[], Policy]:
    """*policy*, called at most once however many backends are tried."""
    made: list[Policy] = []

    def decided() -> Policy:
        if not made:
            made.append(policy())
        return made[0]

    return decided


def _no_backend(earlier: list[str], last: BackendUnavailable) -> HostError:
    if not earlier:
        return last
    return HostError(f"no backend can be used here. namespaces: {'; '.join(earlier)}. broker: {last}")


def _with_effective_rules(settings: RunSettings) -> RunSettings:
    """Wildcards and denies are resolved once, before a backend looks at the rules."""
    if not settings.files.needs_resolving:
        return settings
    from netsandbox.runtime.effective_rules import effective

    return copy_with(settings, files=effective(settings.files).rules)


def exit_status(status: int) -> int:
    """The exit status of a wait status, as shells compute it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:  # names then fail to resolve, which denies
        return ""
