"""The log says True only for what is in the file, fails for good, chains everything and stays within its cap."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from netsandbox.audit import log as log_module
from netsandbox.audit.log import MAX_DENIED, AuditLog
from netsandbox.audit.reader import read_lines, read_records
from netsandbox.audit.record_line import GENESIS
from netsandbox.audit.verify import verify
from netsandbox.errors import NetsandboxError
from netsandbox.paths import home
from netsandbox.policy import reasons
from netsandbox.runtime.private_file import digest

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {
    "re", "enum", "dataclasses", "typing", "collections", "functools", "json", "hashlib", "socket", "struct",
    "ipaddress", "argparse", "pathlib", "contextlib", "logging", "ctypes", "inspect", "datetime",
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def python(code: str, *arguments: str, flags: tuple[str, ...] = ("-S",)) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(code), *arguments],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_writer_imports_nothing_that_delays_the_command() -> None:
    done = python("import netsandbox.audit.log, netsandbox.paths", flags=("-X", "importtime", "-S"))
    assert done.returncode == 0, done.stderr
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "netsandbox.audit.log" in imported
    assert not imported & FORBIDDEN


def test_records_are_chained_from_the_first(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    for number in range(5):
        assert log.write("egress", verdict="allow", host=f"h{number}.test")
    lines = path.read_bytes().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["seq"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["prev"] for record in records] == [GENESIS, *map(digest, lines[:-1])]
    log.close()


def test_a_later_session_continues_the_chain(path: Path) -> None:
    for session in ("one", "two"):
        log = AuditLog.open(str(path), session, cap_bytes=None)
        log.write("session.start")
        log.write("session.end")
        log.close()
    report = verify(str(path))
    assert (report.ok, report.sessions, report.records) == (True, 2, 6)


def test_denials_are_collected_with_their_counts_and_bounded(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    for _ in range(2):
        log.write(
            "egress", verdict="deny", host="evil.test", port=443, reason="not-allowed", hint="--allow-domain evil.test"
        )
    log.write("udp", verdict="deny", address="203.0.113.9", port=443, reason="udp", count=5)
    assert log.denied == {
        ("evil.test", 443, "not-allowed", "--allow-domain evil.test", None): 2,
        ("203.0.113.9", 443, "udp", None, None): 5,
    }
    assert log.counts == {("egress", "deny"): 2, ("udp", "deny"): 5}
    for number in range(MAX_DENIED + 10):
        log.write("egress", verdict="deny", host=f"h{number}.test")
    assert len(log.denied) == MAX_DENIED
    log.close()


def test_each_denied_request_of_a_host_is_collected(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    for name in ("a", "b", "a"):
        log.write(
            "http", verdict="deny", reason="r", host="a.test", port=443, scheme="https", method="GET", path=f"/{name}"
        )
    log.close()
    assert {key[4]: count for key, count in log.denied.items()} == {
        "GET https://a.test/a": 2,
        "GET https://a.test/b": 1,
    }


def stamps(path: Path) -> list[str]:
    return [record["ts"] for record in read_records(str(path))]


def test_a_stamp_is_now(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    log.write("session.start")
    log.close()
    stamp = stamps(path)[0]
    assert (len(stamp), stamp[-1]) == (27, "Z")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(stamp)) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("nanoseconds", "stamp"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_738_324_800_000_001_999, "2025-01-31T12:00:00.000001Z"),
        (1_738_324_799_999_999_999, "2025-01-31T11:59:59.999999Z"),
        (7_258_118_400_000_001_000, "2200-01-01T00:00:00.000001Z"),
    ],
)
def test_the_stamp_follows_the_clock_in_both_directions(
    path: Path, monkeypatch: pytest.MonkeyPatch, nanoseconds: int, stamp: str
) -> None:
    log = AuditLog.open(str(path), "s")
    log.write("session.start")
    monkeypatch.setattr(log_module.time, "time_ns", lambda: nanoseconds)
    log.write("session.end")
    log.close()
    assert stamps(path)[1] == stamp


@pytest.mark.attack(176)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EPIPE, errno.EROFS, errno.EBADF])
def test_176_a_failed_write_is_final(path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    log = AuditLog.open(str(path), "s")
    assert log.write("session.start")

    def fail(fd: int, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(log_module.os, "write", fail)
        assert log.write("egress", verdict="allow", host="example.com") is False
    assert log.failed == ("the disk is full" if code in (errno.ENOSPC, errno.EDQUOT) else os.strerror(code))
    assert log.write("egress", verdict="allow", host="example.com") is False
    assert log.write("egress", verdict="deny") is False
    assert log.total("deny") == 1, "denials are told at the end even when the log is lost"
    log.close()
    assert len(path.read_bytes().splitlines()) == 1


@pytest.mark.attack(176)
def test_176_a_torn_line_is_reported_and_does_not_swallow_the_next_record(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog.open(str(path), "one", cap_bytes=None)
    log.write("session.start")
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(log_module.os, "write", lambda fd, data: write(fd, data[:40]))
        patch.setattr(log_module.os, "ftruncate", lambda fd, size: write(-1, b""))  # it cannot be taken back
        assert log.write("egress", verdict="allow") is False
    assert log.write("egress", verdict="allow") is False
    log.close()
    second = AuditLog.open(str(path), "two", cap_bytes=None)
    assert second.write("session.start")
    second.write("session.end")
    second.close()
    lines = list(read_lines(str(path)))
    assert [line.record is None for line in lines] == [False, True, False, False, False]
    problems = verify(str(path)).problems
    assert [problem.line for problem in problems] == [2], "the chain goes on over the torn line"


@pytest.mark.parametrize("held", [False, True])
def test_a_full_disk_leaves_whole_lines_and_says_once_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "netsandbox" / "sessions" / "s" / "audit.jsonl"
    log = AuditLog.open(str(path), "s", cap_bytes=None)
    told: list[str] = []
    log.on_failure = told.append
    log.write("session.start")
    whole, write = path.read_bytes(), os.write
    with monkeypatch.context() as patch:
        patch.setattr(log_module.os, "write", lambda fd, data: write(fd, data[:40]))
        if held:
            log.hold()
        assert log.write("egress", verdict="allow") is held
        assert log.release() is False
    log.write("session.end")
    log.close()
    assert path.read_bytes() == whole
    assert told == ["the disk is full"]
    report = verify(str(path))
    assert (report.ok, report.problems) == (False, [])
    assert [note for note in report.notes if "the log stopped: the disk is full" in note]


def test_a_link_beside_a_log_that_was_placed_explains_nothing(path: Path) -> None:
    """The command may have made it."""
    log = AuditLog.open(str(path), "s", cap_bytes=None)
    log.write("session.start")
    log.close()
    os.symlink("the disk is full", f"{path}.stopped")
    assert not [note for note in verify(str(path)).notes if "stopped" in note]


@pytest.mark.attack(176)
def test_176_a_file_size_limit_denies_from_then_on(path: Path) -> None:
    done = python(
        """
        import resource, sys
        from netsandbox.audit.log import AuditLog
        log = AuditLog.open(sys.argv[1], "s")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        results = [log.write("egress", verdict="allow", host="example.com") for _ in range(20)]
        print(results.index(False), any(results[results.index(False):]), bool(log.failed))
        log.close()
        """,
        str(path),
    )
    first, later, failed = done.stdout.split()
    assert (int(first) > 0, later, failed) == (True, "False", "True"), done.stderr
    assert path.stat().st_size <= 1000
    assert sum(1 for _ in read_records(str(path))) == int(first)


@pytest.mark.attack(176)
def test_176_a_full_file_system_denies_from_then_on(tmp_path: Path) -> None:
    code = """
        import sys
        from netsandbox.audit.log import AuditLog
        log = AuditLog.open(sys.argv[1], "s")
        results = [log.write("egress", verdict="allow", host="example.com") for _ in range(2000)]
        print(results.index(False), any(results[results.index(False):]), log.failed, sep="|")
        """
    script = f'mount -t tmpfs -o size=64k none "{tmp_path}" && exec "$0" -S -c "$1" "{tmp_path}/audit.jsonl"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, sys.executable, textwrap.dedent(code)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "|" not in done.stdout and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no private tmpfs here: {done.stderr.strip()}")
    first, later, failed = done.stdout.strip().split("|")
    assert int(first) > 50, done.stderr
    assert later == "False"
    assert failed != "None"


@pytest.mark.attack(176)
def test_176_a_read_only_place_refuses_the_run() -> None:
    with pytest.raises(NetsandboxError):
        AuditLog.open("/proc/sys/audit.jsonl", "s")


@pytest.mark.attack(176)
@pytest.mark.parametrize("tamper", ["delete", "truncate", "grow"])
def test_176_a_log_that_was_deleted_or_changed_is_noticed_within_a_second(
    path: Path, monkeypatch: pytest.MonkeyPatch, tamper: str
) -> None:
    log = AuditLog.open(str(path), "s")
    assert log.write("session.start")
    if tamper == "delete":
        path.unlink()
    elif tamper == "truncate":
        os.truncate(path, 10)
    else:
        with path.open("ab") as stream:
            stream.write(b"forged\n")
    later = time.time_ns() + 2_000_000_000
    monkeypatch.setattr("netsandbox.audit.log.time.time_ns", lambda: later)
    assert log.write("egress", verdict="allow") is False
    assert log.failed
    log.close()


@pytest.mark.attack(175)
def test_175_what_write_acknowledged_survives_kill_9(path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", textwrap.dedent("""
            import os, sys
            from netsandbox.audit.log import AuditLog
            log = AuditLog.open(sys.argv[1], "s")
            while True:
                if log.write("egress", verdict="allow", host="example.com"):
                    os.write(1, b".")
        """), str(path)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    acknowledged = len(child.stdout.read(500))
    child.send_signal(signal.SIGKILL)
    acknowledged += len(child.stdout.read())
    child.wait()
    child.stdout.close()
    report = verify(str(path))
    assert report.records >= acknowledged
    assert report.problems == []
    assert not report.ok, "a log without an end is not called whole"


def test_held_records_are_written_together_in_their_order(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    log.hold()
    for number in range(3):
        assert log.write("dns", verdict="allow", host=f"h{number}.test")
    assert path.read_bytes() == b""
    assert log.release()
    assert [record["host"] for record in read_records(str(path))] == ["h0.test", "h1.test", "h2.test"]
    assert log.write("session.end")
    log.close()
    assert verify(str(path)).ok


def test_held_records_that_cannot_be_written_are_a_failure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog.open(str(path), "s")
    log.hold()
    assert log.write("dns", verdict="allow", host="h.test")

    def fail(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(log_module.os, "write", fail)
        assert log.release() is False
    assert log.write("dns", verdict="allow", host="h.test") is False
    assert log.release() is False
    log.close()


def test_a_closed_log_denies(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    log.write("session.start")
    log.close()
    log.close()
    assert log.write("egress", verdict="allow") is False


@pytest.mark.attack(176)
def test_176_a_torn_log_that_cannot_be_ended_refuses_the_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b'{"v":1')
    path.chmod(0o600)

    def fail(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log_module.os, "write", fail)
    with pytest.raises(NetsandboxError, match="cannot be written"):
        AuditLog.open(str(path), "s")


@pytest.mark.attack(176)
def test_176_a_file_that_cannot_be_asked_for_its_state_denies(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog.open(str(path), "s")

    def fail(fd: int) -> os.stat_result:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(log_module.os, "fstat", fail)
        assert log.write("egress", verdict="allow") is False
    assert log.failed == "Input/output error"
    log.close()


def test_an_observer_hears_of_each_denial_after_it_is_in_the_file_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog.open(str(path), "s")
    heard: list[tuple[str, object, bool]] = []
    log.observer = lambda event, fields: heard.append((event, fields["host"], b"a.test" in path.read_bytes()))
    log.write("egress", verdict="allow", reason="rule", host="b.test")
    assert heard == []
    log.write("egress", verdict="deny", reason="not-allowed", host="a.test")
    assert heard == [("egress", "a.test", True)]
    log.close()


def test_what_stays_on_the_loopback_is_not_counted_as_allowed_outside(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    log.write("dns", verdict="allow", reason="loopback", host="localhost", count=3)
    log.write("publish", verdict="allow", reason="loopback", port=3000)
    log.write("egress", verdict="allow", reason="rule", host="example.com")
    log.write("bind", verdict="deny", reason="outside-window")
    assert (log.allowed_outside, log.total("allow"), log.total("deny")) == (1, 5, 1)
    log.close()


def test_what_programs_try_by_habit_is_recorded_but_counts_as_no_denial(path: Path) -> None:
    log = AuditLog.open(str(path), "s")
    bashrc = f"{os.path.realpath(home())}/.bashrc"
    log.write("socket", verdict="deny", reason="unix-socket", path="/run/nscd/socket", count=3)
    log.write("file", verdict="deny", reason="not-shown", operation="read", path=bashrc)
    assert (log.denied, log.denied_files, log.total("deny"), log.denied_in_need) == ({}, {}, 4, 0)
    log.write("socket", verdict="deny", reason="unix-socket", path="/srv/db.sock", call="bind")
    log.write("file", verdict="deny", reason="not-shown", operation="read", path="/srv/x")
    assert (len(log.denied), len(log.denied_files), log.denied_in_need) == (1, 1, 2)
    log.close()
    assert len(path.read_text().splitlines()) == 5  # with the seal


def test_the_log_and_the_policy_call_loopback_the_same():
    assert log_module.LOOPBACK == reasons.LOOPBACK
