"""Refused calls that open or execute a file and wait for the user's answer, in sessions that ask about files.

The native observer holds such a call and copies its path once. Rules kept here:

1. The user is asked about the path without links, as it is when the call is made. After a yes that path is opened
   without following a link, and the program gets the descriptor. No path is looked up twice, and the program's memory
   is not read again (attacks 115 and 116).
2. A program to execute is shown read-only in the session, and the call continues: mounts decide what it executes. A
   folder that is approved until the session ends is shown too, for programs that look at names before they open them,
   unless the session has something of its own there.
3. Only what the host has and what the user may use is asked about: regular files, and folders that
   hold nothing secret, denied or ours. Nothing of netsandbox, nothing that a rule denies, and no write to a name that
   the host runs or obeys.
4. A call that is not asked about, and one without an answer, continues: mounts refuse it. An error refuses it (INV-1).
5. The record is written before the file is opened (INV-5).
"""

from __future__ import annotations

import errno
import os
import stat

from netsandbox.backends.linux.procfs import process_of, status_field
from netsandbox.backends.linux.seccomp_notify import TrappedCall
from netsandbox.backends.linux.trap_relay import CALL, read_refusal
from netsandbox.backends.namespaces import file_opener
from netsandbox.backends.namespaces.file_calls import observed_calls
from netsandbox.backends.namespaces.file_opener import FileOpener
from netsandbox.backends.namespaces.file_refusals import OPERATIONS as RECORDED
from netsandbox.frozen import frozen
from netsandbox.paths import home
from netsandbox.policy import home_paths, reasons
from netsandbox.policy.file_denials import Advice, DenyRules, is_quiet
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.shown_files import PROTECTED, SYSTEM_SECRETS
from netsandbox.runtime.written_folders import remember_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.contract import FileQuestions
    from netsandbox.backends.linux.seccomp_notify import Listener
    from netsandbox.backends.linux.trap_relay import FileRefusal, Refusals
    from netsandbox.policy.file_rules import FileRules
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.protection import OwnPaths

READ, WRITE, EXECUTE = "read", "write", "execute"
OPERATIONS = {"r": READ, "w": WRITE, "n": WRITE, "x": EXECUTE}
MAX_PATH = 500  # characters; the log would cut a longer one
O_TMPFILE = 0o20000000
FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_TRUNC | os.O_DIRECTORY | os.O_NONBLOCK | os.O_SYNC
CREAT = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
ARGUMENTS = {"open": (1, 2), "openat": (2, 3), "creat": (None, 1)}  # of the flags and the mode
KERNEL_FOLDERS = ("/proc", "/sys", "/dev")
CHANGED = (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EEXIST)
PERMISSIONS = {READ: os.R_OK, WRITE: os.W_OK, EXECUTE: os.X_OK}


@frozen
class HeldCall:
    """A call that waits. `path` has no links."""

    call: TrappedCall
    name: str
    pid: int
    exe: str
    path: str
    operation: str
    recorded: str  # the same as the log names it
    flags: int
    mode: int
    is_valid: Callable[[TrappedCall], bool]

    @property
    def abandoned(self) -> bool:
        return not self.is_valid(self.call)


