"""Which refused calls are asked about, and that no error opens anything. tests/integration has the real sessions."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netsandbox import paths
from netsandbox.backends.linux.seccomp_notify import NOTIFICATION
from netsandbox.backends.namespaces import asked_files, file_opener
from netsandbox.backends.namespaces.asked_files import READ, WRITE, AskedFiles, AskRules
from netsandbox.backends.namespaces.file_calls import observed_calls
from netsandbox.policy.file_rules import FileRules, path_rule
from netsandbox.runtime.protection import OwnPaths
from netsandbox.runtime.written_folders import writers

OPENAT = next(number for number, call in observed_calls(os.uname().machine).items() if call.name == "openat")


class Listener:
    def __init__(self) -> None:
        self.outcomes: list[object] = []
        self.is_there = True

    def is_valid(self, call: object) -> bool:
        return self.is_there

    def let_go_on(self, call: object) -> None:
        self.outcomes.append("continued")

    def answer(self, call: object, *, value: int = 0, error: int = 0) -> bool:
        self.outcomes.append(errno.errorcode[error])
        return True

    def hand_over(self, call: object, fd: int, flags: int) -> bool:
        self.outcomes.append(os.read(fd, 99).decode())
        return True


class Inbox:
    """Answers each question at once, or not at all (None)."""

    def __init__(self) -> None:
        self.answer: str | None = None
        self.folder: str | None = None
        self.asked: list[tuple[object, object]] = []

    def answer_for_file(self, path: str, operation: str, secret: str | None) -> str | None:
        return None

    def approved_folder(self, path: str) -> str | None:
        return self.folder

    def ask(self, place: Any, attempt: Any, by: Any, answered: Any, secret: str | None = None) -> str | None:
        self.asked.append((place, secret))
        if self.answer == "fails":
            raise RuntimeError
        return self.answer


class Records:
    """Takes the place of the log and of the recorder of refusals."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.is_writable = True

    def note(self, pid: int, **fields: Any) -> bool:
        self.notes.append(fields)
        return self.is_writable

    def take(self, refusal: Any) -> None:
        self.refusals.append(refusal.path)


class Opener:
    requests: ClassVar[list[tuple[int, str]]] = []

    def __init__(self, loop: object, pid: int) -> None:
        self.requests.clear()

    def request(self, does: int, path: str, done: Callable[[int, int], None], **more: object) -> None:
        self.requests.append((does, path))
        fd = os.open(path, os.O_RDONLY)
        done(0, fd)
        os.close(fd)


