"""Whole sessions with a program in the place of a Mac's `log`: what it prints is recorded, and nothing waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit.verify import verify
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.runtime.loop import Loop
from tests.rig.mac_log import ROOT, stand_in

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

PATHS = ":".join(str(ROOT / name) for name in ("", "proxy", "dns", "portmap", "interpose"))
FOREVER = "while True: time.sleep(60)"
# For the command: until the audit log has the text, at most about a minute.
AWAIT = 'n=0; until grep -rqs -- "{}" "$XDG_STATE_HOME" || [ $n = 3000 ]; do n=$((n+1)); sleep 0.02; done; {}'
Logged = Callable[..., Any]


def awaiting(text: str, then: str = "true") -> tuple[str, str, str]:
    return "sh", "-c", AWAIT.format(text, then)


def awaiting_file(path: Path, then: str = "true") -> tuple[str, str, str]:
    return "sh", "-c", f"n=0; until [ -s {path} ] || [ $n = 3000 ]; do n=$((n+1)); sleep 0.02; done; {then}"


def runs(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has taken."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def body(system: MacSystem, tmp_path: Path) -> Callable[[str], MacSystem]:
    """Lets the log do *body*; the system that has that log."""

    def given(body: str) -> MacSystem:
        system.__dict__["log"] = stand_in(tmp_path, body)  # the value that `mac` runs with
        return system

    return given


def test_what_is_refused_is_in_the_sessions_log_before_its_end(body: Any, mac: Any) -> None:
    body(f'say(BANNER, refused("curl(5) deny(1) network-outbound remote:*:443"))\n{FOREVER}')
    ended = mac(*awaiting("network-outbound"))
    (record,) = ended.of("seatbelt")
    assert (record["verdict"], record["reason"], record["port"], record["pid"]) == ("deny", "seatbelt", 443, 5)
    assert [each["event"] for each in ended.records] == ["session.start", "seatbelt", "session.end", "audit.seal"]
    (log,) = ended.state.rglob("audit.jsonl")
    assert verify(str(log)).ok


def test_the_log_is_asked_for_the_tag_that_is_in_the_profile(
    body: Any, mac: Any, system: MacSystem, tmp_path: Path
) -> None:
    """Each session has its own, and neither the environment nor the session's log knows it."""
    plan = tmp_path / "plan"
    real = system.helper
    wrapper = tmp_path / "helper"
    wrapper.write_text(f'#!/bin/sh\n[ $# -gt 0 ] || exit 126\ncat <&3 >{plan}\nexec 3<{plan}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    body(f'open(here + "/tag", "w").write(tag)\nsay(BANNER)\n{FOREVER}')
    system.__dict__["helper"] = str(wrapper)
    tags = set()
    for _ in range(2):
        ended = mac(*awaiting_file(tmp_path / "tag", "env"))
        tag = (tmp_path / "tag").read_text()
        (tmp_path / "tag").unlink()
        tags.add(tag)
        assert f'(deny default (with message "{tag}"))'.encode() in plan.read_bytes()
        assert tag not in ended.stdout
        assert tag not in json.dumps(ended.records)
    assert len(tags) == 2


def test_a_log_that_ends_early_ends_nothing_else(body: Any, mac: Any) -> None:
    body("say(BANNER)")
    ended = mac(*awaiting("the system's log ended", "echo on; exit 3"))
    assert (ended.returncode, ended.stdout) == (3, "on\n")
    (record,) = ended.of("policy")
    assert "verdict" not in record


def test_without_the_program_the_command_runs_behind_the_same_profile(
    system: MacSystem, mac: Any, tmp_path: Path
) -> None:
    """Nothing is opened by it: the kernel refuses as before."""
    system.__dict__["log"] = str(tmp_path / "none")
    (tmp_path / "probe.py").write_text(
        "import errno, socket\n"
        "try: socket.create_connection(('127.0.0.1', 9), 5)\n"
        "except OSError as error: print(errno.errorcode[error.errno])"
    )
    ended = mac(*awaiting("the system's log ended", f"{sys.executable} {tmp_path}/probe.py"))
    assert ended.stdout == "EACCES\n", ended.stderr
    assert len(ended.of("policy")) == 1


def test_a_log_that_says_nothing_and_heeds_no_signal_is_gone_with_the_session(
    body: Any, mac: Any, tmp_path: Path
) -> None:
    body(f"for n in (1, 2, 13, 15): signal.signal(n, signal.SIG_IGN)\n{FOREVER}")
    ended = mac(*awaiting_file(tmp_path / "pid"))
    assert ended.returncode == 0
    pid = int((tmp_path / "pid").read_text())
    ends = time.monotonic() + 20
    while runs(pid):
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert [each["event"] for each in ended.records] == ["session.start", "session.end", "audit.seal"]


@pytest.mark.attack(177)
def test_a_log_that_never_stops_keeps_no_session_alive(body: Any, mac: Any) -> None:
    body('while True: say(refused("cat(5) deny(1) file-read-data /x"))')
    ended = mac(*awaiting("file-read-data", "exit 4"))
    assert ended.returncode == 4
    first, rest = ended.of("seatbelt")
    assert (first["count"], first["pid"]) == (1, 5)
    assert rest["count"] > 1


class SlowLoop(Loop):
    """Its moments are long, so that a busy machine does not miss one."""

    def __init__(self, on_error: Callable[[BaseException], None] | None = None) -> None:
        super().__init__(on_error)
        self.now = lambda: time.monotonic() / 100


def test_a_line_that_comes_after_the_command_is_still_recorded(body: Any, mac: Any, tmp_path: Path) -> None:
    """Where the command failed, which it does when it was refused something."""
    system = body("""
say(BANNER)
while not os.path.exists(here + "/over"): time.sleep(0.005)
pid = int(open(here + "/over").read())
while os.path.exists(f"/proc/{pid}"): time.sleep(0.005)
say(refused("cat(5) deny(1) file-read-data /late"))
""")
    system.__dict__["open_loop"] = SlowLoop
    ended = mac("sh", "-c", f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/over; exit 1")
    assert ended.returncode == 1
    assert [record["path"] for record in ended.of("seatbelt")] == ["/late"]


SESSION = """
import os, sys
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox.runtime.loop import Loop
from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.policy.policy import Policy
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings
class PidfdExit:
    def __init__(self, pid):
        self.fd = os.pidfd_open(pid)
        print(*sorted(sys.modules), file=open({modules!r}, "w"))
    def fileno(self): return self.fd
    def close(self): os.close(self.fd)
system = MacSystem({helper!r}, Loop, PidfdExit, lambda clock: frozenset, {log!r})
settings = RunSettings(localhost=LocalhostSettings(strategy="fail", count=3))
owner = Session(settings, sealed=True, backend=lambda context: SeatbeltBackend(context, system))
status = owner.run(Policy, Command({command!r}, os.environb, (0, 1, 2)))
before = set(open({modules!r}).read().split())
print(*sorted(name for name in set(sys.modules) - before))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_sealed_session_imports_nothing_for_it_once_the_command_runs(helper: str, place: Path) -> None:
    """Refusals, lines that cannot be read and the end of the log: all that it does."""
    program = stand_in(
        place, 'say(BANNER, b"?\\n", refused("cat(5) deny(1) file-read-data /x"), refused("a(6) deny(1) signal"))'
    )
    words = {
        "modules": str(place / "modules"),
        "helper": helper,
        "log": program,
        "command": list(awaiting("the system's log ended")),
    }
    done = subprocess.run(
        [sys.executable, "-c", SESSION.format(**words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PATHS},
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
    (log,) = (place / "state").rglob("audit.jsonl")
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == [
        *("session.start", "seatbelt", "seatbelt", "policy", "policy"),
        *("session.end", "audit.seal"),
    ]
