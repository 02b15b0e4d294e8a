"""Finds this user's live sessions, asks them what they do, answers their questions, and asks them to end.

A session is live when somebody of ours listens on its control socket. All are asked together, under one deadline, so
that one that hangs costs a second and not a second each. What is typed by a user is compared with the answers and never
becomes part of a path (attack 190).
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import time

from netsandbox.audit.sweep import forget_dead_control
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import list_sessions, session_dir, sessions_dir
from netsandbox.runtime.control_socket import connect, is_trusted, peer_pid
from netsandbox.session.control import STATUS, STOP
from netsandbox.session.control_reply import MAX_REPLY
from netsandbox.session.session_status import Status, read_status
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PATIENCE = 1.0
PAUSE = 0.05  # before somebody who was busy, or left without a word, is asked again
AT_ONCE = 128
NAMED = 20  # how many names an error lists
_BUSY = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def live_sessions() -> list[Status]:
    sessions, _ = survey()
    return sessions


def survey(patience: float = PATIENCE) -> tuple[list[Status], list[str]]:
    """The sessions that answered, oldest first, and the ids of those that exist and did not answer."""
    found: list[Status] = []
    silent: list[str] = []
    for session, line in sorted(_Round(STATUS, _known()).answers(patience).items()):
        status = read_status(line, session)
        if status is None:
            silent.append(session)
        else:
            found.append(status)
    return found, silent


def _known() -> list[str]:
    try:
        return list_sessions()
    except OSError as error:
        advice = "set XDG_STATE_HOME as it was for `netsandbox run`"
        raise NetsandboxError(f"cannot look for sessions in {sessions_dir()}: {error.strerror}; {advice}") from None


def nothing_runs() -> str:
    """Why there is no session to speak of, and what to do."""
    if os.environ.get("NETSANDBOX_SESSION"):
        return "this is inside a session, where no session can be seen; ask outside of it"
    return "no session is running; start one with `netsandbox run -- CMD`"


def find(word: str, sessions: list[Status] | None = None) -> Status:
    """The live session that is called *word*, or whose id is or begins with it."""
    known = live_sessions() if sessions is None else sessions
    for fits in (_is_called, _has_id, _begins):
        found = [status for status in known if word and fits(status, word)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"{word!a} fits {len(found)} sessions; write more of the id: {_listed(found, 'session')}")
    if not known:
        raise UsageError(nothing_runs())
    raise UsageError(f"no running session is called {word!a}; choose one of {_listed(known, 'name')}")


def _is_called(status: Status, word: str) -> bool:
    return bool(status["name"] == word)


def _has_id(status: Status, word: str) -> bool:
    return bool(status["session"] == word)


def _begins(status: Status, word: str) -> bool:
    return bool(status["session"].startswith(word))


def _listed(sessions: list[Status], key: str) -> str:
    names = [printable(status[key]) for status in sessions[:NAMED]]
    return ", ".join([*names, "…"] if len(sessions) > NAMED else names)


def stop_sessions(sessions: Iterable[str], seconds: float) -> list[str]:
    """Ask *sessions*, by id, to end, and wait until they have; those that are still there after *seconds*."""
    left = list(sessions)
    until = time.monotonic() + seconds
    while left:
        # Whoever closes the connection has ended and taken its name away, or could not listen to us: it is asked again.
        left = list(_Round(STOP, left, is_whole=_never).answers(max(0.0, until - time.monotonic())))
        left = [session for session in left if _is_there(session)]
        if time.monotonic() >= until:
            break
        if left:
            time.sleep(PAUSE)
    return left


def put_to(session: str, request: bytes, patience: float = PATIENCE) -> bytes:
    """What one session answers to *request*, a line without its end; b"" for nothing."""
    return _Round(request, [session]).answers(patience).get(session, b"")


def _is_there(session: str) -> bool:
    try:
        connect(session_dir(session)).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError:
        return True
    return True


def pid_of(session: str) -> int | None:
    """Whose control socket it is, though nobody answers there. None: that cannot be known, or it is a stranger's."""
    try:
        sock = connect(session_dir(session))
    except OSError:
        return None
    try:
        return (peer_pid(sock) or None) if is_trusted(sock) else None
    finally:
        sock.close()


def _has_line(data: bytes) -> bool:
    return b"\n" in data


def _never(data: bytes) -> bool:
    return False


class _Round:
    """One request put to many sessions at once; an answer lasts until it `is_whole` or the session hangs up."""

    def __init__(self, request: bytes, sessions: list[str], is_whole: Callable[[bytes], bool] = _has_line) -> None:
        self._request = request + b"\n"
        self._waiting = sessions
        self._is_whole = is_whole
        self._asked: dict[int, tuple[str, _socket.socket]] = {}
        self._data: dict[str, bytes] = {}
        self._poll = select.poll()

    def answers(self, seconds: float) -> dict[str, bytes]:
        """By session: its line, or what there is of it. Sessions that are not there are not in it."""
        until = time.monotonic() + seconds
        try:
            while True:
                busy = self._ask()
                left = until - time.monotonic()
                if left <= 0 or not (self._asked or self._waiting):
                    return self._data
                for fd, _ in self._poll.poll(min(left, PAUSE if busy else left) * 1000 + 1):
                    self._read(fd)
        finally:
            for _, sock in self._asked.values():
                sock.close()

    def _ask(self) -> bool:
        """Ask as many as can be asked now; whether somebody who was busy is to be asked again."""
        busy = []
        while self._waiting and len(self._asked) < AT_ONCE:
            session = self._waiting.pop()
            directory = session_dir(session)
            try:
                sock = connect(directory)
            except ConnectionRefusedError:
                self._data.pop(session, None)
                forget_dead_control(directory)
            except (FileNotFoundError, NotADirectoryError):
                self._data.pop(session, None)
            except OSError as error:
                self._data[session] = b""
                if error.errno in _BUSY:
                    busy.append(session)
            else:
                self._put(session, sock)
        self._waiting += busy
        return bool(busy)

    def _put(self, session: str, sock: _socket.socket) -> None:
        self._data[session] = b""
        try:
            if is_trusted(sock) and sock.send(self._request) == len(self._request):
                self._asked[sock.fileno()] = (session, sock)
                self._poll.register(sock.fileno(), select.POLLIN)
                return
        except OSError:
            pass
        sock.close()

    def _read(self, fd: int) -> None:
        session, sock = self._asked[fd]
        try:
            piece = sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self._data[session] += piece
        if not piece or self._is_whole(self._data[session]) or len(self._data[session]) > MAX_REPLY:
            self._poll.unregister(fd)
            del self._asked[fd]
            sock.close()
