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
PS_ONE, PS_ALL = "ps, one session", f"ps, {SESSIONS} sessions"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result(f"{SESSIONS} sessions that listen on {PORT}")
    starts, lists, wrong = Series(), Series(), 0
    for _ in range(rounds):
        singles = [_crowd(rig, 1) for _ in range(SINGLES)]
        alone, ps_one = (median(single[field] for single in singles) for field in (0, 1))
        astray = sum(single[2] for single in singles)
        together, ps_all, more_astray = _crowd(rig, SESSIONS)
        starts.add(ALONE, alone)
        starts.add(TOGETHER, together * len(os.sched_getaffinity(0)))
        lists.add(INTERPRETER, timed([rig.product.python, "-I", "-S", "-c", "pass"], rig.environment).seconds * 1e3)
        lists.add(PS_ONE, ps_one)
        lists.add(PS_ALL, ps_all)
        wrong += astray + more_astray
    result.table(starts, "ms", ALONE)
    result.table(lists, "ms", PS_ONE)
    result.aim(f"launch of {SESSIONS} that listen, per core, against one", 2, starts.ratio(TOGETHER, ALONE))
    result.aim("sessions not found as themselves, of all rounds", 0, wrong, "sessions")
    return result


def _crowd(rig: Rig, size: int) -> tuple[float, float, int]:
    """Milliseconds for each until all listen, and of `ps` then; and how many did not answer as themselves."""
    names = [f"crowd-{number}" for number in range(size)]
    with ExitStack() as stack:
        began = time.perf_counter()
        processes = [_start(rig, name) for name in names]
        stack.callback(stop_groups, processes)
        for process in processes:
            _await(process)
        each = (time.perf_counter() - began) * 1e3 / size
        ps = timed([rig.product.command, "ps"], rig.environment).seconds * 1e3
        ports = published(rig, size)
        found = {str(entry["name"]): _ask(int(str(entry["host_port"]))) for entry in ports}
        return each, ps, sum(found.get(name) != name for name in names)


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
