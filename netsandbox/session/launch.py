"""Runs one command in a session of this process, which exists only for it: the command line, or the process that the
Python API starts (`netsandbox.api.supervise`). The outcome is what both report."""

from __future__ import annotations

import os

from netsandbox.frozen import frozen
from netsandbox.policy.variables import VariableRules
from netsandbox.session.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from netsandbox.audit.log import DeniedKey
    from netsandbox.policy.policy import Policy
    from netsandbox.settings import Command, RunSettings


@frozen
class Denial:
    """A refused target, the number of refusals, and the option that would have allowed it (None if no option does).
    `request`: in an inspected connection, the method and the URL of the refused request."""

    host: str | None
    port: int | None
    reason: str
    flag: str | None
    count: int
    request: str | None = None


@frozen
class FileDenial:
    """A file that the command was refused: `operation` is `read`, `execute`, `change`, `make` or `folder`. `rule` is
    the rule of the user that denied it."""

    path: str
    operation: str
    count: int
    reason: str
    rule: str | None = None

    @property
    def flag(self) -> str | None:
        """The option that would have allowed it; None if no option does, or if a rule denied it."""
        from netsandbox.paths import home
        from netsandbox.policy.file_denials import Advice
        from netsandbox.runtime.protection import own_paths

        advice = Advice(os.path.realpath(home()), os.path.realpath, own_paths)
        return None if self.rule else advice.hint(self.path, self.operation, self.reason)


@frozen
class Outcome:
    """The end of a command: `returncode` as in `subprocess` (negative for a signal), and what was refused. `kept` has
    the new files of the session's private home that a user may miss in the real one."""

    returncode: int
    session: str
    audit_log: str
    denied: tuple[Denial, ...] = ()
    denied_files: tuple[FileDenial, ...] = ()
    kept: tuple[str, ...] = ()


def run_session(policy: Callable[[], Policy], settings: RunSettings, command: Command, *, id: str = "") -> Outcome:
    """Run *command* to its end. *policy* is called while the kernel sets the session up; *id* is that of the session.

    Once the command runs, this process can import only netsandbox's own code. Raises `NetsandboxError` if the sandbox
    cannot be set up or the command cannot be executed; the command never runs unconfined instead.
    """
    session = Session(settings, sealed=True, id=id)
    status = session.run(policy, command)
    return outcome_of(session, status)


def outcome_of(session: Session, status: int) -> Outcome:
    return Outcome(
        os.waitstatus_to_exitcode(status),
        session.id,
        session.log.path,
        denials_of(session.log.denied),
        file_denials_of(session.log.denied_files),
        session.kept,
    )


def denials_of(counted: Mapping[DeniedKey, int]) -> tuple[Denial, ...]:
    """What `AuditLog.denied` counted."""
    return tuple(
        Denial(host, port, why, flag, count, request)  # type: ignore[arg-type]
        for (host, port, why, flag, request), count in counted.items()
    )


def file_denials_of(counted: Mapping[tuple[object, ...], int]) -> tuple[FileDenial, ...]:
    """What `AuditLog.denied_files` counted."""
    return tuple(
        FileDenial(path, done, count, why, rule)  # type: ignore[arg-type]
        for (path, done, why, rule), count in counted.items()
    )


def sweep_logs(session: str) -> None:
    """Remove the logs of the oldest sessions now and then, after the command and never before it."""
    if session.endswith("0"):
        from netsandbox.audit.sweep import sweep

        sweep()


def inherited(settings: RunSettings) -> dict[bytes, bytes]:
    """Our environment without the variables that are withheld from the command, and with those that are set for it."""
    inner, _ = VariableRules(settings.variables).split(os.environb)
    return {**inner, **encoded(settings.set_env)}


def encoded(pairs: Iterable[tuple[str, str]]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in pairs}
