"""The Python API, which the command line uses too.

with Sandbox(Policy(allow_domains=["example.com"])) as box:
    result = box.run(["curl", "-fsS", "https://example.com/"])
    print(result.returncode, result.denied)
"""

from __future__ import annotations

import os

from netsandbox_portmap.localhost_settings import check

from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with, frozen
from netsandbox.paths import home
from netsandbox.policy.file_rules import FILE_MODES, PROJECT, FileRules, path_rule
from netsandbox.policy.variables import VariableRules
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from netsandbox.policy.file_rules import PathRule
    from netsandbox.policy.policy import Policy


@frozen
class Denial:
    """A refused target, the number of refusals, and the option that would have allowed it (None if no option does)."""

    host: str | None
    port: int | None
    reason: str
    flag: str | None
    count: int


@frozen
class FileDenial:
    """A file that the command was refused: `operation` is `read`, `execute`, `change`, `make` or `folder`. `rule` is
    the rule of the user that denied it."""

    path: str
    operation: str
    count: int
    reason: str
    rule: str | None = None


@frozen
class Result:
    """The end of a command: `returncode` as in `subprocess` (negative for a signal), and what was refused. `kept` has
    the new files of the session's private home that a user may miss in the real one."""

    returncode: int
    session: str
    audit_log: str
    denied: tuple[Denial, ...]
    denied_files: tuple[FileDenial, ...] = ()
    kept: tuple[str, ...] = ()


class Sandbox:
    """Runs commands under one policy. Each run is a separate session with a separate network and log."""

    def __init__(self, policy: Policy, settings: RunSettings | None = None) -> None:
        base = settings or RunSettings()
        check(base.localhost)
        fitting = copy_with(base, mode=policy.mode, unix_sockets=policy.allow_unix_sockets)
        self._start(lambda: policy, fitting, sealed=False)

    @classmethod
    def deferred(cls, policy: Callable[[], Policy], settings: RunSettings) -> Sandbox:
        """A sandbox for a process that exists only for this run, such as the command line.

        *policy* is called while the kernel sets the session up. Once the command runs, this process can import only
        netsandbox's own code.
        """
        box = cls.__new__(cls)
        box._start(policy, settings, sealed=True)
        return box

    def _start(self, policy: Callable[[], Policy], settings: RunSettings, *, sealed: bool) -> None:
        self._sealed = sealed
        self._policy = policy
        self.settings = settings
        self._open = True

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False

    def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: int = 0,
        stdout: int = 1,
        stderr: int = 2,
    ) -> Result:
        """Run *command* and wait for it.

        *stdin*, *stdout* and *stderr* are descriptors. *env* is passed unchanged; its default is our environment
        without variables that look like secrets. Raises `netsandbox.errors.NetsandboxError` if the sandbox cannot be
        set up or the command cannot be executed; the command never runs unconfined instead.
        """
        if not self._open:
            raise RuntimeError("this Sandbox is closed; make a new one")
        if not command or isinstance(command, (str, bytes)):
            raise TypeError("command is a list of strings, the program first")
        outer = inherited(self.settings) if env is None else _encoded(env.items())
        session = Session(self.settings, sealed=self._sealed)
        status = session.run(self._policy, Command(command, outer, (stdin, stdout, stderr)))
        return Result(
            os.waitstatus_to_exitcode(status),
            session.id,
            session.log.path,
            tuple(Denial(*key, count) for key, count in session.log.denied.items()),  # type: ignore[arg-type]
            tuple(
                FileDenial(path, done, count, why, rule)  # type: ignore[arg-type]
                for (path, done, why, rule), count in session.log.denied_files.items()
            ),
            session.kept,
        )


def file_rules(
    mode: str = PROJECT,
    *,
    allow_read: Iterable[str] = (),
    allow_write: Iterable[str] = (),
    deny_read: Iterable[str] = (),
    deny_write: Iterable[str] = (),
    share_tmp: bool = False,
) -> FileRules:
    """Rules for `RunSettings(files=…)`, as the command line has them: `~` is the home, a relative path begins at the
    working folder, `*` and `?` are wildcards. A path that does not exist is not shown, even if it appears later."""
    if mode not in FILE_MODES:
        raise UsageError(f"mode: {mode!a} is no mode of files; write one of {', '.join(FILE_MODES)}")

    def rules(name: str, texts: Iterable[str]) -> tuple[PathRule, ...]:
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"{name} is a list of paths")
        return tuple(path_rule(os.fspath(text), name, os.getcwd(), home) for text in texts)

    return FileRules(
        allow_read=rules("allow_read", allow_read),
        allow_write=rules("allow_write", allow_write),
        deny_read=rules("deny_read", deny_read),
        deny_write=rules("deny_write", deny_write),
        mode=mode,
        share_tmp=share_tmp,
    )


def inherited(settings: RunSettings) -> dict[bytes, bytes]:
    """Our environment without the variables that are withheld from the command, and with those that are set for it."""
    inner, _ = VariableRules(settings.variables).split(os.environb)
    return {**inner, **_encoded(settings.set_env)}


def _encoded(pairs: Iterable[tuple[str, str]]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in pairs}
