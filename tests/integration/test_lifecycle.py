"""A session begins closed, ends whole and leaves nothing (INV-10), whatever happens to whichever part and whenever.

Counts are small here; bench/soak runs the same a thousandfold.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from typing import Any

import pytest

from netsandbox.runtime.control_socket import EARLY_NAME
from tests.rig import processes
from tests.rig.leftovers import what_stays
from tests.rig.localhost import eventually

pytestmark = pytest.mark.usefixtures("user_namespaces")

ALLOWED, DENIED = "allowed.test", "denied.test"

# Takes argv[1] as an address, or else as a name (wire form, in hexadecimal) to ask for; connects to port argv[2].
FIRST_PACKET = r"""
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int question(const char *hex, struct in_addr *address)
{
    unsigned char packet[512] = { 7, 7, 1, 0, 0, 1 };
    struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(53) };
    size_t size = 12;
    ssize_t got;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    for (; hex[0] && hex[1]; hex += 2)
        packet[size++] = strtoul((char[3]){ hex[0], hex[1], 0 }, NULL, 16);
    memcpy(packet + size, "\0\1\0\1", 4);
    inet_pton(AF_INET, "127.0.0.1", &server.sin_addr);
    if (connect(fd, (void *)&server, sizeof server) < 0 || send(fd, packet, size + 4, 0) < 0)
        return 11;
    got = recv(fd, packet, sizeof packet, 0);
    if (got < 12 || packet[3] & 15 || !packet[7])
        return 12;
    memcpy(address, packet + got - 4, 4);
    return 0;
}

int main(int count, char **words)
{
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(atoi(words[2])) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char byte;

    if (inet_pton(AF_INET, words[1], &peer.sin_addr) != 1) {
        int problem = question(words[1], &peer.sin_addr);
        if (problem)
            return problem;
    }
    if (connect(fd, (void *)&peer, sizeof peer) < 0)
        return 13;
    if (write(fd, "ping\n", 5) != 5)
        return 14;
    return read(fd, &byte, 1) == 1 ? 0 : 15;
}
"""

# Connects to argv[1]:argv[2] again and again, a byte each, until it is stopped.
HAMMER = """
import socket, sys, time
print("ready", flush=True)
while True:
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as client:
            client.sendall(b"x\\n")
            client.recv(1)
    except OSError:
        time.sleep(0.001)
"""


# Connects to argv[1]:argv[2] once the file argv[3] is there.
LATE = """
import os, socket, sys, time
while not os.path.exists(sys.argv[3]):
    time.sleep(0.02)
