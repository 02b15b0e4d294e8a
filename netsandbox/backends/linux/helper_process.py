"""Starts a native helper and exchanges messages with it over the channel (native/channel.h)."""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import sys

from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHANNEL = 3
SIGKILL = 9
SIGPIPE, SIGXFSZ = 13, 25  # CPython ignores these two signals; the command must not inherit that
MAX_RECORD = 512
PLAN_PART = 1 << 16  # bytes in one message; more may not fit in the buffer of a socket
MAX_DESCRIPTORS = 64


class Message:
    """One record from the helper."""

    __slots__ = ("descriptors", "kind", "number", "text")

    def __init__(self, data: bytes, descriptors: list[int]) -> None:
        self.kind = data[:1].decode("ascii", "replace")
        self.number = int.from_bytes(data[1:5], sys.byteorder, signed=True)
        self.text = data[5:].decode("utf-8", "replace")
        self.descriptors = descriptors


class HelperProcess:
    """The native helper of one session, until the command has ended. `pid` is that of the session's first process.

    `channel` leads to the process that starts the command, `relay` to the one that receives its trapped calls; *first*
    is the first message there.
    """

    def __init__(
        self,
        program: str,
        command: Sequence[str],
        environment: Mapping[bytes, bytes],
        stdio: tuple[int, int, int],
        first: bytes = b"",
    ) -> None:
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0)
        self.relay, far = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0)
        if first:
            self.relay.send(first)
        passed = (*stdio, theirs.fileno(), far.fileno())
        # Copy the descriptors to higher numbers first: a source between 0 and 4 would be overwritten before its turn.
        sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, CHANNEL + 2) for fd in passed]
        actions = [(os.POSIX_SPAWN_DUP2, source, number) for number, source in enumerate(sources)]
        try:
            self.spawned = os.posix_spawn(
                program,
                [program, *command],
                environment,
                file_actions=actions,
                setsigmask=[],
                setsigdef=[SIGPIPE, SIGXFSZ],
            )
        except OSError as error:
            ours.close()
            self.relay.close()
            raise _cannot_start(error) from None
        finally:
            theirs.close()
            far.close()
            for source in sources:
                os.close(source)
        self.channel = ours
        self.pid = 0

    def send_plan(self, plan_bytes: bytes) -> None:
        """Send the plan, with which the helper begins; `set_up` waits for the result."""
        for at in range(0, len(plan_bytes) or 1, PLAN_PART):
            end = at + PLAN_PART
            self.send(self.channel, bytes([end < len(plan_bytes)]) + plan_bytes[at:end], "the plan to the helper")

    def send(self, channel: _socket.socket, data: bytes, what: str) -> None:
        try:
            channel.send(data)
        except ConnectionError:  # it has failed already; `set_up` gets the reason
            pass
        except OSError as error:  # too long for one message
            self.close()
            raise HostError(f"cannot send {what}: {error.strerror}; hide or protect fewer paths") from None

    def set_up(self, expected: int) -> list[int]:
        """Wait until the session is set up. Returns the descriptors of its doors."""
        descriptors: list[int] = []
        while not (self.pid and descriptors):
            message = self.receive()
            if message.kind == "P":
                self.pid = message.number
            elif message.kind == "D":
                descriptors = message.descriptors
                if len(descriptors) != expected:  # the kernel drops those beyond our limit of open files
                    for descriptor in descriptors:
                        os.close(descriptor)
                    raise HostError("not all doors arrived: too many open files; raise the limit, `ulimit -n 1024`")
            else:
                raise self.set_up_failure(message.text, message.number)
        return descriptors

    def set_up_failure(self, step: str, number: int) -> HostError:
        """The error for a step of the helper that failed."""
        raise NotImplementedError

    def go(self) -> None:
        """Start the command. Nothing of it has run before."""
        self.channel.send(b"G")

    def signal(self, number: int) -> None:
        """Forward a signal to the command, unless PID 1 saw it arrive at the whole process group."""
        try:
            self.channel.send(b"K" + number.to_bytes(4, sys.byteorder))
        except OSError:  # the session has ended
            pass

    def ask_to_end(self) -> None:
        """Ask every process of the session to end (native/ending.h)."""
        try:
            self.channel.send(b"T" + bytes(4))
        except OSError:  # the session has ended
            pass

    def receive(self) -> Message:
        """The next record; an empty kind means that the helper is gone."""
        try:
            data, ancillary = self._receive()
        except ConnectionResetError:  # raised once if the helper left without reading; its last messages follow
            data, ancillary = self._receive()
        descriptors = [
            int.from_bytes(payload[start : start + 4], sys.byteorder)
            for level, kind, payload in ancillary
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
            for start in range(0, len(payload) - 3, 4)
        ]
        return Message(data, descriptors)

    def _receive(self) -> tuple[bytes, list[tuple[int, int, bytes]]]:
        size = _socket.CMSG_SPACE(4 * MAX_DESCRIPTORS)
        return self.channel.recvmsg(MAX_RECORD, size, _socket.MSG_CMSG_CLOEXEC)[:2]

    def close(self) -> None:
        """End the session, if it still runs, and reap it. PID 1 exits when the channel closes."""
        if self.channel.fileno() < 0:
            return
        if not self.pid:
            self._learn_pid()
        self.channel.close()
        self.relay.close()
        self.end()
        if self.pid:
            _reap(self.pid)

    def end(self) -> None:
        """End and reap the process that we started, when the channel is closed."""
        os.kill(self.spawned, SIGKILL)  # our own child, not reaped yet
        _reap(self.spawned)

    def _learn_pid(self) -> None:
        """Read PID 1's pid from the channel: if we stop before the doors exist, PID 1 may already run. A helper that
        waits for its plan sees the end of the channel first, or both would wait."""
        try:
            self.channel.shutdown(_socket.SHUT_WR)
            while (message := self.receive()).kind:
                for descriptor in message.descriptors:
                    os.close(descriptor)
                if message.kind == "P":
                    self.pid = message.number
                    return  # others keep the channel open
        except OSError:  # no more messages
            pass


def _cannot_start(error: OSError) -> HostError:
    if error.errno == errno.ENOENT:
        return HostError("the native helper is missing; reinstall netsandbox with a C compiler at hand")
    if error.errno == errno.E2BIG:
        return HostError("the command's arguments and environment are too long for this system; shorten them")
    return HostError(f"cannot start the native helper: {error.strerror}; see `netsandbox doctor`")


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
