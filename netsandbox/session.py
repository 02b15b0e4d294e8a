"""One session from start to end: log, plan, helper, supervisor, last record.

Order matters. The log is open before anything can happen, the session stands before the command may start, and the
command's first instruction already runs behind the doors (attack 203).
"""

from __future__ import annotations

import _socket
import os
import time

from netsandbox.audit.log import DEFAULT_CAP, AuditLog
from netsandbox.audit.places import log_path, new_session_id, state_home
from netsandbox.environment import session_environment
from netsandbox.errors import HostError
from netsandbox.linux import launch, plan, seccomp
from netsandbox.linux.syscalls import abi_of
from netsandbox.linux.view import session_view
from netsandbox.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.policy.policy import Policy
    from netsandbox.settings import RunSettings


class Session:
    """Run once. After `run`: `status` (a wait status), `log` with its counts and denials."""

    def __init__(self, policy: Policy, settings: RunSettings) -> None:
        self.policy = policy
        self.settings = settings
        self.id = new_session_id()
        self.log = AuditLog.open(
            log_path(self.id, settings.audit_log),
            self.id,
            cap_bytes=None if settings.audit_log else DEFAULT_CAP,
        )
        self.status = 0

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[bytes, bytes],
        stdio: tuple[int, int, int] = (0, 1, 2),
    ) -> int:
        """Run *command* to its end; its wait status. Raises before it started, or when it could not be executed."""
        began = time.monotonic()
        inside = session_environment(environment, self.id, proxy_env=self.settings.proxy_env)
        helper = launch.Helper(command, inside, stdio)
        try:
            if not self._begin(command):
                raise HostError(f"the audit log cannot be written: {self.log.failed}; free space or use --audit-log")
            supervisor = self._supervise(helper)
            self.status = supervisor.run()
            self._end(began, self.status)
            if supervisor.exec_errno:
                raise launch.exec_failure(command[0], supervisor.exec_errno)
            if supervisor.failure is not None:
                raise launch.set_up_failure(*supervisor.failure)
        finally:
            helper.close()
            self.log.close()
        return self.status

    def _begin(self, command: Sequence[str]) -> bool:
        return self.log.write(
            "session.start",
            name=self.settings.name,
            command=command[0],
            args=len(command) - 1,
            mode=self.policy.mode,
            backend="namespaces",
        )

    def _supervise(self, helper: launch.Helper) -> Supervisor:
        unix_sockets = bool(self.policy.allow_unix_sockets)
        program = seccomp.build(abi_of(os.uname().machine), unix_sockets=unix_sockets)
        view = session_view(state_home(), self.log.path if self.settings.audit_log else None)
        descriptors = helper.prepare(plan.build(view, program))
        sockets = {
            door.name: _socket.socket(door.family, door.kind, 0, descriptor)
            for door, descriptor in zip(plan.doors(), descriptors, strict=True)
        }
        supervisor = Supervisor(helper, self.policy, self.log, self.settings, sockets)
        helper.go()
        return supervisor

    def _end(self, began: float, status: int) -> None:
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self.log.write("session.end", status=code, ms=int((time.monotonic() - began) * 1000))
