"""Questions are few, shared and recorded; only a recorded approval of the user allows anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.session.approvals import inbox
from netsandbox.session.approvals.reply import (
    DONE,
    GONE,
    NOBODY_WAITS,
    NOT_PENDING,
    ONCE,
    PROJECT,
    SCOPES,
    TOO_WIDE,
    UNWRITABLE,
    USER,
)
from tests.rig.inbox_bench import InboxBench

ASKED = ("asked.test", 443)


def test_a_question_is_recorded_then_said_once_and_shared() -> None:
    bench = InboxBench(wait=30)
    for _ in range(3):
        bench.ask(by=(7, "/usr/bin/node"))
    assert [record["outcome"] for record in bench.approvals] == ["asked"]
    assert (
        bench.approvals[0] | {"host": "asked.test", "port": 443, "pid": 7, "exe": "/usr/bin/node", "wait": 30}
        == (bench.approvals[0])
    )
    number = bench.number
    assert bench.lines == [
        f"node asks for asked.test:443 and waits 30 s: netsandbox approve {number} (or: netsandbox deny {number})"
    ]
    (status,) = bench.inbox.status()
    assert (status["host"], status["port"], status["waiting"], status["id"]) == (*ASKED, 3, number)
    assert bench.answers == []


def test_the_line_is_tame_whatever_the_program_is_called() -> None:
    bench = InboxBench()
    bench.ask(by=(7, "/tmp/\x1b[2J\nnetsandbox: " + "x" * 500))
    assert bench.lines[0].isprintable()
    assert len(bench.lines[0]) < 300
    bench.ask("other.test")
    assert bench.lines[1].startswith("a program asks for other.test:443")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_yes_is_recorded_before_anybody_goes_on(scope: str) -> None:
    bench = InboxBench()
    bench.ask()
    bench.ask()
    assert bench.approve(scope=scope) == DONE
    bench.pass_time()
    assert [event for event, _ in bench.story] == ["approval", "approval", "answered", "answered"]
    assert (
        bench.approvals[1] | {"outcome": "approved", "scope": scope, "by_pid": 4711, "by_uid": 1000}
        == (bench.approvals[1])
    )
    assert bench.answers == [("approved", None)] * 2
    assert bench.inbox.answer_for(*ASKED) == (None if scope == ONCE else "approved")
    assert bench.inbox.status() == []


def test_a_yes_is_for_one_host_and_one_port() -> None:
    bench = InboxBench()
    bench.ask()
    bench.approve()
    assert bench.inbox.answer_for("asked.test", 80) is None
    assert bench.inbox.answer_for("www.asked.test", 443) is None


def test_a_yes_with_an_end_ends() -> None:
    bench = InboxBench()
    bench.ask()
    bench.approve(ttl=100)
    assert bench.approvals[-1]["ttl"] == 100
    bench.pass_time(99)
    assert bench.inbox.answer_for(*ASKED) == "approved"
    bench.pass_time(1)
    assert bench.inbox.answer_for(*ASKED) is None
    bench.ask()
    assert len(bench.inbox.status()) == 1  # and the user is asked again


def test_a_no_holds_for_the_rest_of_the_session() -> None:
    bench = InboxBench()
    bench.ask()
    assert bench.deny() == DONE
    bench.pass_time(10_000)
    assert bench.answers == [("denied-by-user", None)]
    assert bench.inbox.answer_for(*ASKED) == "denied-by-user"
    assert [record["outcome"] for record in bench.approvals] == ["asked", "denied"]
    assert bench.approvals[1]["by_uid"] == 1000


def test_silence_is_a_no_and_is_asked_again_only_so_often() -> None:
    bench = InboxBench(wait=60)
    for _ in range(inbox.MAX_TIMES):
        bench.ask()
        bench.pass_time(59)
        assert len(bench.inbox.status()) == 1
        bench.pass_time(1)
        assert bench.inbox.status() == []
    assert bench.answers == [("unanswered", None)] * inbox.MAX_TIMES
    bench.ask()
    assert bench.answers[-1] == ("unanswered", "at once")
    assert len(bench.lines) == inbox.MAX_TIMES
    bench.ask("another.test")
    assert len(bench.inbox.status()) == 1


def test_an_answer_starts_the_count_anew() -> None:
    bench = InboxBench(wait=60)
    for _ in range(3 * inbox.MAX_TIMES):
        bench.ask()
        bench.pass_time(60)
        bench.ask()
        assert bench.approve(scope=ONCE) == DONE
        bench.pass_time()
    assert ("unanswered", "at once") not in bench.answers


def test_an_answer_that_comes_too_late_meets_no_other_question() -> None:
    bench = InboxBench(wait=60)
    bench.ask()
    number = bench.number
    bench.pass_time(60)
    bench.ask()
    assert bench.number != number
    assert bench.approve(number) == NOT_PENDING
    assert bench.deny(number) == NOT_PENDING
    assert bench.inbox.answer_for(*ASKED) is None
    assert [record["outcome"] for record in bench.approvals] == ["asked", "unanswered", "asked"]


def test_numbers_are_never_used_twice() -> None:
    bench = InboxBench(wait=1)
    numbers = []
    for turn in range(inbox.MAX_ASKED):
        bench.ask(f"n{turn}.test")
        numbers.append(bench.number)
        bench.pass_time(1)
    assert len(set(numbers)) == inbox.MAX_ASKED
    assert all(number in inbox.NUMBERS for number in numbers)
    bench.ask("one-more.test")
    assert bench.answers[-1] == ("unanswered", "at once")
    assert bench.inbox.status() == []


class TestLogThatCannotBeWritten:
    """INV-1, INV-5."""

    def test_nothing_is_asked(self) -> None:
        bench = InboxBench()
        bench.log.writable = False
        bench.ask()
        assert bench.answers == [("audit-unwritable", "at once")]
        assert bench.lines == []
        assert bench.inbox.status() == []

    def test_what_is_not_asked_uses_up_no_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inbox, "NUMBERS", range(1000, 1002))
        bench = InboxBench()
        bench.log.writable = False
        for _ in range(10):
            bench.ask()
        bench.log.writable = True
        bench.ask()
        assert len(bench.inbox.status()) == 1

    @pytest.mark.parametrize("scope", SCOPES)
    def test_a_yes_is_a_no(self, scope: str) -> None:
        bench = InboxBench()
        bench.ask()
        bench.log.writable = False
        assert bench.approve(scope=scope) == UNWRITABLE
        bench.pass_time()
        assert bench.answers == [("audit-unwritable", None)]
        assert bench.inbox.answer_for(*ASKED) is None

    def test_a_no_is_a_no(self) -> None:
        bench = InboxBench()
        bench.ask()
        bench.log.writable = False
        assert bench.deny() == DONE
        bench.pass_time()
        assert bench.answers == [("denied-by-user", None)]


class TestBounds:
    def test_questions_at_once(self) -> None:
        bench = InboxBench()
        for turn in range(inbox.MAX_QUESTIONS + 1):
            bench.ask(f"n{turn}.test")
        assert bench.answers == [("limit", "at once")]
        assert len(bench.inbox.status()) == len(bench.lines) == inbox.MAX_QUESTIONS
        bench.ask("n0.test")  # joins an open question
        assert bench.answers == [("limit", "at once")]

    def test_connections_that_wait(self) -> None:
        bench = InboxBench()
        attempts = [bench.ask() for _ in range(inbox.MAX_WAITING + 1)]
        assert bench.answers == [("limit", "at once")]
        for attempt in attempts[:2]:
            attempt.abandoned = True
        bench.ask()
        assert bench.answers[1:] == [("unanswered", inbox.LEFT)] * 2
        (status,) = bench.inbox.status()
        assert status["waiting"] == inbox.MAX_WAITING - 1


class TestClientsThatLeft:
    def test_a_yes_sends_nobody_on_who_left_and_still_counts(self) -> None:
        bench = InboxBench()
        bench.ask().abandoned = True
        (status,) = bench.inbox.status()
        assert status["waiting"] == 0
        assert bench.approve() == DONE
        bench.pass_time()
        assert bench.answers == [("unanswered", inbox.LEFT)]
        assert bench.inbox.answer_for(*ASKED) == "approved"

    def test_once_is_for_somebody(self) -> None:
        bench = InboxBench()
        bench.ask().abandoned = True
        assert bench.approve(scope=ONCE) == NOBODY_WAITS
        assert len(bench.inbox.status()) == 1
        bench.ask()
        assert bench.approve(scope=ONCE) == DONE
        bench.pass_time()
        assert sorted(bench.answers, key=str) == [("approved", None), ("unanswered", inbox.LEFT)]


def test_the_end_of_the_session_refuses_whatever_waits() -> None:
    bench = InboxBench()
    bench.ask()
    bench.ask("other.test")
    bench.inbox.close()
    assert bench.answers == [("unanswered", inbox.ENDED)] * 2
    assert [record["outcome"] for record in bench.approvals] == ["asked", "asked", "unanswered", "unanswered"]
    assert bench.inbox.status() == []
    bench.pass_time(100)  # no timer is left that would answer twice
    assert len(bench.answers) == 2


def test_a_yes_that_the_end_overtakes_is_a_no() -> None:
    bench = InboxBench()
    bench.ask()
    assert bench.approve() == DONE
    bench.inbox.close()
    assert bench.answers == [("unanswered", inbox.ENDED)]
    bench.pass_time()
    assert len(bench.answers) == 1


@pytest.mark.parametrize("line", [b"", b'{"op":"status"}', b'{"op":"stop"}', b'{"op":"approve","id":1}', b"\xff" * 99])
def test_what_is_no_answer_is_not_heard(line: bytes) -> None:
    bench = InboxBench()
    bench.ask()
    assert bench.inbox.handle_reply(line, 1, 0) is None
    assert len(bench.inbox.status()) == 1


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "leave", "once", "session", "ttl", "deny", "wait"]), st.integers(0, 3)),
    max_size=40,
)


@given(STEPS)
def test_whatever_happens_each_connection_is_answered_once_and_only_a_yes_lets_through(steps: list[Any]) -> None:
    bench = InboxBench(wait=60)
    attempts = []
    granted: set[tuple[str, int]] = set()
    for act, which in steps:
        place = (f"n{which}.test", 443)
        numbers = {(s["host"], s["port"]): s["id"] for s in bench.inbox.status()}
        if act == "ask":
            attempts.append(bench.ask(*place))
        elif act == "leave" and which < len(attempts):
            attempts[which].abandoned = True
        elif act == "wait":
            bench.pass_time(25)
        elif place in numbers:
            heard = bench.deny(numbers[place]) if act == "deny" else (  # type: ignore[arg-type]
                bench.approve(numbers[place], ONCE if act == "once" else "session", 50 if act == "ttl" else 0)  # type: ignore[arg-type]
            )  # fmt: skip
            if heard == DONE and act != "deny":
                granted.add(place)
        said = bench.inbox.answer_for(*place)
        assert said != "approved" or place in granted
    bench.inbox.close()
    bench.pass_time(1000)
    assert len(bench.answers) == len(attempts)
    assert bench.inbox.status() == []
    approvals = [record for record in bench.approvals if record["outcome"] == "approved"]
    assert bool(approvals) == bool(granted)
    assert ("approved", None) not in bench.answers or approvals


def test_scopes_that_are_kept_hold_in_the_session_too() -> None:
    for scope in (PROJECT, USER):
        bench = InboxBench()
        bench.ask()
        bench.approve(scope=scope)
        assert bench.inbox.answer_for(*ASKED) == "approved"


# Files


def test_a_file_is_asked_about_by_its_path_and_use(tmp_path: Path) -> None:
    bench, path = InboxBench(wait=30), str(tmp_path / "key")
    Path(path).touch()
    bench.ask_file(path, secret=str(tmp_path))
    assert bench.lines[0].startswith(f"cat asks to read {path}, a secret, and waits 30 s: netsandbox approve ")
    (status,) = bench.inbox.status()
    assert (status["path"], status["operation"], status["secret"]) == (path, "read", True)
    assert "host" not in status
    assert bench.approve(ttl=5) == DONE
    assert bench.approvals[-1] | {"path": path, "operation": "read", "ttl": 5} == bench.approvals[-1]
    assert bench.inbox.answer_for_file(path, "read", None) == "approved"
    assert bench.inbox.answer_for_file(path, "write", None) is None
    bench.pass_time(5)
    assert bench.inbox.answer_for_file(path, "read", None) is None


def test_an_answer_about_a_folder_answers_the_other_questions_in_it(tmp_path: Path) -> None:
    bench = InboxBench()
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
        bench.ask_file(str(tmp_path / name))
    bench.ask_file(str(tmp_path / "a"), "write")
    number = bench.inbox.status()[0]["id"]
    assert isinstance(number, int)
    assert bench.approve(number, above=1) == DONE
    assert bench.approvals[-1]["path"] == f"{tmp_path}/"
    bench.pass_time()
    assert bench.answers == [("approved", None)] * 3
    assert bench.deny(above=1) == DONE  # to write
    bench.pass_time()
    assert bench.answers[3:] == [("denied-by-user", None)]
    assert bench.inbox.answer_for_file(str(tmp_path / "d"), "write", None) == "denied-by-user"
    assert bench.inbox.answer_for_file(str(tmp_path / "d"), "read", None) == "approved"


def test_an_answer_about_the_root_or_a_hosts_folder_is_not_taken(tmp_path: Path) -> None:
    bench = InboxBench()
    bench.ask_file("/etc/hosts")
    assert bench.approve(above=2) == TOO_WIDE
    assert bench.deny(above=40) == TOO_WIDE
    bench.ask()
    assert bench.approve(above=1) == TOO_WIDE
    bench.pass_time()
    assert bench.answers == []


def test_a_file_that_is_gone_is_not_approved(tmp_path: Path) -> None:
    bench, path = InboxBench(), str(tmp_path / "gone")
    bench.ask_file(path)
    assert bench.approve() == GONE
    bench.pass_time()
    assert bench.answers == [("unanswered", None)]
    assert bench.approvals[-1]["detail"] == "the file is gone"
    assert bench.inbox.answer_for_file(path, "read", None) is None
    bench.ask_file(path, "write")  # may be made
    assert bench.approve() == DONE


def test_the_widest_folder_that_is_approved_until_the_end_and_in_which_nothing_is_refused(tmp_path: Path) -> None:
    for name in ("a/b/file", "a/b/no", "a/other", "a/brief/file"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    bench, path = InboxBench(), str(tmp_path / "a" / "b" / "file")
    for above, found in ((0, path), (1, f"{tmp_path}/a/b"), (2, f"{tmp_path}/a")):
        bench.ask_file(path)
        assert bench.approve(above=above) == DONE
        bench.pass_time()
        assert bench.inbox.approved_folder(path) == found
    assert bench.inbox.approved_folder(str(tmp_path / "else")) is None
    bench.ask_file(str(tmp_path / "a" / "other"), "write")
    assert bench.deny() == DONE
    assert bench.inbox.approved_folder(path) is None
    brief = InboxBench()
    brief.ask_file(path)
    assert brief.approve(above=1, ttl=5) == DONE
    assert brief.inbox.approved_folder(path) is None  # what is shown cannot be taken back
