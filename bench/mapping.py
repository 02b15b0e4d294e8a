"""How long a program waits for a port of the window: the request alone, and bind() of a new port."""

from __future__ import annotations

import json
import subprocess

from figures import Result, Series
from rig import Rig

FIRST = 4001
EACH = 30  # questions and binds; together fewer than a window has ports
NEW, AGAIN, ASK = "first bind of a port", "bind of a known port", "the question alone"
AT_ONCE, LATER = "first bind of a session, at once", "first bind of a session, 0.3 s old"
BARE = "bare bind"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("a new port under the preload library")
    series = Series()
    for _ in range(rounds):
        for cost in _run(rig, FIRST, EACH)["new"]:
            series.add(BARE, cost / 1e3)
        for strategy in ("rewire-port", "rewire-device"):
            _ask(rig, strategy, series)
    result.table(series, "µs")
    for strategy in ("rewire-port", "rewire-device"):
        for what in (ASK, NEW):
            spread = series.spread(f"{strategy}, {what}")
            result.aim(f"{what} ({strategy})", 1000, spread, "µs")
    return result


def _ask(rig: Rig, strategy: str, series: Series) -> None:
    """A new session each time, because a port is new only once."""
    options, program = ["--network-strategy", strategy, "--rewrite-engine", "preload"], rig.interposer
    early = rig.box(options)
    series.add(f"{strategy}, {AT_ONCE}", json.loads(early.run(f"{program} binds {FIRST} 1"))["new"][0] / 1e3)
    early.stop()
    box = rig.box(options)
    series.add(f"{strategy}, {LATER}", json.loads(box.run(f"sleep 0.3; {program} binds {FIRST} 1"))["new"][0] / 1e3)
    bound = json.loads(box.run(f"{program} binds {FIRST + 1} {EACH}"))
    asked = json.loads(box.run(f"{program} asks {FIRST + 1 + EACH} {EACH}"))
    box.stop()
    for name, costs in ((NEW, bound["new"]), (AGAIN, bound["again"]), (ASK, asked["ask"])):
        for cost in costs:
            series.add(f"{strategy}, {name}", cost / 1e3)


def _run(rig: Rig, first: int, count: int) -> dict[str, list[int]]:
    argv = [rig.interposer, "binds", str(first), str(count)]
    done = subprocess.run(argv, env={}, capture_output=True, text=True, check=True, timeout=30)
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found
