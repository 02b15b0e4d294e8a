"""The audit log as the supervisor writes it.

Rules kept here:
1. `write` returns True only when the whole line is in the file; on False the caller denies (INV-1, INV-5). Between
   `hold` and `release` lines are collected, and `release` returns True only when all of them are in the file.
2. A failure is final: after it nothing more is written and every `write` returns False. The part of a line that fitted
   is taken back, and a link beside the log says why it stops (`STOPPED`): a full disk has room for one. Readers take
   that for an explanation, not for a proof.
3. The chain runs over everything, rotation and later sessions in the same file included (attack 181).
4. With a cap, all files together never exceed keep * cap_bytes. The first file and the newest ones stay; what is
   rotated away between them is counted. A flood of denials is folded (`folding.DenialFlood`, attack 177).
5. What cannot be opened (`log_file`) is an error before the command starts (INV-1).

No fsync: records survive the death of this process by any signal, not the loss of power.
"""

from __future__ import annotations

import os
import time

from netsandbox.audit import record_line
from netsandbox.audit.log_file import open_file, read_tail, refusal
from netsandbox.audit.record_line import FILE_EVENTS, GENESIS
from netsandbox.paths import STOPPED, home
from netsandbox.runtime.private_file import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from netsandbox.audit.folding import DenialFlood
    from netsandbox.audit.kept_head import HeadKeeper

    Key = TypeVar("Key")
    Observer = Callable[[str, Mapping[str, object]], None]

DEFAULT_CAP = 64 * 1024 * 1024
DEFAULT_KEEP = 7
MAX_DENIED = 256
LOOPBACK = "loopback"  # `reasons.LOOPBACK`; that module is not loaded before the command runs
_SHIFT = 10**18  # nanoseconds; added to the clock it makes the number of digits the same from 1938 to 2230
SEAL = "audit.seal"
ROTATE = "audit.rotate"
END = "session.end"
FULL = (28, 122)  # ENOSPC, EDQUOT; `errno` is not loaded here
MAX_HELD = 1 << 18  # bytes that are held in memory until `release`

DeniedKey = tuple[object, object, object, object, str | None]


