"""What a Linux backend does with its helper while the command runs: its messages, the report of `exec`, the spawner."""

from __future__ import annotations

import _socket
import os
import select
import sys

from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.localhost_service import LocalhostService

    from netsandbox.backends.contract import FileQuestions
    from netsandbox.backends.linux.helper_process import Message
    from netsandbox.backends.linux.linux_backend import LinuxBackend
    from netsandbox.backends.linux.local_calls import LocalCalls
    from netsandbox.runtime.loop import Loop


PATIENCE = 2.0  # seconds for a spawner to tell of itself


class HelperServing:
    """One per session. `exec_errno` is set if the command could not be executed; it is known after `close_helper`.
    `failure` is what failed after the doors were made. `spawner` leads to the process that starts the commands of
    `netsandbox exec`."""

    def __init__(self, backend: LinuxBackend, loop: Loop, ended: Callable[[int | None], None]) -> None:
        assert backend.helper is not None
        self._backend = backend
        self._helper = backend.helper
        self._context = backend.context
        self._log = backend.context.log
        self._loop = loop
        self._ended = ended
        self._report: int | None = None  # ends when the command is executed (native/channel.h)
        self.spawner: _socket.socket | None = None
        self._awaits_spawner = True
        self.exec_errno = 0
        self.failure: tuple[str, int] | None = None
        self.inbox: FileQuestions | None = None  # the questions to the user; None: no call on a file is held
        self._local_calls: LocalCalls | None = None

    def awaits_records(self, status: int) -> bool:
        return False

    def watch_helper(self) -> None:
        self._loop.watch(self._helper.channel.fileno(), IN, self._on_channel)

    def await_spawner(self) -> _socket.socket | None:
        """A request may come before the spawner, which begins with the command and tells of itself; None without
        one."""
        watch, until = select.poll(), self._loop.now() + PATIENCE
        watch.register(self._helper.channel.fileno(), IN)
        while self._awaits_spawner and watch.poll(max(0, until - self._loop.now()) * 1000):
            self._on_channel(IN)
        self._awaits_spawner = False  # one that ended before it told of itself is waited for once
        return self.spawner

    def close_helper(self) -> None:
        self._awaits_spawner = False
        if self.spawner is not None:
            self.spawner.close()
            self.spawner = None
        self._read_report()
        for sock in self._backend.localhost_doors.values():
            sock.close()

    # The session's localhost

    def watch_localhost_doors(self) -> None:
        """Make the service of the session's localhost at the first connection to one of its doors."""
        for sock in self._backend.localhost_doors.values():
            self._loop.watch(sock.fileno(), IN, self._on_localhost_door)

    def _on_localhost_door(self, events: int) -> None:
        self.open_localhost()

    def take_localhost_doors(self) -> dict[str, _socket.socket]:
        doors, self._backend.localhost_doors = self._backend.localhost_doors, {}
        for sock in doors.values():
            self._loop.unwatch(sock.fileno())
        return doors

    def open_localhost(self) -> LocalhostService:
        """The service, which is made at its first use."""
        raise NotImplementedError

    def on_local_call(self, data: bytes) -> None:
        """A connect or bind failed at the session's own loopback."""
        if self._local_calls is None:
            from netsandbox.backends.linux.local_calls import LocalCalls

            settings = self._backend.reservation.settings
            self._local_calls = LocalCalls(self._log, self._loop.call_later, settings, self._context.stderr)
        self._local_calls.take(data)

    # Messages

    def on_message(self, message: Message) -> bool:
        """Handle a message that only this backend's helper sends; False for any other."""
        raise NotImplementedError

    def _on_channel(self, events: int) -> None:
        """An error here is recorded and not raised: the loop would stop watching, and the end would go unnoticed."""
        try:
            message = self._helper.receive()
        except OSError:
            self._finish(None)
            return
        try:
            self._on_message(message)
        except Exception as error:
            self._log.write("policy", verdict="deny", reason="internal", detail=repr(error))

    def _on_message(self, message: Message) -> None:
        if self.on_message(message):
            return
        if message.kind == "R":
            self._take_spawner(message)
        elif message.kind == "E":
            self.failure = (message.text, message.number)
        else:
            self._finish(message.number if message.kind == "S" else None)

    def _take_spawner(self, message: Message) -> None:
        self._awaits_spawner = False
        if len(message.descriptors) == 1 and self.spawner is None:
            self.spawner = _socket.socket(fileno=message.descriptors[0])
            self.spawner.setblocking(False)  # noqa: FBT003 (the standard library's own signature)

    def _finish(self, status: int | None) -> None:
        self._awaits_spawner = False
        self._loop.unwatch(self._helper.channel.fileno())
        self._ended(status)

    # Whether the command was executed

    def watch_report(self, report: int) -> None:
        self._report = report
        if (started := self._context.started) is not None:
            self._loop.watch(report, IN, lambda events: self._on_report(report, started))

    def _on_report(self, report: int, started: Callable[[], None]) -> None:
        self._loop.unwatch(report)
        self._read_report()

        def conclude() -> None:
            if not self.exec_errno and self.failure is None:
                started()

        # A step that failed before was reported over the channel, which is read in this round of the loop.
        self._loop.call_later(0, conclude)

    def _read_report(self) -> None:
        if self._report is None:
            return
        report, self._report = self._report, None
        try:
            self.exec_errno = int.from_bytes(os.read(report, 4), sys.byteorder)
        except BlockingIOError:  # it was killed before, and its end of the pipe is not closed yet
            pass
        os.close(report)
