"""A denial is one safe line with what to do about it; lines come at once, are bounded, and nothing waits for them."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.denials import FULL, MAX_KINDS, MAX_LINE, DenialStream, denial_text, open_debug_log
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


def test_a_file_that_programs_only_try_is_left_to_the_end(
    pipe: Pipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = os.path.realpath(tmp_path)
    stream = DenialStream(pipe.writing, open_debug_log(str(tmp_path / "d")), "s")
    for name in (".npmrc", "plan.md"):
        stream("file", {"verdict": "deny", "reason": "not-shown", "operation": "read", "path": f"{own}/{name}"})
    stream.close()
    (line,) = pipe.lines()
    assert line.startswith(f"netsandbox: denied reading {own}/plan.md (not-shown); ")
    assert "/.npmrc" in (tmp_path / "d").read_text()


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
    with pytest.raises(NetsandboxError, match=r"debug log .* exists and is not a debug log; give a path"):
        open_debug_log(str(other))
    assert other.read_text() == "mine\n"
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "new")
    with pytest.raises(NetsandboxError, match=r"debug log .* is a symbolic link"):
        open_debug_log(str(link))
    with pytest.raises(NetsandboxError, match="--debug-log"):
        open_debug_log("/proc/self/nothing")
    held = open_debug_log(str(tmp_path / "held"))
    with pytest.raises(NetsandboxError, match=r"is in use by another session; give each session its own log$"):
        open_debug_log(str(tmp_path / "held"))
    os.close(held)


MORE = "`netsandbox explain --last` says more"
GOLDEN = [
    (
        "egress",
        {"host": "a.test", "port": 443, "reason": "not-allowed", "exe": "/bin/curl", "hint": "--allow-domain a.test"},
        "denied a.test:443 (not-allowed) to curl; allow it with --allow-domain a.test",
    ),
    (
        "egress",
        {"host": "2001:db8::1", "port": 22, "reason": "address-literal", "hint": "--allow-address [2001:db8::1]:22"},
        "denied [2001:db8::1]:22 (address-literal); allow it with --allow-address [2001:db8::1]:22",
    ),
    (
        "egress",
        {"host": "a.test", "port": 443, "reason": "lookup-failed"},
        "denied a.test:443 (lookup-failed); it is allowed but was not reached; check the name and the host's own"
        " network",
    ),
    ("egress", {"reason": "malformed", "detail": "no request"}, f"denied no request (malformed); {MORE}"),
    (
        "dns",
        {"host": "a.test", "reason": "offline", "hint": "--allow-domain a.test"},
        "denied looking up a.test (offline); allow it with --allow-domain a.test",
    ),
    ("udp", {"address": "192.0.2.1", "port": 123, "reason": "udp"}, f"denied UDP to 192.0.2.1:123 (udp); {MORE}"),
    (
        "socket",
        {"family": "unix", "type": "stream", "reason": "unix-socket", "exe": "/bin/ls"},
        f"denied a socket of the kind unix/stream (unix-socket) to ls; {MORE}",
    ),
    (
        "socket",
        {"path": "/run/d.sock", "reason": "unix-socket", "hint": "--allow-unix-socket /run/d.sock"},
        "denied the socket /run/d.sock (unix-socket); allow it with --allow-unix-socket /run/d.sock",
    ),
    (
        "seatbelt",
        {"operation": "file-read-data", "path": "/etc/x", "reason": "seatbelt"},
        f"denied file-read-data /etc/x (seatbelt); {MORE}",
    ),
    (
        "bind",
        {"address": "127.0.0.1", "port": 80, "reason": "wrong-device"},
        f"denied binding 127.0.0.1:80 (wrong-device); {MORE}",
    ),
    ("policy", {"reason": "internal"}, f"denied policy (internal); {MORE}"),
]


@pytest.mark.parametrize(("event", "fields", "text"), GOLDEN)
def test_people_read_what_why_and_what_to_do(event: str, fields: dict[str, object], text: str) -> None:
    assert denial_text(event, fields) == text


NAMES = ("host", "reason", "exe", "hint", "path", "detail", "operation", "target", "address", "family", "type")


@pytest.mark.attack(172)
@given(
    st.sampled_from(["egress", "dns", "udp", "socket", "seatbelt", "bind", "x\x1b[2J"]),
    st.dictionaries(st.sampled_from(NAMES), st.text(max_size=600)),
)
def test_172_no_field_can_write_to_the_terminal(event: str, fields: dict[str, object]) -> None:
    shown = denial_text(event, fields)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= MAX_LINE + 3
