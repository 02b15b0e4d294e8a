"""`Sandbox`: runs commands under one policy, with the meaning of `subprocess`.

>>> from netsandbox import Policy, Sandbox
>>> box = Sandbox(Policy(allow_domains=["example.com"]))
>>> result = box.run(["sh", "-c", "echo hello; getent hosts example.org"], capture_output=True, text=True)
>>> result.stdout, result.returncode
('hello\\n', 2)
>>> [(denial.host, denial.reason, denial.flag) for denial in result.denied]
[('example.org', 'not-allowed', '--allow-domain example.org')]

Errors are those of `subprocess`, and name what was refused:

>>> import subprocess
>>> try:
...     box.run(["getent", "hosts", "example.org"], check=True)
... except subprocess.CalledProcessError as error:
...     print(error)
Command '['getent', 'hosts', 'example.org']' returned non-zero exit status 2.
netsandbox: denied example.org (not-allowed); allow it with --allow-domain example.org
>>> box.run(["sleep", "60"], timeout=0.5)
Traceback (most recent call last):
netsandbox.api.process.TimeoutExpired: Command '['sleep', '60']' timed out after 0.5 seconds

A command that runs on, with pipes:

>>> with box.popen(["tr", "a-z", "A-Z"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
...     print(process.communicate("hello")[0])
HELLO

The same for asyncio:

>>> import asyncio
>>> asyncio.run(box.arun(["cat"], input="hello", capture_output=True, text=True)).stdout
'hello'
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, overload

from netsandbox_portmap.localhost_settings import check as check_localhost

from netsandbox.api.channel import Channel
from netsandbox.api.process import Popen, Result, TimeoutExpired
from netsandbox.api.request_rules import with_secrets
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.paths import home
from netsandbox.policy.file_rules import FILE_MODES, PROJECT, FileRules, PathRule, path_rule
from netsandbox.policy.policy import Policy
from netsandbox.settings import RunSettings

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from netsandbox.api.async_process import AsyncProcess

    Word = str | os.PathLike[str]
    Stream = int | IO[Any] | None  # as in `subprocess`: a descriptor, a file, PIPE, DEVNULL, STDOUT, or None: ours

    class Options(TypedDict, total=False):
        """Where a command runs and what its standard streams are."""

        stdin: Stream
        stdout: Stream
        stderr: Stream
        cwd: Word | None

    class RunOptions(Options, total=False):
        env: Mapping[str, str] | None
        capture_output: bool
        timeout: float | None
        check: bool
        errors: str | None


class Sandbox:
    """Runs commands under one policy. Each command has a separate session with a separate network and log.

    `cwd` is the folder of the project (ours by default). `env` is passed as it is; without it the command gets our
    environment without variables that look like secrets. The command inherits no descriptor but its standard streams.
    `netsandbox.errors.NetsandboxError` is raised if the sandbox cannot be set up or the command cannot be executed; the
    command never runs unconfined instead. A missing command is a `FileNotFoundError` too.

    *secrets* are variables of ours whose values stay outside, as `--secret` has them: `GITHUB_TOKEN@api.example.com`.
    The command gets a placeholder, and the host gets the value.

    Every method may be called in any thread, in several at once, and while an event loop runs.
    """

    def __init__(self, policy: Policy, settings: RunSettings | None = None, *, secrets: Iterable[str] = ()) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy is a netsandbox.Policy, not {type(policy).__name__}; write Sandbox(Policy(…))")
        base = settings or RunSettings()
        check_localhost(base.localhost)
        self.policy, rules = with_secrets(policy, secrets)
        self.settings = copy_with(
            base,
            mode=policy.mode,
            unix_sockets=policy.allow_unix_sockets,
            inspect=self.policy.inspection is not None,
            secret_rules=rules,
        )
        self._open = True

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False

    # As in `subprocess`

    @overload
    def run(
        self, args: Sequence[Word], *, text: Literal[True], input: str | None = None, **options: Unpack[RunOptions]
    ) -> Result[str]: ...
    @overload
    def run(
        self, args: Sequence[Word], *, encoding: str, input: str | None = None, **options: Unpack[RunOptions]
    ) -> Result[str]: ...
    @overload
    def run(
        self, args: Sequence[Word], *, text: Literal[False] | None = None, input: bytes | None = None,
        **options: Unpack[RunOptions],
    ) -> Result[bytes]: ...  # fmt: skip

    def run(
        self,
        args: Sequence[Word],
        *,
        input: str | bytes | None = None,
        capture_output: bool = False,
        timeout: float | None = None,
        check: bool = False,
        **options: Any,
    ) -> Result[Any]:
        """Run a command and wait for it, as `subprocess.run` does. `TimeoutExpired` has the output so far; the session
        is killed then."""
        _set_streams(options, input, capture_output=capture_output)
        with self.popen(args, **options) as process:
            try:
                output, errors = process.communicate(input, timeout)
            except subprocess.TimeoutExpired as late:
                process.end()
                assert timeout is not None  # `late` has what was left of it when the pipes were closed
                raised = TimeoutExpired(process.args, timeout, late.output, late.stderr)
                raised.outcome = process.outcome
                raise raised from None
            except BaseException:
                process.end()
                raise
        assert process.outcome is not None
        return _checked(Result(_words(args), process.outcome, output, errors), check=check)

    @overload
    def popen(
        self, args: Sequence[Word], *, text: Literal[True], errors: str | None = None, bufsize: int = -1,
        env: Mapping[str, str] | None = None, **options: Unpack[Options],
    ) -> Popen[str]: ...  # fmt: skip
    @overload
    def popen(
        self, args: Sequence[Word], *, encoding: str, errors: str | None = None, bufsize: int = -1,
        env: Mapping[str, str] | None = None, **options: Unpack[Options],
    ) -> Popen[str]: ...  # fmt: skip
    @overload
    def popen(
        self, args: Sequence[Word], *, text: Literal[False] | None = None, bufsize: int = -1,
        env: Mapping[str, str] | None = None, **options: Unpack[Options],
    ) -> Popen[bytes]: ...  # fmt: skip

    def popen(
        self,
        args: Sequence[Word],
        *,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Popen[Any]:
        """Start a command, as `subprocess.Popen` does."""
        words = _words(args)
        return Popen(self._channel(words, env), words, **_known(options, "text", "encoding", "errors", "bufsize"))

    # For asyncio

    @overload
    async def arun(
        self, args: Sequence[Word], *, text: Literal[True], input: str | None = None, **options: Unpack[RunOptions]
    ) -> Result[str]: ...
    @overload
    async def arun(
        self, args: Sequence[Word], *, encoding: str, input: str | None = None, **options: Unpack[RunOptions]
    ) -> Result[str]: ...
    @overload
    async def arun(
        self, args: Sequence[Word], *, text: Literal[False] | None = None, input: bytes | None = None,
        **options: Unpack[RunOptions],
    ) -> Result[bytes]: ...  # fmt: skip

    async def arun(
        self,
        args: Sequence[Word],
        *,
        input: str | bytes | None = None,
        capture_output: bool = False,
        timeout: float | None = None,
        check: bool = False,
        **options: Any,
    ) -> Result[Any]:
        """`run` for asyncio. If the task is cancelled, the session is killed."""
        from netsandbox.api.async_process import Coding, communicated

        coding = Coding(options.pop("text", None), options.pop("encoding", None), options.pop("errors", None))
        _set_streams(options, input, capture_output=capture_output)
        async with await self.apopen(args, **options) as process:
            output, errors = await communicated(process, coding.encoded(input), timeout)
        assert process.outcome is not None
        result: Result[Any] = Result(process.args, process.outcome, coding.decoded(output), coding.decoded(errors))
        return _checked(result, check=check)

    async def apopen(
        self, args: Sequence[Word], *, env: Mapping[str, str] | None = None, **options: Unpack[Options]
    ) -> AsyncProcess:
        """Start a command, as `asyncio.create_subprocess_exec` does. With `async with`, the session ends with the
        block."""
        from netsandbox.api.async_process import start

        words = _words(args)
        return await start(self._channel(words, env), words, **_known(dict(options)))

    def _channel(self, words: Sequence[str], env: Mapping[str, str] | None) -> Channel:
        if not self._open:
            raise RuntimeError("this Sandbox is closed; make a new one")
        return Channel(self.policy, self.settings, words, env)


def _words(args: Sequence[Word]) -> list[str]:
    if not args or isinstance(args, (str, bytes)):
        raise TypeError("args is a list of strings, the program first")
    return [os.fspath(word) for word in args]


def _known(options: dict[str, Any], *more: str) -> dict[str, Any]:
    unknown = sorted(set(options) - {"stdin", "stdout", "stderr", "cwd", *more})
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not an option of a sandboxed command; see help(netsandbox.Sandbox)")
    return options


def _set_streams(options: dict[str, Any], input: str | bytes | None, *, capture_output: bool) -> None:
    """Turn `input` and `capture_output` into pipes."""
    if input is not None:
        if options.get("stdin") is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        options["stdin"] = subprocess.PIPE
    if capture_output:
        if options.get("stdout") is not None or options.get("stderr") is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        options["stdout"] = options["stderr"] = subprocess.PIPE


def _checked(result: Result[Any], *, check: bool) -> Result[Any]:
    if check:
        result.check_returncode()
    return result


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
        raise UsageError(f"mode: {mode!a} is not a mode of files; write one of {', '.join(FILE_MODES)}")

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
