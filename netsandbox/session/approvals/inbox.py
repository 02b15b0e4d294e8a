"""The questions of one session to its user: those that wait, the answers, and how long each answer applies.

Rules kept here:
1. Silence, an error or a missing record never approves anything. Each question and each answer is in the log before it
   takes effect; if the log cannot be written, the answer is no (INV-1, INV-5).
2. Everything is bounded: open questions, questions per session, waiting connections, repetitions of a question.
3. A second attempt at the same place joins the open question. The user gets one notice.
4. An approval does not change the policy. Lookup, address guard and tunnel guard still follow it.
"""

from __future__ import annotations

import os
import time

from netsandbox.paths import short
from netsandbox.policy import reasons
from netsandbox.policy.file_rules import is_within
from netsandbox.session.approvals import file_places
from netsandbox.session.approvals import reply as replies
from netsandbox.session.approvals.askable import is_askable, owner_of
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.contract import HeldAttempt as Attempt
    from netsandbox.session.approvals.reply import Reply

    Place = tuple[str, int | str]  # a host and a port, or a path and what is done with it
    Answered = Callable[[str, str | None], None]  # receives a reason, and a detail for the log

    class Timer(Protocol):
        def cancel(self) -> None: ...


MAX_QUESTIONS = 64  # open at the same time
MAX_WAITING = 256  # connections, over all questions
MAX_ASKED = 1000  # questions per session
MAX_TIMES = 3  # questions about the same place without an answer
NUMBERS = range(1000, 10000)
MAX_NAME = 64  # characters of a program's name in the notice
FOREVER = float("inf")
LEFT, ENDED, GONE = "the client left", "the session ended", "the file is gone"


class Question:
    """A question about one place. It stays open until its answer or its deadline, even if all clients have left."""

    __slots__ = ("exe", "number", "pid", "place", "secret", "timer", "until", "waiting")

    def __init__(self, number: int, place: Place, by: tuple[int, str] | None, until: int) -> None:
        self.number = number
        self.place = place
        self.pid = by[0] if by else None
        self.exe = by[1] if by else None
        self.until = until  # wall-clock time, to be shown to the user
        self.waiting: list[tuple[Attempt, Answered]] = []
        self.timer: Timer | None = None
        self.secret: str | None = None  # the place of secrets that a file lies in

    @property
    def file(self) -> file_places.FilePlace | None:
        path, operation = self.place
        return (path, operation) if isinstance(operation, str) else None

    @property
    def target(self) -> dict[str, object]:
        """What it is about, as fields."""
        return dict(zip(("path", "operation") if self.file else ("host", "port"), self.place, strict=True))


