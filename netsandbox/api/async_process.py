"""A command in a session, for asyncio: as `asyncio.subprocess.Process`, with the session's outcome.

Whatever ends a task, no session stays behind: `async with` ends it, and so does a cancelled `Sandbox.arun`.
"""

from __future__ import annotations

import asyncio
import locale
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from netsandbox.api.channel import Channel
from netsandbox.api.process import GRACE, TimeoutExpired
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.runtime.inherited import FORWARDED
from netsandbox.session.launch import Outcome


class AsyncProcess:
    """A running command. Made by `Sandbox.apopen`. `outcome` is None while it runs."""

    def __init__(self, process: Process, channel: Channel, args: Sequence[str]) -> None:
        self._process = process
        self._channel = channel
        self._is_cut = False
        self.args = args
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self.session = channel.session
        self.audit_log = channel.audit_log
        self.returncode: int | None = None
        self.outcome: Outcome | None = None

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()

    async def wait(self) -> int:
        """The status of the command. Raises the error if the session or the command could not be started."""
        return self._settled(await self._process.wait())

    async def communicate(self, input: bytes | None = None) -> tuple[bytes | None, bytes | None]:
        """Send *input*, and read everything until the command ends."""
        output = await self._process.communicate(input)
        await self.wait()
        return output

    def send_signal(self, sig: int) -> None:
        if sig == signal.SIGKILL:
            self.kill()
        elif sig not in FORWARDED:
            raise ValueError(f"signal {sig} is not passed on to the command; use INT, TERM, HUP, QUIT, USR1 or USR2")
        elif self._process.returncode is None:
            self._process.send_signal(sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the session, whose supervisor then seals the log. A second call kills the supervisor too."""
        if self._is_cut and self._process.returncode is None:
            self._process.kill()
        self._is_cut = True
        self._channel.cut()

    async def end(self) -> None:
        """Kill the session if it still runs, and wait for its end."""
        if self.returncode is not None:
            return
        self.kill()
        ended = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait({ended}, timeout=GRACE)
        finally:
            if not ended.done():  # it hangs, or our task was cancelled once more
                self.kill()
        try:
            self._settled(await ended)
        except NetsandboxError:  # it was not started, and need not be ended
            pass

    def _settled(self, status: int) -> int:
        if self.returncode is None:
            try:
                self.outcome = self._channel.outcome(status)
                self.returncode = self.outcome.returncode
            except NetsandboxError as error:
                self.returncode = error.status
                raise
            finally:
                self._channel.close()
        return self.returncode


async def start(channel: Channel, args: Sequence[str], **options: Any) -> AsyncProcess:
    try:
        process = await asyncio.create_subprocess_exec(*channel.words, pass_fds=channel.descriptors, **options)
    except BaseException:
        channel.close()
        raise
    channel.started()
    return AsyncProcess(process, channel, args)


async def communicated(
    process: AsyncProcess, input: bytes | None, timeout: float | None
) -> tuple[bytes | None, bytes | None]:
    """`communicate` with a limit. The pipes are read on after it, so that the output so far is not lost."""
    reading = asyncio.ensure_future(process.communicate(input))
    try:
        done, _ = await asyncio.wait({reading}, timeout=timeout)
        if done:
            return await reading
        await process.end()
        output = await reading
    except BaseException:
        reading.cancel()
        raise
    assert timeout is not None
    raised = TimeoutExpired(process.args, timeout, *output)
    raised.outcome = process.outcome
    raise raised


@frozen
class Coding:
    """How output becomes text, as in `subprocess`."""

    text: bool | None
    encoding: str | None
    errors: str | None

    def encoded(self, data: str | bytes | None) -> bytes | None:
        return data.encode(*self._names()) if isinstance(data, str) else data

    def decoded(self, data: bytes | None) -> str | bytes | None:
        if data is None or not (self.text or self.encoding or self.errors):
            return data
        return data.decode(*self._names()).replace("\r\n", "\n").replace("\r", "\n")

    def _names(self) -> tuple[str, str]:
        return self.encoding or locale.getencoding(), self.errors or "strict"