class AskedFiles:
    """One per session that asks about files. *refusals* records the calls that are not asked about."""

    def __init__(
        self,
        loop: Loop,
        listener: Listener,
        inbox: FileQuestions,
        repeats: FoldedRecords,
        refusals: Refusals,
        rules: AskRules,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._inbox = inbox
        self._repeats = repeats
        self._refusals = refusals
        self._rules = rules
        self._names = {number: call.name for number, call in observed_calls(os.uname().machine).items()}
        self._opener: FileOpener | None = None
        self._shown: set[str] = set()  # folders
        self.showing: Callable[[str], None] | None = None  # gets a path before the session sees it

    def take(self, data: bytes) -> None:
        """*data* is a message of kind A without its first byte."""
        call = TrappedCall(data[:CALL])
        try:
            refusal = read_refusal(data[CALL:])
            held = self._held(call, refusal)
            if held is None or not self._rules.is_askable(held):
                self._refusals.take(refusal)
                self._listener.let_go_on(call)
                return
            self._decide(held)
        except Exception as error:
            self._fail(call, error)

    def close(self) -> None:
        if self._opener is not None:
            self._opener.close()

    def _held(self, call: TrappedCall, refusal: FileRefusal) -> HeldCall | None:
        name = self._names[call.number]
        flags, mode = CREAT, 0
        if name != "execve":
            at_flags, at_mode = ARGUMENTS[name]
            flags = CREAT if at_flags is None else call.arguments[at_flags] & 0xFFFFFFFF
            mode = call.arguments[at_mode] & 0o777
        if flags & O_TMPFILE or (flags & os.O_NOFOLLOW and os.path.islink(refusal.path)):
            return None
        path = os.path.realpath(refusal.path)
        pid = process_of(refusal.pid)
        return HeldCall(
            call,
            name,
            pid,
            refusal.exe or "?",
            path,
            OPERATIONS[refusal.does],
            RECORDED[refusal.does],
            flags,
            mode,
            self._listener.is_valid,
        )

    def _decide(self, held: HeldCall) -> None:
        secret = self._rules.secret_place(held.path)
        answer = self._inbox.answer_for_file(held.path, held.operation, secret)
        if answer is None:
            place = (held.path, held.operation)
            by = (held.pid, held.exe)
            answer = self._inbox.ask(place, held, by, lambda reason, _: self._answered(held, reason), secret)
        if answer is not None:
            self._answered(held, answer)

    def _answered(self, held: HeldCall, reason: str) -> None:
        try:
            if reason == reasons.APPROVED:
                self._open(held)
            elif reason == reasons.DENIED_BY_USER:
                self._record(held, reason)
                self._listener.answer(held.call, error=errno.EACCES)
            else:
                self._record(held, reason, hint=self._rules.advice.hint(held.path, held.recorded))
                self._listener.let_go_on(held.call)
        except Exception as error:
            self._fail(held.call, error)

    def _open(self, held: HeldCall) -> None:
        if held.abandoned:
            return
        if not self._record(held, reasons.APPROVED, verdict="allow"):
            self._listener.answer(held.call, error=errno.EACCES)
            return
        if self._opener is None:
            self._opener = FileOpener(self._loop, held.call.pid)

        def done(number: int, fd: int) -> None:
            self._finish(held, number, fd)

        if held.operation == EXECUTE:
            self._show(held.path, done)
            return
        folder = self._inbox.approved_folder(held.path)
        if folder is not None and folder not in self._shown and self._rules.may_be_shown(folder):
            self._shown.add(folder)
            self._show(folder, lambda number, fd: None)  # if that fails, its files are still handed over one by one
        makes = held.flags & os.O_CREAT and not os.path.lexists(held.path)
        flags, writes = held.flags & FLAGS, held.operation == WRITE
        if writes:
            remember_written(held.path)
        mode = held.mode & ~int(status_field(held.call.pid, "Umask"), 8) if makes else 0
        does = file_opener.MAKE if makes else file_opener.OPEN
        if held.flags & os.O_CREAT and held.flags & os.O_EXCL and not makes:
            self._finish(held, errno.EEXIST, -1)
            return
        self._opener.request(does, held.path, done, writes=writes, flags=flags, mode=mode)

    def _show(self, path: str, done: file_opener.Done) -> None:
        assert self._opener is not None
        if self.showing is not None:
            self.showing(path)
        self._opener.request(file_opener.SHOW, path, done)

    def _finish(self, held: HeldCall, number: int, fd: int) -> None:
        if number:
            detail = "the path leads elsewhere now, or is gone" if number in CHANGED else os.strerror(number)
            self._record(held, reasons.NOT_SHOWN, detail=f"approved, but not opened: {detail}")
            self._listener.answer(held.call, error=errno.EACCES if number == errno.ELOOP else number)
        elif held.operation == EXECUTE:
            self._listener.let_go_on(held.call)
        else:
            self._listener.hand_over(held.call, fd, held.flags & os.O_CLOEXEC)

    def _record(self, held: HeldCall, reason: str, *, verdict: str = "deny", **more: object) -> bool:
        return self._repeats.note(
            held.pid,
            event="exec" if held.operation == EXECUTE else "file",
            verdict=verdict,
            reason=reason,
            door="seccomp",
            operation=held.recorded,
            path=held.path,
            exe=held.exe,
            call=held.name,
            **more,
        )

    def _fail(self, call: TrappedCall, error: Exception) -> None:
        try:
            self._repeats.note(call.pid, verdict="deny", reason=reasons.INTERNAL, door="seccomp", detail=repr(error))
        finally:
            self._listener.answer(call, error=errno.EACCES)


class AskRules:
    """What the user is never asked about, and what is a secret."""

    def __init__(self, own: OwnPaths, rules: FileRules) -> None:
        self.home = os.path.realpath(home())
        self.advice = Advice(self.home, str, lambda: own)
        named = (*own.hidden, *own.read_only)
        self._own = tuple(dict.fromkeys((*named, *map(os.path.realpath, named))))
        self._denies = DenyRules(rules, self.home, os.path.realpath)
        self._hidden = tuple(os.path.realpath(rule.path) for rule in rules.deny_read)
        names = (*home_paths.OF_LINUX, *home_paths.AGENTS)
        self._secrets = (*(f"{self.home}/{name}" for name in names), *SYSTEM_SECRETS)

    def secret_place(self, path: str) -> str | None:
        return next((place for place in self._secrets if is_within(path, place)), None)

    def is_askable(self, held: HeldCall) -> bool:
        path, operation = held.path, held.operation
        if len(path) > MAX_PATH or not path.isprintable() or path == "/":
            return False
        if any(is_within(path, place) for place in (*KERNEL_FOLDERS, *self._own)):
            return False
        if self._denies.text_for(path, operation) is not None or is_quiet(path, self.home, operation):
            return False
        if operation == WRITE and any(f"/{name}/" in f"{path}/" for name in (*PROTECTED, ".git")):
            return False
        return self._can_use(held)

    def may_be_shown(self, folder: str) -> bool:
        """Whether it is a folder that the user may read and that holds nothing secret, denied or ours."""
        guarded = (*self._own, *self._secrets, *self._hidden)
        is_free = not any(is_within(each, folder) for each in guarded)
        return is_free and os.path.isdir(folder) and os.access(folder, os.R_OK)

    def _can_use(self, held: HeldCall) -> bool:
        """Whether the user may do that on the host."""
        path, operation = held.path, held.operation
        try:
            kind = os.stat(path).st_mode
        except FileNotFoundError:
            folder = os.path.dirname(path)
            return bool(held.flags & os.O_CREAT) and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
        except OSError:
            return False
        if stat.S_ISDIR(kind):
            return operation == READ and self.may_be_shown(path)
        return stat.S_ISREG(kind) and os.access(path, PERMISSIONS[operation])
