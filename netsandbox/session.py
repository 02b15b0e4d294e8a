"""One session from start to end: helper, log, supervisor, last record.

Order matters. The helper is started first, so that the kernel makes the namespaces while we still load the policy and
open the log; the command itself waits for `go`, which is given only when the doors stand, the policy is whole and the
log has its first record. Its first instruction already runs behind the doors (attack 203).
"""

from __future__ import annotations

import os
import sys
import time

from netsandbox import sealing
from netsandbox.audit.places import log_path, new_session_id, state_home
from netsandbox.environment import session_environment
from netsandbox.errors import HostError, UsageError
from netsandbox.host_resolver import host_resolver
from netsandbox.linux import launch, plan, seccomp
from netsandbox.linux.stdio import check_stdio
from netsandbox.linux.syscalls import abi_of
from netsandbox.linux.view import packages, session_view
from netsandbox.signals import Forwarder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.linux.unix_pins import Pin
    from netsandbox.policy.policy import Policy
    from netsandbox.settings import RunSettings
    from netsandbox.supervisor import Supervisor


class Session:
    """Run once. After `run`, `log` has the counts and the denials."""

    def __init__(self, settings: RunSettings, *, sealed: bool) -> None:
        self.settings = settings
        self._sealed = sealed  # whether this process is ours alone, so that its imports can be sealed
        self.id = new_session_id()
        self.log_path = log_path(self.id, settings.audit_log)
        self._log: AuditLog | None = None

    @property
    def log(self) -> AuditLog:
        """Opened when it is first asked for: a log that the user placed must exist before the helper protects it."""
        if self._log is None:
            from netsandbox.audit.log import DEFAULT_CAP, AuditLog

            cap = None if self.settings.audit_log else DEFAULT_CAP
            self._log = AuditLog.open(self.log_path, self.id, cap_bytes=cap)
        return self._log

    def run(
        self,
        policy: Callable[[], Policy],
        command: Sequence[str],
        environment: Mapping[bytes, bytes],
        stdio: tuple[int, int, int],
    ) -> int:
        """Run *command* to its end; its wait status. *policy* is asked once, while the helper works.

        Whatever is raised on the way, the command has not run, or has ended.
        """
        if sys.platform != "linux":
            raise HostError("this version runs on Linux only; on other systems nothing is run unconfined")
        began = time.monotonic()
        helper = self._start(command, environment, stdio)
        try:
            decided = policy()
            if bool(decided.allow_unix_sockets) != self.settings.unix_sockets:
                raise AssertionError("the seccomp filter does not fit the policy")
            if not self._write_start(command, decided):
                raise HostError(f"the audit log cannot be written: {self.log.failed}; free space or use --audit-log")
            supervisor = self._supervise(helper, decided)
            self._write_end(began, supervisor.status)
            if supervisor.exec_errno:
                path = os.fsdecode(environment.get(b"PATH", b""))
                raise launch.exec_failure(command[0], supervisor.exec_errno, path)
            if supervisor.failure is not None:
                raise launch.set_up_failure(*supervisor.failure)
        finally:
            helper.close()
            if self._log is not None:
                self._log.close()
        return supervisor.status

    def _start(
        self, command: Sequence[str], environment: Mapping[bytes, bytes], stdio: tuple[int, int, int]
    ) -> launch.Helper:
        check_stdio(stdio)
        placed, logs = self._placed_log()
        state = state_home()
        try:
            os.makedirs(state, 0o700, exist_ok=True)
        except OSError as error:
            advice = "set XDG_STATE_HOME to a directory that can be written"
            raise HostError(f"cannot make {state}: {error.strerror}; {advice}") from None
        program = seccomp.build(abi_of(os.uname().machine), unix_sockets=self.settings.unix_sockets)
        inside = session_environment(environment, self.id, proxy_env=self.settings.proxy_env)
        helper = launch.Helper(command, inside, stdio)
        helper.send_plan(plan.build(session_view(state, placed, self.settings.config, logs=logs), program))
        return helper

    def _placed_log(self) -> tuple[str | None, str | None]:
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

    def _supervise(self, helper: launch.Helper, policy: Policy) -> Supervisor:
        pins = _pins(policy)
        try:
            return self._serve(helper, policy, pins)
        finally:
            for pin in pins:
                pin.close()

    def _serve(self, helper: launch.Helper, policy: Policy, pins: tuple[Pin, ...]) -> Supervisor:
        parent, resolver = self._parent(), host_resolver(self.settings)
        self._trust_imports(policy)
        sockets = helper.doors()
        forwarder = Forwarder(helper.signal)
        forwarder.hold()
        try:
            helper.go()
            from netsandbox.supervisor import Supervisor  # loads while the command starts

            supervisor = Supervisor(helper, policy, self.log, sockets, resolver=resolver, pins=pins, parent=parent)
            forwarder.release()
            supervisor.run()
        finally:
            forwarder.restore()
        return supervisor

    def _trust_imports(self, policy: Policy) -> None:
        """Before the command can write a file: see `netsandbox.sealing`."""
        if policy.allow_unix_sockets:
            __import__("netsandbox.linux.unix_broker")
        if policy.allow_query_types:
            __import__("netsandbox_dns.forwarding")
        if self._sealed:
            sealing.seal(packages())
        else:
            sealing.load_everything()

    def _parent(self) -> Parent | None:
        if self.settings.upstream_proxy is None:
            return None
        from netsandbox.upstream_proxy import resolve_parent

        return resolve_parent(self.settings.upstream_proxy)

    def _write_start(self, command: Sequence[str], policy: Policy) -> bool:
        return self.log.write(
            "session.start",
            name=self.settings.name,
            command=command[0],
            args=len(command) - 1,
            mode=policy.mode,
            backend="namespaces",
        )

    def _write_end(self, began: float, status: int) -> None:
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self.log.write("session.end", status=code, ms=int((time.monotonic() - began) * 1000))


def _pins(policy: Policy) -> tuple[Pin, ...]:
    """Taken before the command can put anything else at those paths."""
    if not policy.allow_unix_sockets:
        return ()
    from netsandbox.linux.unix_pins import Pin

    return tuple(Pin(path) for path in policy.allow_unix_sockets)
