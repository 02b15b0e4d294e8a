"""The questions of one session to its user: what waits, what was answered, and for how long that holds.

Rules kept here:
1. Nothing is approved by silence, by a fault or without a record: each question and each answer is in the log before it
   has an effect, and where that cannot be written the answer is no (INV-1, INV-5).
2. Everything is bounded: questions at once and in all, connections that wait, how often the same thing is asked.
3. What is asked for a second time shares the question; its line is said once.
4. An approval lies over the policy, which stays as it is: lookup, address guard and the check of names come after it.
"""

from __future__ import annotations

import os
import time

from netsandbox.policy import reasons
from netsandbox.session.approvals import reply as replies
from netsandbox.session.approvals.askable import is_askable, owner_of
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from netsandbox_proxy.contract import Attempt

    from netsandbox.audit.log import AuditLog
    from netsandbox.session.approvals.reply import Reply

    Place = tuple[str, int]
    Answered = Callable[[str, str | None], None]  # a reason, and a detail for the log

    class Timer(Protocol):
        def cancel(self) -> None: ...


MAX_QUESTIONS = 64  # at once
MAX_WAITING = 256  # connections, of all questions together
MAX_ASKED = 1000  # questions of one session
MAX_TIMES = 3  # that the same place is asked for without an answer
NUMBERS = range(1000, 10000)
MAX_NAME = 64  # of a program, in the line
FOREVER = float("inf")
LEFT, ENDED = "the client left", "the session ended"


class Question:
    """One place that is asked for; it stays until it is answered or due, though all clients may leave."""

    __slots__ = ("exe", "number", "pid", "place", "timer", "until", "waiting")

    def __init__(self, number: int, place: Place, by: tuple[int, str] | None, until: int) -> None:
        self.number = number
        self.place = place
        self.pid = by[0] if by else None
        self.exe = by[1] if by else None
        self.until = until  # by the clock on the wall, for people
        self.waiting: list[tuple[Attempt, Answered]] = []
        self.timer: Timer | None = None


