"""Fifty sessions at once, all on port 3000, each scanning everything on loopback for the others: nobody finds anybody.

Half of them are an ordinary user's. Each has a secret that it gives to whoever connects: its own user on the host gets
it where `netsandbox ps` says, and nothing else that answers inside a session says a word of it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.effort import repeated
from tests.rig.localhost import eventually, heard, sessions, source

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces")]

SESSIONS = 50
STRATEGIES = ("isolate", "rewire-device", "rewire-port", "isolate", "fail")
DOORS = {53, 1008, 1009}  # DNS, proxy, transparent proxy: each session has its own at these numbers
ALL_PORTS, POOL = 65535, range(20000, 30000)
COMMON = (range(1, 1025), range(2900, 3101))
# One of each strategy and account scans every port, the others those of the sessions; `make soak` lets all do it.
FULL_SCANS = repeated(10, SESSIONS)


class Member:
    """One session of the crowd."""

    def __init__(self, netsandbox: Any, program: Path, number: int) -> None:
        self.secret = f"secret-{number}-of-the-crowd"
        self.name = f"crowd-{number}"
        self.strategy = STRATEGIES[number % len(STRATEGIES)]
        self.scans_all = number < FULL_SCANS
        self.as_user = number % 2 == 1 and os.getuid() == 0  # an ordinary user is the only one that he can be
        port = "$LISTENING_BASE_PORT" if self.strategy == "fail" else "3000"
        command = ("sh", "-c", f'exec "$1" "$2" {port}', "sh", program, self.secret)
        options = ("-q", "--name", self.name, "--network-strategy", self.strategy)
        self.spawned = netsandbox.spawn("run", *options, "--", *command, as_user=self.as_user, stdin=subprocess.PIPE)
        self.status: dict[str, Any] = {}

    @property
    def window(self) -> range:
        window = self.status["window"]
        return range(window["base"], window["base"] + window["count"])

    @property
    def inner_port(self) -> int:
        return int(self.status["window"]["base"]) if self.strategy == "fail" else 3000

    def await_listening(self) -> None:
        process = self.spawned.process
        assert process.stdout.readline() == b"listening\n", (self.strategy, self.as_user, process.stderr.read())

    def scan(self, neighbours: list[Member], served: list[range]) -> int:
        """127.0.0.1 and ::1; of the neighbours, their devices too. Gives the attempts on these two."""
        few = [*COMMON, *served]
        spans = {
            "127.0.0.1": [range(1, ALL_PORTS + 1)] if self.scans_all else few,
            "::1": [range(1, 4097), POOL] if self.scans_all else few,
        }
        words = [f"{address}:{span[0]}-{span[-1]}" for address, some in spans.items() for span in some]
        words.append("127.0.0.2:2900-3100")
        for other in neighbours:
            device, base = other.status["device"], other.window.start
            words += [f"{device}:3000-3000", f"{device}:{base}-{base + 4}", f"::ffff:{device}:3000-3000"]
        self._write(" ".join(words) + "\n")
        return sum(len(span) for some in spans.values() for span in some)

    def finish(self) -> None:
        self.spawned.process.stdin.close()
        assert self.spawned.wait(30) == 0

    def _write(self, line: str) -> None:
        self.spawned.process.stdin.write(line.encode())
        self.spawned.process.stdin.flush()


def learn(netsandbox: Any, crowd: list[Member]) -> None:
    """What `ps` says of each, asked by whoever it belongs to, once all of them have the time to answer."""
    for as_user in sorted({member.as_user for member in crowd}):
        members = {member.name: member for member in crowd if member.as_user == as_user}

        def everybody(as_user: bool = as_user, members: dict[str, Member] = members) -> list[dict[str, Any]]:
            listed = sessions(netsandbox, as_user=as_user)
            return listed if {status["name"] for status in listed if status["ports"]} == members.keys() else []

        for status in eventually(everybody, 60):
            members[status["name"]].status = status
    assert all(len(member.status["ports"]) == 1 for member in crowd), [member.status for member in crowd]


def assert_reached_from_the_host(crowd: list[Member]) -> None:
    """The twin: every session's own place, and only its own, gives its secret."""
    for member in crowd:
        (port,) = member.status["ports"]
        assert port["port"] == member.inner_port
        assert heard(port["host_address"], port["host_port"]) == member.secret.encode()
        if port["device_address"] is not None:
            assert port["device_address"] == member.status["device"]
            assert heard(port["device_address"], member.inner_port) == member.secret.encode()


def assert_found_only_itself(member: Member, least: int) -> None:
    found = member.spawned.read_until(b"done ", 240).decode().splitlines()[:-1]
    attempts, refused = map(int, member.spawned.read_until(b"\n").split())
    answers = [line.split(" ", 2) for line in found]
    doors = [answer for answer in answers if int(answer[1]) in DOORS]
    own = [answer for answer in answers if answer not in doors]
    assert {answer[2] for answer in doors} <= {"-"}
    assert own == [["127.0.0.1", str(member.inner_port), member.secret]]
    assert len(answers) + refused == attempts
    assert attempts > least


@pytest.mark.attack(108)
@pytest.mark.attack(209)
def test_fifty_sessions_on_the_same_port_never_meet(netsandbox: Any, leftovers: Any, probe: Any) -> None:
    netsandbox("run", "--", "true")  # an account's first session makes files for locks, which stay
    before = leftovers()
    program = probe("scan", source("scan.c"), static=True)
    crowd = [Member(netsandbox, program, number) for number in range(SESSIONS)]
    for member in crowd:
        member.await_listening()
    learn(netsandbox, crowd)
    ports = [port for member in crowd for port in member.window]
    assert len(ports) == len(set(ports))
    assert len({member.status["device"] for member in crowd}) == SESSIONS
    assert_reached_from_the_host(crowd)
    served = [member.window[:8] for member in crowd]
    known = {port for span in (*COMMON, *served) for port in span}
    published = {port["host_port"] for member in crowd for port in member.status["ports"]}
    served += [range(port, port + 1) for port in published - known]
    scanned = [
        member.scan([crowd[(number + step) % SESSIONS] for step in (1, 7, 25)], served)
        for number, member in enumerate(crowd)
    ]
    for member, least in zip(crowd, scanned, strict=True):
        assert_found_only_itself(member, least)
    assert_reached_from_the_host(crowd)
    for member in crowd:
        member.finish()
    leftovers.assert_none(before)
    assert not [member.name for member in crowd if is_still_served(member)]


def is_still_served(member: Member) -> bool:
    """Another session may have the place by now, but nobody has the secret."""
    (port,) = member.status["ports"]
    try:
        return heard(port["host_address"], port["host_port"], 2) == member.secret.encode()
    except OSError:
        return False
