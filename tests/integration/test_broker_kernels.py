"""The broker where containers and older kernels refuse calls; where it cannot stand, nothing runs (INV-1)."""

from __future__ import annotations

import os
import platform
from typing import Any

import pytest

from tests.integration.test_lifecycle import ALLOWED, DENIED, FIRST_PACKET, names, wire
from tests.rig import lesser
from tests.rig.command import Home, read_log
from tests.rig.lesser import DOCKER, LANDLOCK_1, LANDLOCK_4, NO_KILLABLE_WAIT, NO_LANDLOCK, NO_MEMORY_CALLS, Refusal

pytestmark = [
    pytest.mark.broker_as_root,
    pytest.mark.ordinary_user(only=True),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in names system calls by x86_64 numbers"),
]

KERNELS = {
    "docker": DOCKER,
    "no-memory-calls": (*DOCKER, *NO_MEMORY_CALLS),
    "no-killable-wait": (*DOCKER, *NO_KILLABLE_WAIT),
    "landlock-4": (*DOCKER, *LANDLOCK_4),
    "landlock-1": (*DOCKER, *LANDLOCK_1),
    "oldest": (*DOCKER, *NO_MEMORY_CALLS, *NO_KILLABLE_WAIT, *LANDLOCK_1),
}
kernels = pytest.mark.parametrize("kernel", KERNELS)


class Box:
    """Runs netsandbox below a filter, in the home of the test's account."""

    def __init__(self, home: Home, probe: Any) -> None:
        self.home = home
        self._probe = probe

    def __call__(self, refusals: tuple[Refusal, ...], *words: object) -> Any:
        front = [*lesser.lesser(self._probe, *refusals)]
        product = [self.home.identity.python, "-m", "netsandbox", "run", *map(str, words)]
        return self.home.plainly([*front, *product])

    def starts(self) -> list[dict[str, Any]]:
        records = [record for path in self.home.logs() for record in read_log(path)]
        return [record for record in records if record["event"] == "session.start"]


@pytest.fixture
def box(netsandbox: Any, probe: Any) -> Box:
    return Box(netsandbox.home(), probe)


@kernels
def test_a_static_program_reaches_what_is_allowed_and_nothing_else(
    box: Box, canary: Any, authority: Any, probe: Any, kernel: str
) -> None:
    """The backend is chosen by trying. It asks for the name over UDP, connects, and talks."""
    program = probe("first-packet", FIRST_PACKET, static=True)
    allowed, forbidden = canary.tcp(echo=True), canary.tcp(echo=True)
    options = (*names(authority, f"{ALLOWED}:{allowed.port}"), "--allow-read", program, "--", program)
    refusals = KERNELS[kernel]
    good = box(refusals, *options, wire(ALLOWED), allowed.port)
    assert (good.returncode, good.stderr) == (0, "")
    assert box(refusals, *options, wire(DENIED), forbidden.port).returncode == 12
    assert box(refusals, *options, "203.0.113.9", forbidden.port).returncode in (13, 14, 15)
    assert box(refusals, *options, "127.0.0.1", forbidden.port).returncode == 13
    assert (allowed.accepts, forbidden.accepts) == (1, 0)
    assert {record["backend"] for record in box.starts()} == {"broker"}


SIGNALS_AND_SERVERS = """
import os, signal, socket, subprocess, sys, threading
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
subprocess.run(["kill", "-USR1", str(os.getpid())], check=True)
assert heard
try:
    os.kill(int(sys.argv[1]), 0)
    raise SystemExit("a process of the host was signalled")
except PermissionError:
    pass
with socket.create_server(("127.0.0.1", 3000)) as server:
    with socket.create_connection(("localhost", 3000)) as client:
        peer, place = server.accept()
        assert place[0] == "127.0.0.1", place
        peer.sendall(b"x")
        assert client.recv(1) == b"x"
        peer.close()
os.truncate("own", 0)
open("own", "r+").truncate(3)
print("fine")
"""


@kernels
def test_signals_servers_and_files_of_the_session_work(box: Box, kernel: str) -> None:
    """Signals to the host's processes do not, whether Landlock or the broker keeps them inside."""
    own = box.home.work / "own"
    own.write_text("12345")
    os.chown(own, box.home.identity.uid, box.home.identity.gid)
    run = box(KERNELS[kernel], "--", box.home.identity.python, "-c", SIGNALS_AND_SERVERS, os.getpid())
    assert (run.stdout, run.returncode) == ("fine\n", 0), run.stderr


INTERRUPTED = """
import signal, socket, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
failed = 0
with socket.create_server(("127.0.0.1", 3000), backlog=500) as server:
    for _ in range(200):
        with socket.socket() as client:
            try:
                client.connect(("127.0.0.1", 3000))
                server.accept()[0].close()
            except OSError as error:
                failed += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(failed)
"""


@pytest.mark.parametrize("kernel", ["docker", "no-killable-wait"])
def test_calls_survive_signals(box: Box, kernel: str) -> None:
    run = box(KERNELS[kernel], "--", box.home.identity.python, "-c", INTERRUPTED)
    assert run.stdout == "0\n", (run.stdout, run.stderr)


def refused(box: Box, refusals: tuple[Refusal, ...], *options: str) -> str:
    mark = box.home.work / "ran"
    run = box(refusals, *options, "--", "touch", mark)
    assert not mark.exists(), "the command ran unconfined"
    assert run.returncode == 1
    assert run.stderr.startswith("netsandbox: ")
    assert run.stderr.count("\n") == 1
    return str(run.stderr)


@pytest.mark.attack(134)
def test_without_landlock_nothing_runs(box: Box) -> None:
    text = refused(box, (*DOCKER, *NO_LANDLOCK), "--backend", "broker")
    assert "Landlock failed" in text
    assert "Linux 5.13 or newer" in text


@pytest.mark.attack(134)
def test_where_neither_backend_stands_both_reasons_are_given(box: Box) -> None:
    text = refused(box, (*DOCKER, *NO_LANDLOCK))
    assert "no backend can be used here. namespaces: " in text
    assert ". broker: Landlock failed" in text


@pytest.mark.attack(134)
@pytest.mark.parametrize("call", [(436, 38), (317, 1)], ids=["close_range", "seccomp"])
def test_a_call_that_the_broker_needs_and_has_not_is_a_refusal(box: Box, call: tuple[int, int]) -> None:
    refused(box, (*DOCKER, Refusal(*call)), "--backend", "broker")


@pytest.mark.attack(144)
def test_a_session_in_a_session_is_one_clear_line(netsandbox: Any) -> None:
    """Also if it does not know that it is in one: the kernel has one listener for a process."""
    netsandbox.backend = "broker"
    inner = f"{netsandbox.python} -m netsandbox run --backend broker -- touch ran"
    state = 'export XDG_STATE_HOME="$PWD/state" PYTHONPATH="$1"; mkdir -p state below; cd below'
    shown = ("--allow-read", netsandbox.home().identity.pythonpath)
    for before in ("", "unset NETSANDBOX_SESSION; "):
        script = f"{state}; {before}{inner}"
        run = netsandbox("run", *shown, "--", "sh", "-c", script, "sh", netsandbox.home().identity.pythonpath)
        assert run.returncode == 1
        assert "outside of" in run.stderr, run.stderr
        assert not (netsandbox.home().work / "below/ran").exists()