class Inbox:
    """One per session that asks. *later* and *clock* are the loop's; *say* tells the user."""

    is_askable = staticmethod(is_askable)
    owner_of = staticmethod(owner_of)

    def __init__(
        self,
        log: AuditLog,
        wait: int,
        *,
        clock: Callable[[], float],
        later: Callable[[float, Callable[[], None]], Timer],
        say: Callable[[str], object],
    ) -> None:
        self._log = log
        self._wait = wait
        self._clock = clock
        self._later = later
        self._say = say
        self._numbers: set[int] = set()  # of this session; none is used twice, so a late answer meets no other question
        self._questions: dict[int, Question] = {}
        self._by_place: dict[Place, Question] = {}
        self._approved: dict[Place, float] = {}  # until when
        self._denied: set[Place] = set()
        self._unanswered: dict[Place, int] = {}
        self._answering: list[Answered] = []  # connections whose answer is on its way

    # For the gate.

    def said(self, host: str, port: int) -> str | None:
        """What holds for this place: approved, denied-by-user, or None, nothing yet or no longer."""
        place = (host, port)
        if place in self._denied:
            return reasons.DENIED_BY_USER
        until = self._approved.get(place)
        if until is None:
            return None
        if self._clock() < until:
            return reasons.APPROVED
        del self._approved[place]
        return None

    def ask(self, place: Place, attempt: Attempt, by: tuple[int, str] | None, answered: Answered) -> str | None:
        """None: *answered* is called once, later. Otherwise it is refused at once, for this reason."""
        if self._waiting() >= MAX_WAITING:
            return reasons.LIMIT
        question = self._by_place.get(place)
        if question is None:
            made = self._new(place, by)
            if isinstance(made, str):
                return made
            question = made
        question.waiting.append((attempt, answered))
        return None

    def close(self) -> None:
        """The session ends: whatever waits is refused."""
        for question in list(self._questions.values()):
            self._write(question, "unanswered", detail=ENDED)
            self._answering += [answered for _, answered in self._taken(question)]
        while self._answering:
            self._answering.pop()(reasons.UNANSWERED, ENDED)

    # For the user.

    def status(self) -> list[dict[str, object]]:
        return [
            {
                "id": question.number,
                "host": question.place[0],
                "port": question.place[1],
                "pid": question.pid,
                "exe": question.exe,
                "until": question.until,
                "waiting": len(self._still(question)),
            }
            for question in self._questions.values()
        ]

    def handle_reply(self, line: bytes, pid: int, uid: int) -> bytes | None:
        """What is said to an answer that the process *pid* of the user *uid* gave; None: *line* is none."""
        reply = replies.read(line)
        if reply is None:
            return None
        question = self._questions.get(reply.number)
        if question is None:
            return replies.NOT_PENDING
        if reply.op == replies.DENY:
            self._write(question, "denied", by_pid=pid, by_uid=uid)
            self._denied.add(question.place)
            self._settle(question, reasons.DENIED_BY_USER)
            return replies.DONE
        return self._approve(question, reply, pid, uid)

    def _approve(self, question: Question, reply: Reply, pid: int, uid: int) -> bytes:
        if reply.scope == replies.ONCE and not self._still(question):
            return replies.NOBODY_WAITS
        ttl = reply.ttl or None
        if not self._write(question, "approved", scope=reply.scope, ttl=ttl, by_pid=pid, by_uid=uid):
            self._settle(question, reasons.AUDIT_UNWRITABLE)
            return replies.UNWRITABLE
        self._unanswered.pop(question.place, None)
        if reply.scope != replies.ONCE:
            self._approved[question.place] = self._clock() + reply.ttl if reply.ttl else FOREVER
        self._settle(question, reasons.APPROVED)
        return replies.DONE

    # The life of a question.

    def _new(self, place: Place, by: tuple[int, str] | None) -> Question | str:
        if len(self._numbers) >= MAX_ASKED or self._unanswered.get(place, 0) >= MAX_TIMES:
            return reasons.UNANSWERED
        if len(self._questions) >= MAX_QUESTIONS:
            return reasons.LIMIT
        question = Question(self._number(), place, by, int(time.time()) + self._wait)
        if not self._write(question, "asked", wait=self._wait):
            return reasons.AUDIT_UNWRITABLE
        self._numbers.add(question.number)
        self._questions[question.number] = self._by_place[place] = question
        question.timer = self._later(self._wait, lambda: self._expire(question))
        self._say(_line(question, self._wait))
        return question

    def _number(self) -> int:
        """By chance, so that an answer to a question of another session, which is gone, hardly finds one here."""
        while True:  # ends: there are many times more numbers than questions
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
        """In a turn of its own, so that one that fails takes no other along; or as a no when the session ends first."""
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
        """How many connections wait; whoever left is let go when there seem to be too many."""
        if sum(len(question.waiting) for question in self._questions.values()) >= MAX_WAITING:
            for question in self._questions.values():
                left = [each for each in question.waiting if each[0].abandoned]
                question.waiting = self._still(question)
                for _, answered in left:
                    answered(reasons.UNANSWERED, LEFT)
        return sum(len(question.waiting) for question in self._questions.values())

    def _write(self, question: Question, outcome: str, **more: object) -> bool:
        host, port = question.place
        return self._log.write(
            "approval",
            host=host,
            port=port,
            pid=question.pid,
            exe=question.exe,
            outcome=outcome,
            id=question.number,
            **more,
        )


def _line(question: Question, wait: int) -> str:
    host, port = question.place
    program = printable((question.exe or "").rpartition("/")[2])[:MAX_NAME] or "a program"
    number = question.number
    answers = f"netsandbox approve {number} (or: netsandbox deny {number})"
    return f"{program} asks for {printable(host)}:{port} and waits {wait} s: {answers}"
