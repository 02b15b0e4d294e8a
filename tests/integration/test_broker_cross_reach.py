"""No race of a session reaches a server of the host, and no session finds another on the loopback that they share."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.integration.test_session_scan import DOORS
from tests.rig.effort import repeated
from tests.rig.localhost import eventually, heard, sessions, source

pytestmark = pytest.mark.backend("broker")

ROUNDS = repeated(100, 10_000)
MAX_RUNS = 5  # on a busy machine one thread of the race may have had no turn
GOOD = "3000"
MODES = ["flip-connect", "flip-away-connect", "flip-sendto", "flip-bind", "swap-connect", "swap-sendto", "reopen"]


@pytest.mark.attack(115)
@pytest.mark.attack(116)
@pytest.mark.parametrize("mode", MODES)
def test_a_race_for_the_hosts_server_is_lost(netsandbox: Any, canary: Any, probe: Any, mode: str) -> None:
    """The address changes while it is read, or another socket has the descriptor's number when the call is made. The
    session's own server is reached meanwhile, so the race was run."""
    program = probe("internet_races", source("internet_races.c"), flags=("-Wno-format",))
    server = canary.tcp("0.0.0.0")
    datagrams = canary.udp("0.0.0.0", server.port)
    reached = 0
    for _ in range(MAX_RUNS):
        run = netsandbox("run", "--", program, mode, str(ROUNDS), GOOD, str(server.port), timeout=600)
        assert run.stdout, run.stderr
        rounds, reached = map(int, run.stdout.split())
        assert rounds == ROUNDS
        if reached:
            break
    assert reached > 0
    assert (server.accepts, datagrams.datagrams) == (0, [])


SESSIONS = 10


class Member:
    """A session with a server at port 3000 that gives its secret to every client; it scans on request."""

    def __init__(self, netsandbox: Any, program: Any, number: int) -> None:
        self.secret = f"secret-{number}-of-the-crowd"
        self.name = f"crowd-{number}"
        command = ("run", "-q", "--name", self.name, "--", program, self.secret, "3000")
        self.spawned = netsandbox.spawn(*command, stdin=subprocess.PIPE)
        self.device = ""

    def scan(self, words: list[str]) -> tuple[list[list[str]], int, int]:
        stdin = self.spawned.process.stdin
        stdin.write((" ".join(words) + "\n").encode())
        stdin.flush()
        found = self.spawned.read_until(b"done ", 240).decode().splitlines()[:-1]
        attempts, refused = map(int, self.spawned.read_until(b"\n").split())
        return [line.split(" ", 2) for line in found], attempts, refused


@pytest.mark.attack(108)
@pytest.mark.attack(209)
def test_sessions_find_neither_one_another_nor_the_host(netsandbox: Any, canary: Any, probe: Any) -> None:
    """Each at its neighbours' devices and at the host's servers, one of them on every address."""
    program = probe("scan", source("scan.c"), static=True)
    servers = [canary.tcp("0.0.0.0", greeting=b"host\n"), canary.tcp("127.0.0.1", greeting=b"host\n")]
    crowd = [Member(netsandbox, program, number) for number in range(SESSIONS)]
    for member in crowd:
        assert member.spawned.read_until(b"\n") == b"listening\n"
    listed = eventually(lambda: found if len(found := sessions(netsandbox)) == SESSIONS else [])
    devices = {status["name"]: status["device"] for status in listed}
    assert len(set(devices.values())) == SESSIONS
    for member in crowd:
        member.device = devices[member.name]
        assert heard(member.device, 3000) == member.secret.encode()
    addresses = ["127.0.0.1", "127.0.0.2", *devices.values()]
    words = [f"{address}:{port}-{port}" for address in addresses for port in (3000, *(each.port for each in servers))]
    words += [f"::ffff:{device}:3000-3000" for device in devices.values()]
    base = ".".join(crowd[0].device.split(".")[:3])
    words += [f"{base}.{last}:1-64" for last in (1, 2, 3)]
    for member in crowd:
        found, attempts, refused = member.scan(words)
        others = [each for each in found if int(each[1]) not in DOORS and each[2] != member.secret]
        assert others == []
        assert {each[0].removeprefix("::ffff:") for each in found if int(each[1]) not in DOORS} <= {
            "127.0.0.1",
            member.device,
        }
        assert len(found) + refused == attempts
    assert [server.accepts for server in servers] == [0, 0]
    for member in crowd:
        member.spawned.process.stdin.close()
        assert member.spawned.wait(30) == 0
