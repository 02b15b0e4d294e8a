"""A session of the broker ends whole, whatever happens to which of its processes (INV-10), and fails closed (INV-1)."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_lifecycle import (  # noqa: F401
    test_a_fork_bomb_within_a_limit_ends_with_its_session,
    test_a_killed_supervisor_takes_the_session_with_it,
    test_daemons_end_with_the_command,
    test_the_first_instruction_of_the_command_is_behind_the_doors,
)
from tests.integration.test_signals import (  # noqa: F401
    test_a_command_that_dies_of_a_signal_shows_it,
    test_a_process_of_the_session_cannot_signal_the_supervisor_or_the_host,
    test_a_signal_that_ends_the_command_ends_netsandbox_by_the_same_signal,
    test_a_signal_to_the_group_reaches_the_command_once,
    test_a_signal_to_the_supervisor_alone_reaches_the_command,
)
from tests.integration.test_terminal import (  # noqa: F401
    terminal,
    test_ctrl_c_ends_a_plain_command_with_130,
    test_ctrl_z_stops_the_whole_job_and_fg_resumes_it,
    test_everything_ends_when_the_terminal_is_closed,
)
from tests.rig import processes
from tests.rig.leftovers import what_stays

pytestmark = pytest.mark.backend("broker")

STUBBORN = """
trap "" TERM HUP INT
(setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' &)
(nohup sh -c '(sleep 600 &) ; sleep 600' >/dev/null 2>&1 &)
echo ready
while :; do sleep 1; done
"""
KEEPER, BROKER = "netsandbox-keep", "netsandbox-brok"


def helper(family: frozenset[processes.Process], name: str) -> processes.Process:
    found = sorted((each for each in family if each.name == name), key=lambda each: each.pid)
    assert found, [each.name for each in family]
    return found[0]


@pytest.mark.attack(204)
@pytest.mark.parametrize("name", [KEEPER, BROKER])
def test_a_killed_helper_ends_the_run(netsandbox: Any, leftovers: Any, name: str) -> None:
    running = netsandbox.spawn("run", "--", "sh", "-c", STUBBORN)
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    os.kill(helper(watch.family, name).pid, signal.SIGKILL)
    assert running.wait(20) != 0
    watch.assert_gone()


@pytest.mark.attack(204)
@pytest.mark.parametrize("name", [KEEPER, BROKER])
def test_a_stopped_helper_does_not_keep_a_session_alive(netsandbox: Any, leftovers: Any, name: str) -> None:
    """It is suspended, then the supervisor is killed: of the other two, each sees it."""
    running = netsandbox.spawn("run", "--", "sh", "-c", STUBBORN)
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    stopped = helper(watch.family, name)
    os.kill(stopped.pid, signal.SIGSTOP)
    running.process.kill()
    running.wait()
    try:
        assert not what_stays(lambda: [each for each in watch.family - {stopped} if each.alive], 1.0)
    finally:
        processes.end({stopped})


ORPHANED = """
import os, socket, sys, time
print("ready", flush=True)
sys.stdin.readline()
while True:
    try:
        socket.create_connection(("192.0.2.1", int(sys.argv[1])), 1)
    except OSError:
        pass
"""


def test_calls_fail_closed_when_the_broker_is_gone(netsandbox: Any, canary: Any, leftovers: Any) -> None:
    server = canary.tcp()
    words = (netsandbox.python, "-c", ORPHANED, str(server.port))
    running = netsandbox.spawn("run", "--", *words, stdin=subprocess.PIPE)
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    os.kill(helper(watch.family, BROKER).pid, signal.SIGKILL)
    running.wait(20)
    watch.assert_gone()
    assert server.accepts == 0


HUNGRY = """
import errno, json, resource, socket, sys
def fill(kind):
    held, found = [], "none"
    try:
        while True:
            held.append(socket.socket(socket.AF_INET, kind))
    except OSError as error:
        found = errno.errorcode[error.errno]
    count = len(held)
    [each.close() for each in held]
    return [found, count > 20]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
print(json.dumps([fill(socket.SOCK_STREAM), fill(socket.SOCK_DGRAM), fill(socket.SOCK_STREAM)]), flush=True)
sys.stdin.readline()
"""


def test_descriptors_run_out_in_one_session_only(netsandbox: Any) -> None:
    """The command gets EMFILE, has them again when it closes some, and another session does not notice."""
    running = netsandbox.spawn("run", "--", netsandbox.python, "-c", HUNGRY, stdin=subprocess.PIPE)
    found = json.loads(running.read_until(b"\n"))
    assert found == [["EMFILE", True]] * 3
    code = "import socket; a = [socket.socket() for _ in range(300)]; print(len(a))"
    assert netsandbox("run", "--", netsandbox.python, "-c", code).stdout == "300\n"
    running.process.stdin.close()
    assert running.wait(20) == 0


MANY = """
import socket, sys
with socket.create_server(("127.0.0.1", 3000), backlog=64) as server:
    for _ in range(3):
        for _ in range(2000):
            with socket.create_connection(("127.0.0.1", 3000)) as client:
                server.accept()[0].close()
        print("done", flush=True)
        sys.stdin.readline()
"""


def test_connections_without_end_cost_no_memory(netsandbox: Any) -> None:
    """What the broker knows of a closed socket is dropped while others are made: an entry is about a kilobyte."""
    running = netsandbox.spawn("run", "--", netsandbox.python, "-c", MANY, stdin=subprocess.PIPE)
    sizes = []
    for _ in range(3):
        running.read_until(b"done")
        broker = helper(frozenset(running.family()), BROKER)
        status = Path(f"/proc/{broker.pid}/status").read_text()
        sizes.append(int(status.partition("RssAnon:")[2].split()[0]))
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
    assert running.wait(20) == 0
    assert sizes[2] - sizes[0] < 2000, sizes  # of the four thousand that were made since


FILLING = """
import os, signal, socket, sys, time
print("ready", flush=True)
sys.stdin.readline()
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    held = []
    try:
        while True:
            held.append(socket.socket())
    except OSError as error:
        print(error.errno, len(held) > 50, held[0].connect_ex(("127.0.0.1", 1)), flush=True)
    os.kill(parent, signal.SIGTERM)
    time.sleep(600)
time.sleep(600)
"""


@pytest.mark.attack(195, 204)
def test_a_session_that_uses_up_the_brokers_descriptors_ends_with_its_command(netsandbox: Any, leftovers: Any) -> None:
    """Its open sockets still work then: one is refused by its own localhost, not by the broker that forgot it."""
    running = netsandbox.spawn("run", "--", netsandbox.python, "-c", FILLING, stdin=subprocess.PIPE)
    running.read_until(b"ready\n")
    watch = leftovers.watch(running)
    limit = ["prlimit", "--pid", str(helper(watch.family, BROKER).pid), "--nofile=200:200"]
    assert netsandbox.home().plainly(limit).returncode == 0
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    assert running.read_until(b"\n").split() == [b"%d" % errno.EMFILE, b"True", b"%d" % errno.ECONNREFUSED]
    assert running.wait(20) == -signal.SIGTERM
    watch.assert_gone()