class Bench:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.listener, self.inbox, self.records = Listener(), Inbox(), Records()
        own = OwnPaths((str(home / "state"),), (str(home / "config"),))
        deny = path_rule(str(home / "denied"), "--deny-read", "/", lambda: str(home))
        records: Any = self.records
        rules = AskRules(own, FileRules(deny_read=(deny,)))
        self.asked = AskedFiles(None, self.listener, self.inbox, records, records, rules)  # type: ignore[arg-type]

    def take(self, path: Path | bytes, does: bytes = b"r", flags: int = 0) -> str:
        """What became of the call."""
        name = os.fsencode(path)
        call = NOTIFICATION.pack(1, os.getpid(), 0, OPENAT, 0, 0, 0, 0, flags, 0o666, 0, 0)
        head = struct.pack("=ccHiI", b"h", does, OPENAT, os.getpid(), 1)
        self.asked.take(call + head + b"/bin/cat\0" + name + b"\0")
        return str(self.listener.outcomes.pop()) if self.listener.outcomes else "waits"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(asked_files, "FileOpener", Opener)
    for name in ("docs/plan", "state/x", "config/x", "denied/x", ".aws/key", "some/denied-not", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("canary")
    return Bench(tmp_path)


def test_the_question_has_the_real_path_and_names_a_secret(bench: Bench) -> None:
    (bench.home / "link").symlink_to("docs")
    assert bench.take(bench.home / "link" / "plan") == "waits"
    assert bench.take(bench.home / ".aws" / "key") == "waits"
    assert bench.inbox.asked == [
        ((str(bench.home / "docs" / "plan"), READ), None),
        ((str(bench.home / ".aws" / "key"), READ), str(bench.home / ".aws")),
    ]


@pytest.mark.parametrize("name", ["gone", "state/x", "config/x", "denied/x", "state", "", ".bash_history"])
def test_what_is_not_asked_about_continues_and_is_recorded_as_ever(bench: Bench, name: str) -> None:
    (bench.home / ".bash_history").write_text("canary")
    assert bench.take(bench.home / name) == "continued"
    assert (bench.inbox.asked, len(bench.records.refusals)) == ([], 1)


def test_a_folder_is_asked_about_unless_something_in_it_is_closed(bench: Bench) -> None:
    assert bench.take(bench.home / "docs") == "waits"
    assert bench.take(bench.home) == "continued"
    (bench.home / "outer").mkdir()
    (bench.home / "denied").rename(bench.home / "outer" / "denied")
    (bench.home / "denied").symlink_to("outer/denied")
    again = Bench(bench.home)
    assert again.take(bench.home / "outer") == "continued"
    assert again.take(bench.home / "docs") == "waits"


def test_git_and_protected_names_are_read_but_not_written(bench: Bench) -> None:
    (bench.home / "docs" / ".envrc").write_text("")
    assert bench.take(bench.home / ".git" / "config") == "waits"
    for name in (".git/config", "docs/.envrc"):
        assert bench.take(bench.home / name, b"w", os.O_WRONLY) == "continued"
    assert bench.take(bench.home / "docs" / "plan", b"w", os.O_WRONLY) == "waits"
    assert bench.take(bench.home / "docs" / "new", b"n", os.O_WRONLY | os.O_CREAT) == "waits"
    assert bench.take(bench.home / "docs" / "new", b"w", os.O_WRONLY) == "continued"
    assert bench.inbox.asked[-1] == ((str(bench.home / "docs" / "new"), WRITE), None)


def test_flags_that_another_process_cannot_follow_are_not_asked_about(bench: Bench) -> None:
    (bench.home / "link").symlink_to("docs/plan")
    assert bench.take(bench.home / "link", flags=os.O_NOFOLLOW) == "continued"
    assert bench.take(bench.home / "docs", b"w", os.O_RDWR | os.O_TMPFILE) == "continued"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("approved", "canary"), ("denied-by-user", "EACCES"), ("unanswered", "continued"), ("limit", "continued")],
)
def test_only_a_yes_hands_the_file_over(bench: Bench, answer: str, outcome: str) -> None:
    bench.inbox.answer = answer
    assert bench.take(bench.home / "docs" / "plan") == outcome
    assert [note["reason"] for note in bench.records.notes] == [answer]


def test_an_approved_folder_is_shown_once_unless_something_in_it_is_closed(bench: Bench) -> None:
    bench.inbox.answer = "approved"
    plan, docs = str(bench.home / "docs" / "plan"), str(bench.home / "docs")
    for folder in (None, str(bench.home), plan, docs, docs):  # the home has secrets, and the plan is no folder
        bench.inbox.folder = folder
        assert bench.take(Path(plan)) == "canary"
    opened = (file_opener.OPEN, plan)
    assert Opener.requests == [opened, opened, opened, (file_opener.SHOW, docs), opened, opened]


@pytest.mark.attack(228)
@pytest.mark.parametrize(("does", "flags", "marks"), [(b"r", os.O_RDONLY, 0), (b"w", os.O_RDWR, 1)])
def test_a_file_that_may_be_written_is_no_longer_the_users_own(
    bench: Bench, does: bytes, flags: int, marks: int
) -> None:
    """Otherwise a session that may write ~/.npmrc once would choose what later sessions reach."""
    bench.inbox.answer = "approved"
    assert bench.take(bench.home / "docs" / "plan", does, flags) == "canary"
    assert len(list(writers(str(bench.home / "docs" / "plan")))) == marks
    written = Path(paths.memory_home(), "written")
    written.mkdir(parents=True, exist_ok=True)
    written.rename(bench.home / "away")
    written.write_text("no folder for marks")
    assert bench.take(bench.home / "docs" / "plan", does, flags) == ("EACCES" if marks else "canary")


def test_a_yes_without_a_record_an_error_and_a_caller_that_left_open_nothing(bench: Bench) -> None:
    bench.inbox.answer = "approved"
    bench.records.is_writable = False
    assert bench.take(bench.home / "docs" / "plan") == "EACCES"
    bench.records.is_writable = True
    bench.listener.is_there = False
    assert bench.take(bench.home / "docs" / "plan") == "waits"
    bench.listener.is_there = True
    bench.inbox.answer = "fails"
    assert bench.take(bench.home / "docs" / "plan") == "EACCES"
    assert bench.records.notes[-1]["reason"] == "internal"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_a_message_that_cannot_be_read_is_refused(bench: Bench, data: bytes) -> None:
    bench.asked.take(NOTIFICATION.pack(1, 1, 0, OPENAT, 0, 0, *[0] * 6) + data)
    assert bench.listener.outcomes.pop() in ("EACCES", "continued")
    assert bench.inbox.asked == []
