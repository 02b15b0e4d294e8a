"""The command that the helper becomes: it runs confined, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.backends.seatbelt import helper_process
from netsandbox.backends.seatbelt.helper_process import HelperProcess
from netsandbox.errors import CommandError, HostError
from tests.rig.high_descriptor import high_descriptor
from tests.rig.leftovers import what_stays
from tests.rig.mac_start import ENVIRONMENT, Start, starting, supervising
from tests.rig.processes import is_gone
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)


@pytest.fixture
def start(helper: str, closed_port: int, tmp_path: Path) -> Start:
    return starting(HelperProcess, helper, tmp_path, closed_port)


def test_the_command_has_its_arguments_its_environment_and_nothing_of_ours(start: Start, tmp_path: Path) -> None:
    text = (
        "import os, signal, sys\n"
        "print(ascii(sys.argv[1:]), sorted(os.environ), os.listdir('/proc/self/fd'))\n"
        "print(signal.pthread_sigmask(0, []), file=sys.stderr)"
    )
    environment = {**ENVIRONMENT, b"EMPTY": b"", b"LC_CTYPE": b"C", b"EQUAL": b"a=b"}
    ran = start(sys.executable, "-c", text, "a b", "", "\udcff\u00e4", environment=environment)
    assert ran.wait() == 0
    told = (tmp_path / "out").read_text()
    assert told == (
        "['a b', '', '\\udcff\\xe4'] ['EMPTY', 'EQUAL', 'LC_CTYPE', 'PATH'] ['0', '1', '2', '3']\n"  # 3: the listing
    )
    assert (tmp_path / "err").read_text() == "set()\n"


def test_python_ignores_sigpipe_and_the_command_does_not(start: Start) -> None:
    for number in (signal.SIGPIPE, signal.SIGINT):
        ran = start("sh", "-c", f"kill -{int(number)} $$")
        assert os.waitstatus_to_exitcode(ran.wait()) == -number


def test_a_profile_that_does_not_hold_runs_nothing(start: Start, tmp_path: Path) -> None:
    """INV-1: the closed port says that nobody listens, where the kernel should have said no."""
    with pytest.raises(HostError, match=r"accepted and does not hold.*Connection refused: TCP to 127\.0\.0\.1"):
        start("touch", str(tmp_path / "ran"), profile="; hollow")
    assert not (tmp_path / "ran").exists()


def test_a_plan_that_breaks_off_runs_nothing(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(helper_process, "plan_bytes", lambda *_: b"(version 1)\0PATH=/usr/bin\0A=b")
    with pytest.raises(HostError, match="plan: Broken pipe"):
        start("touch", str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()


def test_a_command_that_cannot_be_executed_is_told_as_shells_do(start: Start, tmp_path: Path) -> None:
    plain, script = tmp_path / "plain", tmp_path / "script"
    plain.write_text("")
    script.write_text("echo from the shell\n")
    script.chmod(0o755)
    with pytest.raises(CommandError) as missing:
        start("no-such-command-here")
    with pytest.raises(CommandError) as forbidden:
        start(str(plain))
    with pytest.raises(CommandError) as denied:
        start("plain", environment={b"PATH": os.fsencode(tmp_path) + b":/usr/bin"})
    assert (missing.value.status, forbidden.value.status, denied.value.status) == (127, 126, 126)
    assert start(str(script)).wait() == 0
    assert (tmp_path / "out").read_text() == "from the shell\n"


@pytest.mark.parametrize("ending", ["end", "close"])
def test_ending_it_ends_the_command_and_what_it_started(start: Start, tmp_path: Path, ending: str) -> None:
    ran = start("sh", "-c", "sh -c 'sleep 60 & echo $! $$; wait' & wait")
    wait_for((tmp_path / "out").read_text)
    pids = [int(word) for word in (tmp_path / "out").read_text().split()]
    getattr(ran, ending)()
    wait_for(lambda: all(is_gone(pid) for pid in pids))
    ran.close()


def test_when_the_supervisor_is_killed_the_command_and_its_children_end(helper: str) -> None:
    """INV-10, on a system without a signal for the death of a parent."""
    words = supervising(HelperProcess, helper, ["sh", "-c", "trap '' TERM; sleep 60 & echo $! $$; wait"])
    with subprocess.Popen(**words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(word) for word in supervisor.stdout.readline().split()]
        assert len(pids) == 2
        supervisor.kill()
        assert what_stays(lambda: [pid for pid in pids if not is_gone(pid)]) == []


@pytest.mark.attack(132)
def test_a_descriptor_above_the_limit_is_closed_too(start: Start, tmp_path: Path) -> None:
    """The limit may have been lowered since it was opened."""
    with high_descriptor() as number:
        assert os.get_inheritable(number)
        ran = start("ls", "/proc/self/fd")
        assert ran.wait() == 0
    assert (tmp_path / "out").read_text().split() == ["0", "1", "2", "3"]  # the last is that of the list itself


def test_no_descriptor_is_left_here(start: Start, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    start("true").wait()
    with pytest.raises(CommandError):
        start("no-such-command-here")
    for bad in ({"profile": "; refuse"}, {"program": str(tmp_path / "none")}, {"environment": {b"A": b"\0"}}):
        with pytest.raises(HostError):
            start("true", **bad)
    assert os.listdir("/proc/self/fd") == before
