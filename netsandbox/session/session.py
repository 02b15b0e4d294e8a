"""One session from start to end. This module owns the order of its steps; the backend knows how each is done.

| step | what happens | effect |
|---|---|---|
| prepare | the backend reserves ports and, on Linux, starts the helper | the kernel works while the policy is read |
| policy | the policy is read, once | an error in it ends the session before anything has run |
| confine | the backend fits the sandbox to the policy and takes what it needs | anything missing is an error now |
| record | the log gets `session.start` | no command runs without its record (INV-5) |
| serve | with `serves_first`, doors and control socket open now | |
| seal | nothing that the command can write is imported from now on | it cannot put its code into this process |
| ready | the sandbox and its doors exist | the first instruction already runs behind them (attack 203) |
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
import time

from netsandbox.backends import default_backend, open_backend
from netsandbox.backends.contract import SessionContext
from netsandbox.errors import HostError, NetsandboxError
from netsandbox.frozen import copy_with
from netsandbox.paths import log_path, new_session_id, session_dir, working_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.denials import DenialStream
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.contract import Backend
    from netsandbox.policy.policy import Policy
    from netsandbox.session.supervisor import Supervisor
    from netsandbox.settings import Command, RunSettings

    OpenBackend = Callable[[SessionContext], Backend]


class Session:
    """Runs once. After `run`, `log` has the counts and the denials. *backend* overrides the backend of the settings."""

    def __init__(self, settings: RunSettings, *, sealed: bool, backend: OpenBackend | None = None) -> None:
        self.settings = _with_effective_rules(settings)
        self._sealed = sealed  # whether this process exists only for this session, so that its imports can be sealed
        self._open_backend = backend
        self.id = new_session_id()
        self.log_path = log_path(self.id, settings.audit_log)
        self._log: AuditLog | None = None
        self._denials: DenialStream | None = None
        self._supervisor: Supervisor | None = None
        self.kept: tuple[str, ...] = ()  # new files of its private home

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
            self._log.observer = self._denials
        return self._log

    def run(self, policy: Callable[[], Policy], command: Command) -> int:
        """Run *command* to its end and return its wait status. *policy* is called once, while the kernel works."""
        name = self.settings.backend or default_backend()
        if "NETSANDBOX_SESSION" in os.environ:
            raise HostError("this is a session of netsandbox already; start the second one outside of it")
        context = self.context(command)
        backend = self._open_backend(context) if self._open_backend is not None else open_backend(name, context)
        if self.settings.debug or self.settings.debug_log:
            self._denials = self._denial_stream(context.stderr)
        try:
            return self._run(backend, policy, context)
        finally:
            backend.close()
            if self._supervisor is not None and self._supervisor.control is not None:
                self._supervisor.control.close()
            if self._denials is not None:
                self._denials.close()

    def context(self, command: Command) -> SessionContext:
        return SessionContext(self.id, self.settings, command, self._sealed, lambda: self.log)

    def _run(self, backend: Backend, policy: Callable[[], Policy], context: SessionContext) -> int:
        began = time.monotonic()
        try:
            backend.prepare()
            decided = policy()
            if decided.mode != self.settings.mode:
                raise AssertionError("the command is told another mode than the policy's")
            backend.confine(decided)
            self.write_start(backend, decided, context.command)
            self._warn_of_changed_log(context.stderr)
            try:
                status = self._serve(backend, decided, context)
            except (NetsandboxError, OSError) as error:
                self._write_end(began, error.status if isinstance(error, NetsandboxError) else HostError.status)
                raise
            self._write_end(began, exit_status(status))
            backend.raise_failure()
            self.kept = backend.kept_files()
        finally:
            backend.stop()
            if self._log is not None:
                self._log.close()
        return status

    def _serve(self, backend: Backend, policy: Policy, context: SessionContext) -> int:
        from netsandbox.runtime.inherited import Forwarder

        parent, resolver_files = self._parent_proxy(), self.resolver_files()
        facts = self.facts(backend, policy, context.command)

        def supervise() -> Supervisor:
            from netsandbox.session.supervisor import Supervisor
            from netsandbox.session.upstream import HostResolver, ServiceInputs

            resolver = HostResolver(self.settings.upstream_dns, *resolver_files)
            inputs = ServiceInputs(policy, self.log, resolver, parent)
            self._supervisor = Supervisor(backend, context, inputs, facts)
            return self._supervisor

        if backend.serves_first:
            supervise().open_everything()
        forwarder = Forwarder(backend.signal)
        try:
            self._seal_imports(backend, policy)
            backend.wait_ready()
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

    def _seal_imports(self, backend: Backend, policy: Policy) -> None:
        """Seal imports before the command can write a file; see `netsandbox.runtime.imports`."""
        if policy.allow_query_types:
            __import__("netsandbox_dns.reply_rebuild")
        if self.settings.ask is not None or self.settings.ask_files is not None:
            __import__("netsandbox.session.approvals.inbox")
        backend.seal_imports(policy)

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
        )
        if not written:
            raise HostError(f"the audit log cannot be written: {self.log.failed}; free space or use --audit-log")

    def _warn_of_changed_log(self, stderr: int) -> None:
        """A log that does not end as its last session left it was changed by somebody else."""
        keeper = self.log.keeper
        if keeper is None or keeper.fate == "-":
            return
        fate, _, session = keeper.fate.partition(" ")
        from netsandbox.runtime.inherited import write_notice

        text = f"the log of session {session} at this path is {fate}; `netsandbox audit verify` says more"
        self.log.write("policy", detail=text)
        write_notice(stderr, f"audit log {self.log_path!a}: {text}"[:2000])

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
            "audit_log": self.log.path,
            "ask": self.settings.ask,
            "ask_files": self.settings.ask_files,
            "control": os.path.join(session_dir(self.id), "control"),
        }

    def _write_end(self, began: float, status: int) -> None:
        self.log.write("session.end", status=status, ms=int((time.monotonic() - began) * 1000))


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
