"""Large policies: the time to load them and the time of one decision, in a process of the installed product."""

from __future__ import annotations

import json
import subprocess

import place
from figures import Result, Series
from rig import Rig

SIZES = (10_000, 100_000)


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("policy")
    loads, decisions = Series(), Series()
    probe = place.BENCH / "policy_probe.py"
    for _ in range(rounds):
        for size in SIZES:
            done = subprocess.run(
                [rig.product.python, str(probe), str(size)],
                env=rig.environment, capture_output=True, text=True, check=True, timeout=60,
            )  # fmt: skip
            figures = json.loads(done.stdout)
            loads.add(f"load, {size:,} rules", figures["load_s"])
            for kind, cost in figures["decide_us"].items():
                decisions.add(f"decide, {size:,} rules, {kind}", cost)
    result.table(loads, "s")
    result.table(decisions, "µs")
    slowest = [row.value.median for row in result.rows if row.name.startswith(f"decide, {SIZES[-1]:,}")]
    result.aim(f"loading {SIZES[-1]:,} rules", 0.3, loads.spread(f"load, {SIZES[-1]:,} rules"), "s")
    result.aim(f"one decision among {SIZES[-1]:,} rules", 5, max(slowest, default=None), "µs")
    return result