class Inbox:
    """The inbox of one session that asks. *later* and *clock* come from the loop; *notify* writes a notice."""

    is_askable = staticmethod(is_askable)
    owner_of = staticmethod(owner_of)

    def __init__(
        self,
        log: AuditLog,
        wait: int,
        *,
        clock: Callable[[], float],
        later: Callable[[float, Callable[[], None]], Timer],
        notify: Callable[[str], object],
    ) -> None:
        self._log = log
        self._wait = wait
        self._clock = clock
        self._later = later
        self._notify = notify
        self._numbers: set[int] = set()  # every number used; none is reused, so a late answer matches no other question
        self._questions: dict[int, Question] = {}
        self._by_place: dict[Place, Question] = {}
        self._approved: dict[Place, float] = {}  # when each approval expires
        self._denied: set[Place] = set()
        self._unanswered: dict[Place, int] = {}
        self._answering: list[Answered] = []  # connections whose answer is scheduled

    # Used by the gate.

    def answer_for(self, name: str, use: int | str) -> str | None:
        """The answer that applies to this place now: approved, denied-by-user, or None if there is none."""
        place = (name, use)
        if place in self._denied:
            return reasons.DENIED_BY_USER
        until = self._approved.get(place)
        if until is None:
            return None
        if self._clock() < until:
            return reasons.APPROVED
        del self._approved[place]
        return None

    def answer_for_file(self, path: str, operation: str, secret: str | None) -> str | None:
        """The same for a file, by the answers about it and its folders. A refusal wins."""
        if not self._denied.isdisjoint(file_places.closing(path, operation)):
            return reasons.DENIED_BY_USER
        places = file_places.opening(path, operation, secret)
        return next((reasons.APPROVED for place in places if self.answer_for(*place) == reasons.APPROVED), None)

    def approved_folder(self, path: str) -> str | None:
        """The widest folder around *path*, or *path*, that is approved until the session ends; None if something in it
        was refused."""
        places = reversed(file_places.opening(path, file_places.READ, None))
        folder = next((place[0] for place in places if self._approved.get(place) == FOREVER), "/").rstrip("/")
        refused = (str(place[0]).rstrip("/") for place in self._denied if isinstance(place[1], str))
        return None if not folder or any(is_within(each, folder) for each in refused) else folder

    def ask(
        self,
        place: Place,
        attempt: Attempt,
        by: tuple[int, str] | None,
        answered: Answered,
        secret: str | None = None,
    ) -> str | None:
        """Ask the user; None if *answered* is called later, once, or else the reason to refuse now. *secret*: the place
        of secrets that a file lies in."""
        if self._waiting() >= MAX_WAITING:
            return reasons.LIMIT
        question = self._by_place.get(place)
        if question is None:
            made = self._new(place, by, secret)
            if isinstance(made, str):
                return made
            question = made
        question.waiting.append((attempt, answered))
        return None

    def close(self) -> None:
        """Refuse everything that waits, at the end of the session."""
        for question in list(self._questions.values()):
            self._write(question, "unanswered", detail=ENDED)
            self._answering += [answered for _, answered in self._taken(question)]
        while self._answering:
            self._answering.pop()(reasons.UNANSWERED, ENDED)

    # Used by the user's commands.

    def status(self) -> list[dict[str, object]]:
        return [
            {
                "id": question.number,
                **question.target,
                **({"secret": question.secret is not None} if question.file else {}),
                "pid": question.pid,
                "exe": question.exe,
                "until": question.until,
                "waiting": len(self._still(question)),
            }
            for question in self._questions.values()
        ]

    def handle_reply(self, line: bytes, pid: int, uid: int) -> bytes | None:
        """The response to the answer in *line*, sent by *pid* of the user *uid*; None if *line* is no answer."""
        reply = replies.read(line)
        if reply is None:
            return None
        question = self._questions.get(reply.number)
        if question is None:
            return replies.NOT_PENDING
        place = question.file and file_places.raised(question.file, reply.above) if reply.above else question.place
        if place is None:
            return replies.TOO_WIDE
        about = {"path": place[0]} if place != question.place else {}
        if reply.op == replies.DENY:
            self._write(question, "denied", by_pid=pid, by_uid=uid, **about)
            self._denied.add(place)
            self._settle(question, reasons.DENIED_BY_USER)
            self._settle_covered()
            return replies.DONE
        return self._approve(question, place, reply, {"by_pid": pid, "by_uid": uid, **about})

    def _approve(self, question: Question, place: Place, reply: Reply, facts: dict[str, object]) -> bytes:
        if reply.scope == replies.ONCE and not self._still(question):
            return replies.NOBODY_WAITS
        if question.file and not _is_there(question.file):
            self._write(question, "unanswered", detail=GONE)
            self._settle(question, reasons.UNANSWERED)
            return replies.GONE
        if not self._write(question, "approved", scope=reply.scope, ttl=reply.ttl or None, **facts):
            self._settle(question, reasons.AUDIT_UNWRITABLE)
            return replies.UNWRITABLE
        self._unanswered.pop(question.place, None)
        if reply.scope != replies.ONCE:
            self._approved[place] = self._clock() + reply.ttl if reply.ttl else FOREVER
        self._settle(question, reasons.APPROVED)
        self._settle_covered()
        return replies.DONE

    def _settle_covered(self) -> None:
        """An answer about a folder answers the other questions about files in it."""
        for question in list(self._questions.values()):
            answer = question.file and self.answer_for_file(*question.file, question.secret)
            if answer:
                self._settle(question, answer)

    # The life cycle of a question.

    def _new(self, place: Place, by: tuple[int, str] | None, secret: str | None) -> Question | str:
        if len(self._numbers) >= MAX_ASKED or self._unanswered.get(place, 0) >= MAX_TIMES:
            return reasons.UNANSWERED
        if len(self._questions) >= MAX_QUESTIONS:
            return reasons.LIMIT
        question = Question(self._number(), place, by, int(time.time()) + self._wait)
        question.secret = secret
        if not self._write(question, "asked", wait=self._wait):
            return reasons.AUDIT_UNWRITABLE
        self._numbers.add(question.number)
        self._questions[question.number] = self._by_place[place] = question
        question.timer = self._later(self._wait, lambda: self._expire(question))
        self._notify(_line(question, self._wait))
        return question

    def _number(self) -> int:
        """A random number, so an answer meant for an ended session is unlikely to match a question of this one."""
        while True:  # terminates: there are far more numbers than questions
            number = NUMBERS[int.from_bytes(os.urandom(4), "big") % len(NUMBERS)]
            if number not in self._numbers:
                return number

    def _expire(self, question: Question) -> None:
        self._write(question, "unanswered")
        self._unanswered[question.place] = self._unanswered.get(question.place, 0) + 1
        self._settle(question, reasons.UNANSWERED)

    def _settle(self, question: Question, reason: str) -> None:
        for attempt, answered in self._taken(question):
            if attempt.abandoned:
                self._answer_soon(answered, reasons.UNANSWERED, LEFT)
            else:
                self._answer_soon(answered, reason, None)

    def _answer_soon(self, answered: Answered, reason: str, detail: str | None) -> None:
        """Schedule each call separately, so that a failure affects no other; `close` turns it into a refusal."""
        self._answering.append(answered)

        def answer() -> None:
            if answered in self._answering:
                self._answering.remove(answered)
                answered(reason, detail)

        self._later(0, answer)

    def _taken(self, question: Question) -> list[tuple[Attempt, Answered]]:
        del self._questions[question.number], self._by_place[question.place]
        if question.timer is not None:
            question.timer.cancel()
        waiting, question.waiting = question.waiting, []
        return waiting

    def _still(self, question: Question) -> list[tuple[Attempt, Answered]]:
        return [each for each in question.waiting if not each[0].abandoned]

    def _waiting(self) -> int:
        """The number of waiting connections. At the limit, those whose client has left are dropped first."""
        if sum(len(question.waiting) for question in self._questions.values()) >= MAX_WAITING:
            for question in self._questions.values():
                left = [each for each in question.waiting if each[0].abandoned]
                question.waiting = self._still(question)
                for _, answered in left:
                    answered(reasons.UNANSWERED, LEFT)
        return sum(len(question.waiting) for question in self._questions.values())

    def _write(self, question: Question, outcome: str, **more: object) -> bool:
        fields = {**question.target, "pid": question.pid, "exe": question.exe, "outcome": outcome, **more}
        return self._log.write("approval", id=question.number, **fields)


def _line(question: Question, wait: int) -> str:
    place, port = question.place
    program = printable((question.exe or "").rpartition("/")[2])[:MAX_NAME] or "a program"
    number = question.number
    answers = f"netsandbox approve {number} (or: netsandbox deny {number})"
    wish = f"for {printable(place)}:{port}"
    if question.file:
        wish = f"to {port} {printable(short(place))}{', a secret,' if question.secret else ''}"
    return f"{program} asks {wish} and waits {wait} s: {answers}"


def _is_there(place: file_places.FilePlace) -> bool:
    """Whether the file exists, or may be made."""
    path, operation = place
    return os.path.lexists(os.path.dirname(path) if operation == file_places.WRITE else path)
