"""Fifty sessions at once: how long until all of them run, and how long one more takes beside them."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack

from figures import Result, Series
from launch import ONE_DOMAIN
from processes import stop_group, timed
from rig import Rig

SESSIONS = 50
ALONE, TOGETHER, BESIDE = "one session", f"each of {SESSIONS} at once, per core", f"one more beside {SESSIONS}"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result(f"growth: {SESSIONS} sessions at once")
    series = Series()
    for _ in range(rounds):
        series.add(ALONE, _one(rig))
        together, beside = _many(rig)
        series.add(TOGETHER, together)
        series.add(BESIDE, beside)
    result.table(series, "ms", ALONE)
    result.aim(f"launch of {SESSIONS} at once, per core, against one", 1.7, series.ratio(TOGETHER, ALONE))
    return result


def _one(rig: Rig) -> float:
    began = time.perf_counter()
    with ExitStack() as stack:
        _await(_start(rig, stack))
        return (time.perf_counter() - began) * 1e3


def _many(rig: Rig) -> tuple[float, float]:
    cores = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        began = time.perf_counter()
        for process in [_start(rig, stack) for _ in range(SESSIONS)]:
            _await(process)
        all_up = (time.perf_counter() - began) * 1e3
        extra = timed([rig.product.command, "run", *ONE_DOMAIN, "--", "true"], rig.environment).seconds * 1e3
        return all_up / SESSIONS * cores, extra


def _start(rig: Rig, stack: ExitStack) -> subprocess.Popen[bytes]:
    """A session whose command prints a line and then waits."""
    process = subprocess.Popen(
        rig.product.run(ONE_DOMAIN, ["/bin/sh", "-c", "echo up; read line"]),
        env=rig.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    stack.callback(stop_group, process)
    return process


def _await(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != b"up\n":
        raise RuntimeError("a session did not start")