socket.create_connection((sys.argv[1], int(sys.argv[2])))
"""


def wire(name: str) -> str:
    return b"".join(bytes([len(label)]) + label.encode() for label in [*name.split("."), ""]).hex()


def names(authority: Any, *allowed: str) -> tuple[str, ...]:
    """Options that let ALLOWED names (with ports) through; every name leads to loopback."""
    authority.answer("*.test", "127.0.0.1")
    rules = [word for name in allowed for word in ("--allow-domain", name)]
    return ("--upstream-dns", authority.address, *rules, "--allow-address", "127.0.0.1:*")


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(203)
@pytest.mark.ordinary_user
def test_the_first_instruction_of_the_command_is_behind_the_doors(
    netsandbox: Any, canary: Any, authority: Any, probe: Any
) -> None:
    """No time between start and filter: a static program that connects at once is served or denied, each time."""
    program = probe("first-packet", FIRST_PACKET, static=True)
    allowed, forbidden = canary.tcp(echo=True), canary.tcp(echo=True)
    options = names(authority, f"{ALLOWED}:{allowed.port}")
    for _ in range(4):  # `make soak` does a thousand
        run = netsandbox("run", *options, "--", program, wire(ALLOWED), str(allowed.port))
        assert run.returncode == 0, run.audit
        assert len(run.events("egress", verdict="allow", host=ALLOWED)) == 1
        run = netsandbox("run", *options, "--", program, "203.0.113.9", str(forbidden.port))
        assert run.returncode in (13, 14, 15)
        assert len(run.events("egress", verdict="deny")) == 1
        run = netsandbox("run", *options, "--", program, wire(DENIED), str(forbidden.port))
        assert run.returncode == 12
        assert run.events("dns", verdict="deny", host=DENIED)
    assert (allowed.accepts, forbidden.accepts) == (4, 0)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
def test_an_attempt_at_the_last_moment_is_recorded_too(netsandbox: Any) -> None:
    """The command connects and is gone; its attempt is on record all the same."""
    code = "import socket; s = socket.socket(); s.setblocking(False); s.connect_ex(('192.0.2.1', 80))"
    for _ in range(5):
        run = netsandbox("run", "--allow-domain", ALLOWED, "--", netsandbox.python, "-c", code)
        assert len(run.events("egress", verdict="deny")) == 1


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(204)
@pytest.mark.ordinary_user
def test_a_killed_supervisor_takes_the_session_with_it(
    netsandbox: Any, canary: Any, authority: Any, leftovers: Any
) -> None:
    """Within a second no process is left, and the server hears nothing more. One process ignores every signal."""
    server = canary.tcp(echo=True)
    options = names(authority, f"{ALLOWED}:{server.port}")
    stubborn = 'trap "" TERM HUP INT; (setsid sh -c "trap \\"\\" TERM HUP INT; while :; do sleep 1; done" &); exec "$@"'
    hammer = (netsandbox.python, "-c", HAMMER, ALLOWED, str(server.port))
    for _ in range(5):
        running = netsandbox.spawn("run", *options, "--", "sh", "-c", stubborn, "sh", *hammer)
        running.read_until(b"ready")
        eventually(lambda: server.accepts)
        time.sleep(random.uniform(0, 0.3))
        watch = leftovers.watch(running)
        running.process.kill()
        running.wait()
        watch.assert_gone()
    heard = server.accepts
    assert heard
    time.sleep(0.3)
    assert server.accepts == heard


def only(found: list[processes.Process]) -> list[processes.Process]:
    """One process; the helper's begin under one name, and take their own a moment later."""
    return found if len(found) == 1 else []


@pytest.mark.attack(204)
@pytest.mark.parametrize("name", ["netsandbox-init", "netsandbox-trap"])
def test_a_killed_helper_ends_the_run(netsandbox: Any, leftovers: Any, name: str) -> None:
    """PID 1 of the session, or the process that receives trapped calls, is killed from outside: the rest ends with it,
    and netsandbox says so by its status."""
    before = leftovers()
    running = netsandbox.spawn("run", "--", "sh", "-c", "echo ready; sleep 60")
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    helper = eventually(lambda: only([p for p in watch.family if p.name == name]))[0]
    os.kill(helper.pid, signal.SIGKILL)
    assert running.wait(20) in (-signal.SIGKILL, 128 + signal.SIGKILL)
    watch.assert_gone()
    leftovers.assert_none(before)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(205)
