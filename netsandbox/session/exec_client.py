"""The client's side of `netsandbox exec`: puts the request to a session and reads the spawner's messages.

backends/linux/native/spawner.h has the messages. A session that ends closes the socket without a status.
"""

from __future__ import annotations

import _socket
import os
import select
import sys

from netsandbox.errors import CommandError, HostError, NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import session_dir
from netsandbox.runtime.control_socket import connect, is_trusted, receive_descriptors, send_descriptors
from netsandbox.session.control import DONE, EXEC, MAX_REPLY, SETTLE
from netsandbox.session.exec_requests import HEADER, MAX_REQUEST, MAX_WORDS

PATIENCE = 10.0  # seconds for a session to answer, and to start the command
MESSAGE = 5  # bytes: a letter and a number
BUSY = "it does not answer; if it was suspended with Ctrl-Z, continue it with `fg`"


@frozen
class Message:
    """`kind` is a letter of spawner.h, or empty at the end."""

    kind: str
    number: int
    descriptors: list[int]


class SecondCommand:
    """A command that a session starts, from the request to its end. `socket` becomes readable with each message.
    *folder* is that of the request, for an error about it."""

    def __init__(self, session: str, request: bytes, standard: list[int], folder: str = "") -> None:
        if len(request) > MAX_REQUEST or request.count(0, HEADER.size) > MAX_WORDS:
            raise NetsandboxError("the command has too many or too long arguments for exec; put them into a script")
        self._folder = folder
        self.socket, far = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        try:
            send_descriptors(self.socket, request, standard)
            _check(_put(session, EXEC, [far.fileno()]))
        except BaseException:
            self.socket.close()
            raise
        finally:
            far.close()

    def wait_started(self) -> int | None:
        """Wait until it has been forked. The master of its terminal, if it has one."""
        while True:
            if not _is_readable(self.socket, PATIENCE):
                raise HostError(f"the session does not start the command: {BUSY}")
            message = self.receive()
            if message.kind == "P":
                return message.descriptors[0] if message.descriptors else None
            if message.kind == "":
                raise SessionEndedError
            self.raise_failure(message)

    def receive(self) -> Message:
        try:
            data, descriptors = receive_descriptors(self.socket, MESSAGE)
        except ConnectionError:
            data, descriptors = b"", []
        return Message(data[:1].decode("ascii", "replace"), int.from_bytes(data[1:], sys.byteorder), descriptors)

    def raise_failure(self, message: Message) -> None:
        """For a message that says why the command could not be started."""
        if message.kind == "C":
            why = os.strerror(message.number)
            raise CommandError(f"--cwd {self._folder}: {why}; name a folder that the session sees", 126)
        if message.kind == "E":
            why = os.strerror(message.number)
            raise HostError(f"the session cannot start one more command: {why}; end one, or raise its --limit")

    def signal(self, number: int) -> None:
        """For its whole process group."""
        try:
            self.socket.send(bytes([number]))
        except OSError:  # it has ended
            pass


class SessionEndedError(Exception):
    """The session ended, and with it the command."""


def settle(session: str) -> None:
    """Let a session record what it only counted, or holds back for a moment. One that has ended has done it."""
    try:
        _put(session, SETTLE, [])
    except (SessionEndedError, NetsandboxError, OSError):
        pass


def _put(session: str, request: bytes, descriptors: list[int]) -> bytes:
    """The session's reply."""
    try:
        control = connect(session_dir(session))
    except (FileNotFoundError, ConnectionRefusedError):
        raise SessionEndedError from None
    except OSError:
        raise HostError(f"the session cannot be reached: {BUSY}") from None
    try:
        if not is_trusted(control):
            raise HostError("the session belongs to another user; exec is for your own sessions")
        send_descriptors(control, request + b"\n", descriptors)
        reply = b""
        while b"\n" not in reply and len(reply) <= MAX_REPLY:
            if not _is_readable(control, PATIENCE):
                raise HostError(f"the session did not start the command: {BUSY}")
            piece = control.recv(1 << 16)
            if not piece:
                raise SessionEndedError
            reply += piece
    except ConnectionError:
        raise SessionEndedError from None
    finally:
        control.close()
    return reply


def _check(reply: bytes) -> None:
    if reply == DONE:
        return
    import json

    try:
        found = json.loads(reply)
        text, status = str(found["error"]), found.get("status")
    except (ValueError, KeyError, TypeError, AttributeError):
        text, status = "the session's reply cannot be read", 1
    if status is None:  # of a control socket that does not know the request
        text = f"the session answers: {text}; it may be of another version of netsandbox"
    raise CommandError(text, status if type(status) is int and 0 < status < 256 else 1)


def _is_readable(sock: _socket.socket, seconds: float) -> bool:
    watch = select.poll()
    watch.register(sock.fileno(), select.POLLIN)
    return bool(watch.poll(seconds * 1000))
