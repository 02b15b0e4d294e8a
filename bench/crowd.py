"""Fifty sessions that all listen on port 3000: whether each is reached under its name, and how long they take to
start."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import ExitStack
from statistics import median

from figures import Result, Series
from launch import INTERPRETER
from live import published
from processes import stop_groups, timed
from rig import Rig

SESSIONS = 50
SINGLES = 5  # alone, in each round; the median is used
PORT = 3000
ALONE, TOGETHER = "one session that listens", f"each of {SESSIONS} at once, per core"
LISTINGS = ("ps", "ports")
TURNS = 5  # of each listing; the median is used


def measure(rig: Rig, rounds: int) -> Result:
    result = Result(f"{SESSIONS} sessions that listen on {PORT}")
    starts, lists, wrong = Series(), Series(), 0
    for _ in range(rounds):
        singles = [_crowd(rig, 1) for _ in range(SINGLES)]
        astray = sum(single[2] for single in singles)
        together, listed, more_astray = _crowd(rig, SESSIONS)
        starts.add(ALONE, median(single[0] for single in singles))
        starts.add(TOGETHER, together * len(os.sched_getaffinity(0)))
        lists.add(INTERPRETER, timed([rig.product.python, "-I", "-S", "-c", "pass"], rig.environment).seconds * 1e3)
        for word in LISTINGS:
            lists.add(f"{word}, one session", median(single[1][word] for single in singles))
            lists.add(f"{word}, {SESSIONS} sessions", listed[word])
        wrong += astray + more_astray
    result.table(starts, "ms", ALONE)
    result.table(lists, "ms", "ps, one session")
    result.aim(f"launch of {SESSIONS} that listen, per core, against one", 2, starts.ratio(TOGETHER, ALONE))
    for word in LISTINGS:
        found = lists.ratio(f"{word}, {SESSIONS} sessions", f"{word}, one session")
        result.aim(f"`{word}` with {SESSIONS} sessions against one", 1.5, found)
    result.aim("sessions not found as themselves, of all rounds", 0, wrong, "sessions")
    return result


def _crowd(rig: Rig, size: int) -> tuple[float, dict[str, float], int]:
    """Milliseconds for each until all listen, and of each listing then; and how many did not answer as themselves."""
    names = [f"crowd-{number}" for number in range(size)]
    with ExitStack() as stack:
        began = time.perf_counter()
        processes = [_start(rig, name) for name in names]
        stack.callback(stop_groups, processes)
        for process in processes:
            _await(process)
        each = (time.perf_counter() - began) * 1e3 / size
        listed = {word: _time_of(rig, word) for word in LISTINGS}
        ports = published(rig, size)
        found = {str(entry["name"]): _ask(int(str(entry["host_port"]))) for entry in ports}
        return each, listed, sum(found.get(name) != name for name in names)


def _time_of(rig: Rig, word: str) -> float:
    return median(timed([rig.product.command, word], rig.environment).seconds * 1e3 for _ in range(TURNS))


def _start(rig: Rig, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        rig.product.run(["--name", name], [rig.stream, "name", str(PORT), name]),
        env=rig.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _await(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != b"up\n":
        raise RuntimeError("a session did not start")


def _ask(port: int) -> str | None:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as sock:
            return sock.makefile().read()
    except OSError:
        return None