class AuditLog:
    """One session's log. `failed` is the reason why it can no longer be written, or None."""

    __slots__ = (
        *("_cap", "_dropped", "_fd", "_first_end", "_flood", "_habits", "_held", "_holds", "_home", "_keep"),
        *("_loopback", "_prefix", "_prev", "_second", "_seq", "_size", "_stamp", "_starts"),
        *("counts", "denied", "denied_files", "failed", "keeper", "observer", "on_failure", "path", "session"),
    )

    def __init__(self, fd: int, path: str, session: str, *, cap_bytes: int | None, keep: int) -> None:
        """Use `AuditLog.open`."""
        self.path = path
        self.session = session
        self.failed: str | None = None
        # Called with each denial that is no habit, after it was written or counted; must not raise.
        self.observer: Observer | None = None
        self.on_failure: Callable[[str], None] | None = None  # called once, with the reason
        self.keeper: HeadKeeper | None = None  # for a log that the user placed
        self.counts: dict[tuple[str, object], int] = {}  # (event, verdict) -> records, folded ones by their count
        # Attempts by (host or address, port, reason, hint), and by (path, operation, reason, rule): MAX_DENIED each.
        # What programs try by habit is recorded, but is in neither.
        self.denied: dict[DeniedKey, int] = {}
        self.denied_files: dict[tuple[object, ...], int] = {}
        self._fd = fd
        self._cap = cap_bytes
        self._keep = keep
        self._habits = 0  # denied attempts that programs make by habit
        self._home: str | None = None
        self._loopback = 0  # allowed records about the session's own loopback
        self._second = ""  # the second that `_prefix` was formatted for
        self._prefix = ""
        self._stamp = ""
        self._seq = 0
        self._starts = [1]  # the first seq of each file still kept
        self._first_end = (0, GENESIS)  # seq and hash of the last line of the first file, once there are more
        self._dropped = 0
        self._flood: DenialFlood | None = None  # from the first denial on
        self._held = bytearray()
        self._holds = False
        self._size, self._prev, torn = read_tail(fd, path)
        if torn:
            # Ends the torn line, so that it cannot swallow the first record of this session.
            self._append(b"\n")

    @classmethod
    def open(
        cls, path: str, session: str, *, cap_bytes: int | None = DEFAULT_CAP, keep: int = DEFAULT_KEEP
    ) -> AuditLog:
        """Open or make *path*; a log that cannot be written is an error and the command must not start (INV-1)."""
        if cap_bytes is not None and (cap_bytes < 2 * record_line.MAX_LINE or keep < 3):
            raise ValueError("a capped log needs room for two lines and three files")
        fd = open_file(path)
        try:
            log = cls(fd, path, session, cap_bytes=cap_bytes, keep=keep)
            if log.failed:
                raise refusal(path, f"cannot be written ({log.failed}); give another place with --audit-log")
        except BaseException:
            os.close(fd)
            raise
        return log

    def write(self, event: str, **fields: object) -> bool:
        """Append one record. False: it is not in the log, so what it describes must not happen."""
        verdict = fields.get("verdict")
        times = fields.get("count", 1)
        if type(times) is not int:
            times = 1
        kind = (event, verdict)
        self.counts[kind] = self.counts.get(kind, 0) + times
        flood = self._flood
        if verdict == record_line.ALLOW:
            self._loopback += times * (fields.get("reason") == LOOPBACK)
        if verdict != record_line.DENY:
            if flood is not None:
                self._write_folded(flood, at_once=event == END)
            return self._write(event, fields)
        is_habit = self._count_denial(event, fields, times)
        if flood is None:
            flood = self._begin_flood()
        else:
            self._write_folded(flood)
        written = self._write(event, fields) if flood.admits(event, fields, times) else self.failed is None
        if self.observer is not None and not is_habit:
            self.observer(event, fields)
        return written

    def hold(self) -> None:
        """Collect the next records. The caller lets nothing happen that they describe before `release` returns True."""
        self._holds = True

    def release(self) -> bool:
        """Write what was collected. False: some of it is not in the log."""
        self._holds = False
        return self._write_held()

    def _write_held(self) -> bool:
        if self.failed is not None:
            return False
        if not self._held:
            return True
        data, self._held = bytes(self._held), bytearray()
        return self._append(data)

    def _begin_flood(self) -> DenialFlood:
        from netsandbox.audit.folding import DenialFlood  # most sessions need none

        self._flood = DenialFlood(time.monotonic())
        return self._flood

    def _write_folded(self, flood: DenialFlood, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or flood.is_due(now):
            for event, fields in flood.summaries(now):
                self._write(event, fields)

    def _write(self, event: str, fields: Mapping[str, object]) -> bool:
        if self.failed is not None:
            return False
        digits = str(_SHIFT + time.time_ns())
        second = digits[:-9]
        if second != self._second and not self._begin_second(second):
            return False
        stamp = self._stamp = f"{self._prefix}{digits[-9:-3]}Z"
        line = record_line.line(stamp, self._seq + 1, self.session, event, fields=fields, prev=self._prev)
        if self._cap is not None and self._size + len(self._held) + len(line) >= self._cap:
            if not self._rotate():
                return False
            line = self._next(event, fields)
        return self._commit(line)

    @property
    def head(self) -> str:
        """The hash that the next line will name."""
        return self._prev

    def total(self, verdict: str) -> int:
        """How many attempts got *verdict* so far."""
        return sum(count for (_, found), count in self.counts.items() if found == verdict)

    @property
    def allowed_outside(self) -> int:
        """How many allowed attempts were for something else than the session's own loopback."""
        return self.total(record_line.ALLOW) - self._loopback

    @property
    def denied_in_need(self) -> int:
        """How many denied attempts were no habit of a program."""
        return self.total(record_line.DENY) - self._habits

    def close(self) -> None:
        """Seal and close. The seal repeats the time of the record before it, so every byte of it can be checked."""
        if self._fd < 0:
            return
        self.release()
        if self._flood is not None:
            self._write_folded(self._flood, at_once=True)
        if self.failed is None and self._seq:
            self._commit(self._next(SEAL, {}))
        if self.keeper is not None:
            if self.failed is None:
                self.keeper.keep(self._seq, self._prev, state="done")
            self.keeper.close()
        os.close(self._fd)
        self._fd = -1
        self.failed = self.failed or "closed"

    def _begin_second(self, second: str) -> bool:
        """Once a second: format the time down to the second, and check that the file is still there and still whole."""
        self._second = second
        if not self._write_held():
            return False
        self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(int(second) - _SHIFT // 10**9))
        try:
            info = os.fstat(self._fd)
        except OSError as error:
            return self._fail(str(error.strerror))
        if self.keeper is not None:
            self.keeper.keep(self._seq, self._prev)
        if info.st_nlink == 0:
            return self._fail("the file was deleted")
        if info.st_size != self._size:
            return self._fail("the file was changed by someone else")
        return True

    def _count_denial(self, event: str, fields: Mapping[str, object], times: int) -> bool:
        """Whether it is a habit."""
        if self._home is None:
            self._home = os.path.realpath(home())
        is_habit = count_denial(self.denied, self.denied_files, event, fields, times, self._home)
        self._habits += times * is_habit
        return is_habit

    def _next(self, event: str, fields: Mapping[str, object]) -> bytes:
        return record_line.line(self._stamp, self._seq + 1, self.session, event, fields=fields, prev=self._prev)

    def _commit(self, line: bytes) -> bool:
        if self._holds:
            self._held += line + b"\n"
            if len(self._held) >= MAX_HELD and not self._write_held():
                return False
        elif not self._append(line + b"\n"):
            return False
        self._seq += 1
        self._prev = sha256(line).hexdigest()
        if self._seq == 1 and self.keeper is not None:
            self.keeper.keep(1, self._prev)
        return True

    def _append(self, data: bytes) -> bool:
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            return self._fail("the disk is full" if error.errno in FULL else str(error.strerror))
        if written == len(data):
            self._size += written
            return True
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:  # the line stays torn, which every reader knows
            pass
        return self._fail("the disk is full")

    def _fail(self, why: str) -> bool:
        self.failed = why
        try:
            os.symlink(why, f"{self.path}{STOPPED}")
        except OSError:  # there is no room for that either, or it is there from before
            pass
        if self.on_failure is not None:
            self.on_failure(why)
        return False

    def _rotate(self) -> bool:
        """Rename the files up by one and begin a new one. The first file keeps its name once it has the last one."""
        if not self._write_held():
            return False
        oldest = self._keep - 1
        if len(self._starts) == 1:
            self._first_end = self._seq, self._prev
        elif len(self._starts) == self._keep:
            oldest -= 1
            del self._starts[1]
            self._dropped = self._starts[1] - self._first_end[0] - 1
        try:
            for number in range(oldest, 0, -1):
                older = f"{self.path}.{number - 1}" if number > 1 else self.path
                if number == 1 or os.path.lexists(older):
                    os.rename(older, f"{self.path}.{number}")
            fresh = open_file(self.path)
        except Exception as error:
            return self._fail(f"cannot be rotated: {error}")
        os.close(self._fd)
        self._fd = fresh
        self._size = 0
        self._starts.append(self._seq + 1)
        totals: dict[str, object] = {
            "kept": self._first_end[0],
            "kept_head": self._first_end[1],
            "resumes": self._starts[1],
            "dropped": self._dropped,
            "allowed": self.total(record_line.ALLOW),
            "denied": self.total(record_line.DENY),
        }
        return self._commit(self._next(ROTATE, totals))


def count_denial(
    denied: dict[DeniedKey, int],
    denied_files: dict[tuple[object, ...], int],
    event: str,
    fields: Mapping[str, object],
    times: int,
    own: str,
) -> bool:
    """Count a denial in *denied* or *denied_files*, unless it is a habit; whether it is one. Files have a list of their
    own: they must not take the room of hosts. *own* is the user's home."""
    from netsandbox.policy.habits import is_habit  # most sessions need none

    if is_habit({**fields, "event": event}, own):
        return True
    get = fields.get
    if event in FILE_EVENTS:
        _count(denied_files, (get("path"), get("operation"), get("reason"), get("rule")), times)
    else:
        target = get("host") or get("address"), get("port"), get("reason"), get("hint"), _request(event, fields)
        _count(denied, target, times)
    return False


def _request(event: str, fields: Mapping[str, object]) -> str | None:
    """Of a denied request its method and URL: a host may have many."""
    if event != "http":
        return None
    from netsandbox.audit.requests import request_text

    return request_text(fields)


def _count(into: dict[Key, int], key: Key, times: int) -> None:
    if key in into or len(into) < MAX_DENIED:
        into[key] = into.get(key, 0) + times
