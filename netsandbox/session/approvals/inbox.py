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

    Destination = tuple[str, int]
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
LEFT, ENDED = "the client left", "the session ended"


class Question:
    """A question about one place. It stays open until its answer or its deadline, even if all clients have left."""

    __slots__ = ("exe", "number", "pid", "place", "timer", "until", "waiting")

    def __init__(self, number: int, place: Destination, by: tuple[int, str] | None, until: int) -> None:
        self.number = number
        self.place = place
        self.pid = by[0] if by else None
        self.exe = by[1] if by else None
        self.until = until  # wall-clock time, to be shown to the user
        self.waiting: list[tuple[Attempt, Answered]] = []
        self.timer: Timer | None = None


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
        self._by_place: dict[Destination, Question] = {}
        self._approved: dict[Destination, float] = {}  # when each approval expires
        self._denied: set[Destination] = set()
        self._unanswered: dict[Destination, int] = {}
        self._answering: list[Answered] = []  # connections whose answer is scheduled

    # Used by the gate.

    def answer_for(self, host: str, port: int) -> str | None:
        """The answer that applies to this place now: approved, denied-by-user, or None if there is none."""
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

    def ask(self, place: Destination, attempt: Attempt, by: tuple[int, str] | None, answered: Answered) -> str | None:
        """Ask the user; None if *answered* is called later, once, or else the reason to refuse now."""
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
        """The response to the answer in *line*, sent by *pid* of the user *uid*; None if *line* is no answer."""
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

    # The life cycle of a question.

    def _new(self, place: Destination, by: tuple[int, str] | None) -> Question | str:
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
