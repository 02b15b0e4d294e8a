"""The client of the control sockets: finds this user's live sessions, reads their status, answers questions, ends them.

A session is live if a process of ours listens on its control socket. All sessions get their requests together under one
deadline, so sessions that hang cost one second in total. User input is compared with the replies and never becomes part
of a path (attack 190).
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import time
from _signal import SIGCONT

from netsandbox.audit.sweep import forget_dead_control
from netsandbox.errors import NetsandboxError, UsageError
from netsandbox.paths import list_sessions, session_dir, sessions_dir
from netsandbox.runtime.control_socket import CONTROL_NAME, connect, is_trusted, peer_pid
from netsandbox.session.control import MAX_REPLY, STATUS, STOP
from netsandbox.session.session_status import Status, read_status
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PATIENCE = 1.0
PAUSE = 0.05  # seconds before a session that was busy, or closed without a reply, gets the request again
MAX_AT_ONCE = 128
MAX_NAMED = 20  # maximum names in an error message
_BUSY = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def live_sessions() -> list[Status]:
    sessions, _ = survey()
    return sessions


def survey(patience: float = PATIENCE) -> tuple[list[Status], list[str]]:
    """The sessions that replied, oldest first, and the ids of those that exist and did not reply."""
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
    """The sessions with a control socket. Most have ended and have none; a look costs less than a connection."""
    folder = sessions_dir()
    try:
        return [session for session in list_sessions() if os.path.lexists(f"{folder}/{session}/{CONTROL_NAME}")]
    except OSError as error:
        advice = "set XDG_STATE_HOME as it was for `netsandbox run`"
        raise NetsandboxError(f"cannot look for sessions in {sessions_dir()}: {error.strerror}; {advice}") from None


def silent_sessions(silent: Iterable[str]) -> list[Status]:
    """What is known of sessions that do not answer: enough for `find`. Their names are in their logs."""
    silent = list(silent)
    if not silent:  # the reader of logs takes a third of the time of `ps`
        return []
    from netsandbox.session.recorded_names import log_of, name_in

    return [{"session": session, "name": name_in(log_of(session)) or session} for session in silent]


def resume(session: str) -> None:
    """Let a session go on that its user suspended (Ctrl-Z): its supervisor is stopped too, and answers nothing. The
    kernel names the process that listens at the control socket."""
    pid = pid_of(session)
    if pid is not None:
        try:
            os.kill(pid, SIGCONT)  # without an effect on a process that runs
        except OSError:
            pass


def is_suspended(session: str) -> bool:
    """Whether its supervisor is stopped; False where that is unknown."""
    try:
        with open(f"/proc/{pid_of(session)}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


def nothing_runs() -> str:
    """Why no session was found, and what to do."""
    if os.environ.get("NETSANDBOX_SESSION"):
        return "this is inside a session, where no session is visible; run this command outside"
    return "no session is running; start one with `netsandbox run -- CMD`"


def find(word: str, sessions: list[Status] | None = None) -> Status:
    """The live session with the name *word*, or with an id that is or starts with *word*."""
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
    names = [printable(status[key]) for status in sessions[:MAX_NAMED]]
    return ", ".join([*names, "…"] if len(sessions) > MAX_NAMED else names)


def stop_sessions(sessions: Iterable[str], seconds: float) -> list[str]:
    """Request the end of *sessions* (ids) and wait for it. Returns those that are still live after *seconds*."""
    left = list(sessions)
    until = time.monotonic() + seconds
    while left:
        # A closed connection means that the session ended and its name is gone, or that it could not read the request:
        # retry.
        left = list(_Round(STOP, left, is_whole=_never).answers(max(0.0, until - time.monotonic())))
        left = [session for session in left if _is_there(session)]
        if time.monotonic() >= until:
            break
        if left:
            time.sleep(PAUSE)
    return left


def put_to(session: str, request: bytes, patience: float = PATIENCE) -> bytes:
    """The reply of one session to *request*, a line without its newline; b"" if there is none."""
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
    """The pid behind a control socket, even if it does not reply; None if unknown or of another user."""
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
    """One request sent to many sessions at once; a reply ends when it `is_whole` or the session disconnects."""

    def __init__(self, request: bytes, sessions: list[str], is_whole: Callable[[bytes], bool] = _has_line) -> None:
        self._request = request + b"\n"
        self._waiting = sessions
        self._is_whole = is_whole
        self._requested: dict[int, tuple[str, _socket.socket]] = {}
        self._data: dict[str, bytes] = {}
        self._poll = select.poll()

    def answers(self, seconds: float) -> dict[str, bytes]:
        """The reply line of each session, complete or partial. Sessions that do not exist are left out."""
        until = time.monotonic() + seconds
        try:
            while True:
                busy = self._send_requests()
                left = until - time.monotonic()
                if left <= 0 or not (self._requested or self._waiting):
                    return self._data
                for fd, _ in self._poll.poll(min(left, PAUSE if busy else left) * 1000 + 1):
                    self._read(fd)
        finally:
            for _, sock in self._requested.values():
                sock.close()

    def _send_requests(self) -> bool:
        """Send to as many sessions as possible now. Returns whether a busy session needs another try."""
        busy = []
        while self._waiting and len(self._requested) < MAX_AT_ONCE:
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
                self._requested[sock.fileno()] = (session, sock)
                self._poll.register(sock.fileno(), select.POLLIN)
                return
        except OSError:
            pass
        sock.close()

    def _read(self, fd: int) -> None:
        session, sock = self._requested[fd]
        try:
            piece = sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self._data[session] += piece
        if not piece or self._is_whole(self._data[session]) or len(self._data[session]) > MAX_REPLY:
            self._poll.unregister(fd)
            del self._requested[fd]
            sock.close()