@pytest.mark.ordinary_user
def test_daemons_end_with_the_command(netsandbox: Any, canary: Any, authority: Any, leftovers: Any) -> None:
    """Double fork, setsid, nohup, a cleared environment: all are children of the session's PID 1 in the end."""
    server = canary.tcp(echo=True)
    options = names(authority, f"{ALLOWED}:{server.port}")
    script = """
    late() { "$@" & }
    (late "$@"); (setsid "$@" &); (nohup "$@" >/dev/null 2>&1 &); (setsid setsid env -i "$@" &) ; (("$@" &) &)
    sleep 0.2
    ls -d /proc/[0-9]* | wc -l
    """
    before = leftovers()
    over = netsandbox.home().work / "over"
    words = (netsandbox.python, "-c", LATE, ALLOWED, str(server.port), over)
    running = netsandbox.spawn("run", *options, "--", "sh", "-c", script, "sh", *words)
    running.read_until(b"\n")
    assert running.wait(20) == 0
    leftovers.assert_none(before)
    over.touch()
    time.sleep(0.3)
    assert server.accepts == 0


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(206)
@pytest.mark.ordinary_user
def test_cycles_that_are_cut_anywhere_leave_nothing(netsandbox: Any, leftovers: Any) -> None:
    """Kill, term or interrupt after 0 to 150 ms: in the interpreter's start, the set-up, the command or the end.

    The sockets of those that were killed are taken away by whoever looks next; one that did not listen yet by a sweep.
    """
    before = leftovers()
    choice = random.Random(os.urandom(8))
    for _ in range(8):  # `make soak` does a thousand
        batch = [_cycle(netsandbox) for _ in range(2)]
        for running in batch:
            time.sleep(choice.uniform(0, 0.075))
            running.signal(choice.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        for running in batch:
            running.wait(60)
    assert json.loads(netsandbox("ps", "--json").stdout) == []
    for early in netsandbox.home().state.rglob(EARLY_NAME):
        early.unlink(missing_ok=True)
    leftovers.assert_none(before)


def _cycle(netsandbox: Any) -> Any:
    script = "sleep 0.05 & (setsid sleep 60 &); wait $!"
    return netsandbox.spawn("run", "--", "sh", "-c", script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(209)
@pytest.mark.ordinary_user
def test_twenty_sessions_at_once_keep_their_policies_apart(netsandbox: Any, canary: Any, authority: Any) -> None:
    """Each may reach its own server; each tries the next one's too."""
    count = 20
    servers = [canary.http(body=b"%d" % number) for number in range(count)]
    authority.answer("*.test", "127.0.0.1")
    script = 'for url; do for none in x "*"; do curl -sf --noproxy "$none" --max-time 30 "$url"; echo " $?"; done; done'
    if shutil.which("curl") is None:
        pytest.skip("curl is missing (package curl)")
    sessions = []
    for number, server in enumerate(servers):
        other = (number + 1) % count
        urls = [f"http://s{n}.test:{servers[n].port}/" for n in (number, other)]
        log = netsandbox.home().path / f"log{number}"
        options = (*names(authority, f"s{number}.test:{server.port}"), "-q", "--audit-log", str(log))
        sessions.append(netsandbox.spawn("run", *options, "--", "sh", "-c", script, "sh", *urls))
    for number, running in enumerate(sessions):
        out, err = running.process.communicate(timeout=300)
        lines = out.decode().splitlines()
        assert lines[:2] == [f"{number} 0"] * 2, (out, err, running.audit)
        assert all(line.startswith(" ") and line != " 0" for line in lines[2:])
        assert {r["host"] for r in running.audit if r["event"] == "egress" and r["verdict"] == "allow"} == {
            f"s{number}.test"
        }
    assert [server.accepts for server in servers] == [2] * count


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(200)
def test_a_fork_bomb_within_a_limit_ends_with_its_session(netsandbox: Any, leftovers: Any) -> None:
    """As an ordinary user: the kernel does not hold root to this limit."""
    bomb = """
import os, sys, time
for number in range(500):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError as error:
        print("stopped", number, error.errno, flush=True)
        sys.exit(3)
"""
    user = netsandbox.home(as_user=True)
    inside = ("bash", "-c", 'ulimit -u 100; exec "$@"', "bash", user.identity.python, "-c", bomb)
    running = netsandbox.spawn("run", "--", *inside, as_user=True)
    running.read_until(b"stopped")
    assert running.wait(30) == 3
    assert not what_stays(lambda: processes.marked(user.mark))


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(175)
def test_what_a_server_saw_is_on_record_even_if_the_supervisor_was_killed(
    netsandbox: Any, canary: Any, authority: Any
) -> None:
    """INV-5: log before act. Killed at random moments of a storm of connections, the log is never behind the server."""
    server = canary.tcp(echo=True)
    options = names(authority, f"{ALLOWED}:{server.port}")
    hammer = (netsandbox.python, "-c", HAMMER, ALLOWED, str(server.port))
    for _ in range(6):  # `make soak` does a thousand
        heard = server.accepts
        running = netsandbox.spawn("run", *options, "--", *hammer)
        running.read_until(b"ready")
        eventually(lambda heard=heard: server.accepts > heard)
        time.sleep(random.uniform(0.02, 0.2))
        running.process.kill()
        running.wait()
        time.sleep(0.05)
        recorded = [r for r in running.audit if r["event"] == "egress" and r["verdict"] == "allow"]
        assert server.accepts - heard <= len(recorded)
    assert server.accepts > 0
