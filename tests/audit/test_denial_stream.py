"""Denials as they happen: once a kind, never waited for, in a file of our own."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from netsandbox.audit.denial_stream import FULL, MAX_KINDS, DenialStream, open_debug_log
from netsandbox.errors import NetsandboxError
from tests.rig.pipe import Pipe

DENIAL = {"verdict": "deny", "host": "a.test", "port": 443, "reason": "not-allowed", "hint": "--allow-domain a.test"}
SAID = "netsandbox: denied a.test:443 (not-allowed); allow it with --allow-domain a.test"


def test_a_denial_is_said_at_once_and_its_repeats_ever_more_rarely(pipe: Pipe) -> None:
    stream = DenialStream(pipe.writing, None, "s")
    stream("egress", DENIAL)
    assert pipe.lines() == [SAID]
    for _ in range(120):
        stream("egress", DENIAL)
    assert pipe.lines() == [f"{SAID} (10 times)", f"{SAID} (100 times)"]


def test_a_folded_record_counts_for_all_its_attempts(pipe: Pipe) -> None:
    stream = DenialStream(pipe.writing, None, "s")
    stream("dns", {**DENIAL, "port": None})
    stream("dns", {**DENIAL, "port": None, "count": 41})
    assert pipe.lines()[1].endswith("(42 times)")


def test_a_storm_of_kinds_ends_with_where_to_look(pipe: Pipe, tmp_path: Path) -> None:
    stream = DenialStream(None, open_debug_log(str(tmp_path / "d")), "s")
    for number in range(MAX_KINDS + 50):
        stream("egress", {**DENIAL, "host": f"{number}.test"})
    stream.close()
    written = (tmp_path / "d").read_text().splitlines()
    assert len(written) == 1 + MAX_KINDS + 1
    assert written[-1].endswith(FULL)


def test_a_reader_that_sleeps_is_not_waited_for_and_told_later(pipe: Pipe) -> None:
    size = fcntl.fcntl(pipe.writing, fcntl.F_GETPIPE_SZ)
    os.write(pipe.writing, b"x" * size)
    stream = DenialStream(pipe.writing, None, "s")
    stream("egress", DENIAL)
    assert os.read(pipe.reading, 1 << 20) == b"x" * size
    stream.close()
    assert pipe.lines() == ["netsandbox: 1 lines about denials were left out; `netsandbox audit summary` has them all"]


def test_whatever_fails_a_door_does_not_hear_of_it(pipe: Pipe) -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError("no text")

    stream = DenialStream(pipe.writing, None, "s")
    stream("egress", {**DENIAL, "host": Odd()})
    stream("egress", DENIAL)
    assert pipe.lines() == [SAID]
    DenialStream(1 << 20, None, "s")("egress", DENIAL)


def test_the_file_is_private_and_later_sessions_append(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "denials"
    for session in ("first", "second"):
        stream = DenialStream(None, open_debug_log(str(path)), session)
        stream("egress", DENIAL)
        stream.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first, denial, second, _ = path.read_text().splitlines()
    assert (first, second) == (
        "# netsandbox: denials of the session first",
        "# netsandbox: denials of the session second",
    )
    assert denial.partition("Z ")[2] == SAID.removeprefix("netsandbox: ")


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes"
    other.write_text("mine\n")
    with pytest.raises(NetsandboxError, match=r"debug log .* exists and is no debug log; give a path"):
        open_debug_log(str(other))
    assert other.read_text() == "mine\n"
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "new")
    with pytest.raises(NetsandboxError, match=r"debug log .* is a symbolic link"):
        open_debug_log(str(link))
    with pytest.raises(NetsandboxError, match="--debug-log"):
        open_debug_log("/proc/self/nothing")
    held = open_debug_log(str(tmp_path / "held"))
    with pytest.raises(NetsandboxError, match=r"is in use by another session; give each session a log of its own$"):
        open_debug_log(str(tmp_path / "held"))
    os.close(held)
