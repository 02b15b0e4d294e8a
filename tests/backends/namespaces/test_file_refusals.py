"""Refused files become records: folded by path, bounded, and the rest is counted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux.trap_relay import FileRefusal
from netsandbox.backends.namespaces import file_refusals
from netsandbox.backends.namespaces.file_refusals import FileRefusals
from netsandbox.paths import home
from netsandbox.policy import reasons
from netsandbox.policy.file_rules import FileRules, PathRule
from tests.rig.fake_log import FakeLog

OPEN = 257 if os.uname().machine == "x86_64" else 56


def refusal(path: str, does: str = "r", why: str = "h", times: int = 1) -> FileRefusal:
    return FileRefusal(why, does, OPEN, os.getpid(), times, "/usr/bin/cat", path)


def at_once(_seconds: float, callback: Callable[[], None]) -> None:
    callback()


class Later:
    """Callbacks of the loop, for the test to call."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def __call__(self, _seconds: float, callback: Callable[[], None]) -> None:
        self.due.append(callback)

    def pass_time(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


def test_a_refused_read_is_a_denial_with_the_option(log: FakeLog) -> None:
    own = os.path.realpath(home())
    FileRefusals(log, at_once).take(refusal(f"{own}/Documents/../Documents/plan.md"))  # type: ignore[arg-type]
    (record,) = log.records
    assert record["event"] == "file"
    assert (record["verdict"], record["reason"]) == ("deny", reasons.NOT_SHOWN)
    assert (record["operation"], record["path"]) == ("read", f"{own}/Documents/plan.md")
    assert (record["call"], record["exe"], record["pid"]) == ("openat", "/usr/bin/cat", os.getpid())
    assert record["hint"] == "--allow-read ~/Documents/plan.md"


@pytest.mark.parametrize(
    ("does", "why", "event", "operation", "reason"),
    [
        ("w", "r", "file", "change", reasons.READ_ONLY),
        ("n", "r", "file", "make", reasons.READ_ONLY),
        ("u", "h", "file", "make", reasons.NOT_SHOWN),
        ("d", "r", "file", "folder", reasons.READ_ONLY),
        ("x", "h", "exec", "execute", reasons.NOT_SHOWN),
    ],
)
def test_each_kind(log: FakeLog, does: str, why: str, event: str, operation: str, reason: str) -> None:
    FileRefusals(log, at_once).take(refusal("/srv/shop/x", does, why))  # type: ignore[arg-type]
    (record,) = log.records
    assert (record["event"], record["operation"], record["reason"]) == (event, operation, reason)


def test_repeats_are_folded_by_path(log: FakeLog) -> None:
    refusals = FileRefusals(log, at_once)  # type: ignore[arg-type]
    for times in (1, 1, 2, 4):
        refusals.take(refusal("/srv/shop/x", times=times))
    assert len(log.records) == 1
    refusals.close()
    assert [record["count"] for record in log.records] == [1, 7]


def test_settling_writes_counts_and_what_waits_of_processes_that_have_ended(log: FakeLog) -> None:
    refusals = FileRefusals(log, Later())  # type: ignore[arg-type]
    ended = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(ended, 0)
    refusals.take(refusal("/srv/shop/read-only", why="r"))
    refusals.take(refusal("/srv/shop/read-only", why="r"))
    refusals.take(refusal("/srv/shop/waits"))
    refusals.take(FileRefusal("h", "r", OPEN, ended, 1, "/usr/bin/cat", "/srv/shop/ended"))
    refusals.settle()
    assert [(record["path"][10:], record["count"]) for record in log.records] == [  # type: ignore[index]
        ("read-only", 1),
        ("ended", 1),
        ("read-only", 1),
    ]
    refusals.take(FileRefusal("h", "r", OPEN, ended, 1, "/usr/bin/cat", "/srv/shop/ended"))
    refusals.settle()
    assert paths(log)[3:] == ["/srv/shop/ended"]  # a record of its own each time
    refusals.close()
    assert paths(log)[4:] == ["/srv/shop/waits"]


def test_the_number_of_paths_is_bounded_and_the_rest_counted(log: FakeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_refusals, "MAX_PATHS", 3)
    refusals = FileRefusals(log, at_once)  # type: ignore[arg-type]
    for number in range(5):
        refusals.take(refusal(f"/srv/shop/{number}"))
    refusals.left_out(10)
    refusals.close()
    assert len(log.records) == 4
    assert (log.records[-1]["count"], "verdict" in log.records[-1]) == (12, False)


def test_an_unknown_letter_is_an_error(log: FakeLog) -> None:
    with pytest.raises(KeyError):
        FileRefusals(log, at_once).take(refusal("/srv/shop/x", does="?"))  # type: ignore[arg-type]
    assert log.records == []


def test_a_secret_is_told_by_its_place(log: FakeLog) -> None:
    own = os.path.realpath(home())
    refusals = FileRefusals(log, at_once, FileRules(), (f"{own}/.ssh",))  # type: ignore[arg-type]
    refusals.take(refusal(f"{own}/.ssh/id", why="d"))
    (secret,) = log.records
    assert (secret["reason"], secret["place"]) == (reasons.NOT_SHOWN, f"{own}/.ssh")
    assert "hint" not in secret or secret["hint"] is None, "no record advises a private key"


class Changes:
    def __init__(self) -> None:
        self.taken: list[tuple[str, str]] = []
        self.closed = False

    def take(self, path: str, operation: str, caller: object) -> None:
        self.taken.append((path, operation))

    def close(self) -> None:
        self.closed = True


def test_what_was_not_refused_is_no_refusal(log: FakeLog) -> None:
    changes = Changes()
    refusals = FileRefusals(log, at_once, FileRules(), (), changes)  # type: ignore[arg-type]
    refusals.take(refusal("/srv/shop//x", "n", "o"))
    refusals.close()
    assert (changes.taken, changes.closed, log.records) == ([("/srv/shop/x", "make")], True, [])
    FileRefusals(log, at_once).take(refusal("/srv/shop/x", "n", "o"))  # type: ignore[arg-type]
    assert log.records == []


def paths(log: FakeLog) -> list[object]:
    return [record["path"] for record in log.records]


def test_what_the_session_makes_itself_was_not_refused(log: FakeLog) -> None:
    later = Later()
    refusals = FileRefusals(log, later)  # type: ignore[arg-type]
    for path in ("/h/made", "/h/missed", "/h//late"):
        refusals.take(refusal(path, "n"))
    refusals.take(refusal("/h/made", "w", "r"))  # the mount refused it, so it stays a refusal
    refusals.made("/h/./made")
    assert [record["reason"] for record in log.records] == [reasons.READ_ONLY]
    later.pass_time()
    refusals.made("/h/late")  # it waits for one more moment
    later.pass_time()
    assert paths(log) == ["/h/made", "/h/missed"]
    refusals.made("/h/missed")  # too late
    assert later.due == []
    refusals.close()
    assert paths(log) == ["/h/made", "/h/missed"]


def test_a_read_stays_in_the_log_though_the_session_makes_the_file_afterwards(log: FakeLog) -> None:
    refusals = FileRefusals(log, Later())  # type: ignore[arg-type]
    refusals.take(refusal("/h/plan.md"))
    refusals.made("/h/plan.md")
    refusals.close()
    assert [(each["path"], each["reason"], each.get("hint")) for each in log.records] == [
        ("/h/plan.md", reasons.MADE_LATER, None)
    ]


def test_what_waits_at_the_end_is_recorded(log: FakeLog) -> None:
    later = Later()
    refusals = FileRefusals(log, later)  # type: ignore[arg-type]
    refusals.take(refusal("/h/a"))
    later.pass_time()
    refusals.take(refusal("/h/b"))
    assert len(later.due) == 1
    refusals.close()
    assert paths(log) == ["/h/a", "/h/b"]
    later.pass_time()  # nothing is recorded twice
    assert len(log.records) == 2


def test_few_wait_and_in_their_order(log: FakeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_refusals, "MAX_HELD", 2)
    refusals = FileRefusals(log, Later())  # type: ignore[arg-type]
    for number in range(4):
        refusals.take(refusal(f"/h/{number}"))
    assert paths(log) == ["/h/0", "/h/1", "/h/2"]


def test_the_deny_rule_that_refused_is_named_instead_of_an_option(log: FakeLog, tmp_path: Path) -> None:
    own = Path(os.path.realpath(home()))
    (tmp_path / "link").symlink_to(tmp_path / "keep")
    rules = FileRules(
        deny_read=(PathRule(f"{own}/hidden", "--deny-read"),),
        deny_write=(PathRule(str(tmp_path / "keep"), "--deny-write"), PathRule("/srv/x", f"{own}/rules.toml:3")),
    )
    refusals = FileRefusals(log, at_once, rules)  # type: ignore[arg-type]
    refusals.take(refusal(f"{tmp_path}/link/a", "n", "r"))
    refusals.take(refusal(f"{own}/hidden/a", "w", "d"))
    refusals.take(refusal("/srv/x/a", "w", "r"))
    refusals.take(refusal("/srv/x/a", "r", "h"))  # `deny_write` does not refuse reading
    assert [(each["reason"], each.get("rule"), "hint" in each) for each in log.records] == [
        (reasons.DENY_RULE, f"--deny-write {tmp_path}/keep", False),
        (reasons.DENY_RULE, "--deny-read ~/hidden", False),
        (reasons.DENY_RULE, "deny_write /srv/x (~/rules.toml:3)", False),
        (reasons.NOT_SHOWN, None, True),
    ]


def test_what_no_rule_of_the_user_hides_has_its_option_unless_it_is_a_key(log: FakeLog) -> None:
    """The secrets of the system are covered as `deny_read` covers."""
    refusals = FileRefusals(log, at_once)  # type: ignore[arg-type]
    for path in ("/run/secrets/token", "/etc/ssl/private/a.key", "/etc/shadow"):
        refusals.take(refusal(path, why="d"))
    hints = [(record["reason"], record.get("hint")) for record in log.records]
    assert hints == [(reasons.NOT_SHOWN, "--allow-read /run/secrets/token"), *[(reasons.NOT_SHOWN, None)] * 2]
