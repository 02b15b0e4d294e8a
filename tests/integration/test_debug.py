"""`--debug` and `--debug-log`: denials as they happen, and a session that waits for nobody (INV-9)."""

from __future__ import annotations

import os
import stat
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

SAID = "denied no.test:80 (offline) to curl; allow it with --allow-domain no.test"
CURL = "curl -s -o /dev/null -m 30 http://no.test/"


def rest_of(terminal: int) -> bytes:
    rest = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other side is gone
            return rest
        if not data:
            return rest
        rest += data


@pytest.mark.backend("namespaces", "broker")
def test_a_denial_is_said_while_the_command_runs_and_not_again_at_the_end(netsandbox: Any) -> None:
    running = netsandbox.spawn("run", "-d", "--", "sh", "-c", f"{CURL}; echo ready; read line; exit 5", terminal=True)
    running.read_until(SAID.encode())
    running.read_until(b"ready")
    os.write(running.terminal, b"\n")
    assert running.wait() == 5
    assert b"denied" not in rest_of(running.terminal)


@pytest.mark.backend("namespaces", "broker")
def test_without_it_denials_are_said_at_the_end_and_output_is_the_commands(netsandbox: Any) -> None:
    live = netsandbox("run", "--debug", "--", "sh", "-c", f"{CURL}; {CURL}; echo out")
    assert live.stdout == "out\n"
    # The search for the program has a budget of time, which a busy machine exceeds: then a second line names none.
    programs = {each.get("exe") for each in live.audit if each["event"] == "egress"}
    lines = [line for line in live.stderr.splitlines() if "no.test" in line]
    assert lines[0] == f"netsandbox: {SAID}"
    assert len(lines) == len(set(lines)) == len(programs)
    quiet = netsandbox("run", "--", "sh", "-c", CURL)
    assert quiet.stderr == "netsandbox: denied no.test:80 (offline); allow it with --allow-domain no.test\n"


def test_the_file_has_every_denial_and_the_command_cannot_write_it(netsandbox: Any) -> None:
    log = netsandbox.home().work / "denials"
    attack = f"{CURL}; echo forged >> denials; rm -f denials; mv denials away; : > denials; true"
    run = netsandbox("run", "--debug-log", "denials", "--", "sh", "-c", attack)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    heading, *lines = log.read_text().splitlines()
    assert heading.startswith("# netsandbox: denials of the session ")
    assert sum(line.endswith(SAID) for line in lines) == 1
    assert "forged" not in log.read_text()
    assert "denied no.test:80" in run.stderr  # nobody read the file yet


def test_a_file_that_is_no_debug_log_stops_the_command(netsandbox: Any) -> None:
    home = netsandbox.home()
    mine = home.work / "mine"
    mine.write_text("text\n")
    os.chown(mine, home.identity.uid, home.identity.gid)
    run = netsandbox("run", "--debug-log", "mine", "--", "touch", "ran")
    assert run.returncode == 1
    assert "exists and is not a debug log" in run.stderr
    assert not (home.work / "ran").exists()
    assert mine.read_text() == "text\n"


@pytest.mark.backend("namespaces", "broker")
def test_a_reader_that_sleeps_holds_up_no_door(netsandbox: Any) -> None:
    """Standard error is a pipe that is full and that nobody reads: every denial would wait for ever."""
    script = (
        "import os, sys, urllib.request\n"
        "os.set_blocking(2, False)\n"
        "try:\n"
        "    while True: os.write(2, b'x' * 4096)\n"
        "except BlockingIOError: pass\n"
        "os.set_blocking(2, True)\n"
        "for number in range(3):\n"
        "    try: urllib.request.urlopen(f'http://n{number}.test/', timeout=60)\n"
        "    except OSError as error: print(error.code)\n"
    )
    reading, writing = os.pipe()
    running = netsandbox.spawn("run", "-d", "--", netsandbox.python, "-c", script, stderr=writing)
    os.close(writing)
    running.read_until(b"403\n403\n403\n")
    os.close(reading)
    assert running.wait() == 0


@pytest.mark.backend("namespaces", "broker")
def test_a_variable_is_the_same_as_both_options_and_changes_nothing_else(netsandbox: Any) -> None:
    for value, told in (("1", True), ("0", False), ("", False)):
        run = netsandbox("run", "--", "sh", "-c", f"{CURL}; echo $SANDBOX_MODE", env={"NETSANDBOX_DEBUG": value})
        assert run.stdout == "offline\n"
        assert ("netsandbox: mode offline, allowed: nothing\n" in run.stderr) is told
        assert ("netsandbox: audit log " in run.stderr) is told
        assert run.stderr.count("denied no.test") == 1
    quiet = netsandbox("run", "-q", "--", "sh", "-c", CURL, env={"NETSANDBOX_DEBUG": "1"})
    assert quiet.stderr == ""
