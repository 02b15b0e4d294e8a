"""The supervisor's memory with a thousand idle tunnels."""

from __future__ import annotations

import subprocess

from figures import Result, Series
from processes import proportional_megabytes, stop_group
from rig import Rig
from servers import ORIGIN

TUNNELS = 1000
DOOR = 1008  # portmap/netsandbox_portmap/__init__.py


def measure(rig: Rig, rounds: int) -> Result:
    result = Result(f"memory of the supervisor, {TUNNELS} idle tunnels")
    hosts = {"idle, before any connection": None, "to an address": "127.0.0.1", "to a name, HTTP": ORIGIN}
    series = Series()
    for _ in range(rounds):
        for name, host in hosts.items():
            series.add(name, _weigh(rig, host, result))
    result.table(series, "MB PSS")
    worst = max((row.value.median for row in result.rows), default=None)
    result.aim(f"supervisor with {TUNNELS} idle tunnels", 40, worst, "MB PSS")
    return result


def _weigh(rig: Rig, host: str | None, result: Result) -> float | None:
    hold = [rig.load, "hold", str(DOOR), host or "127.0.0.1", str(rig.origin.port), str(TUNNELS if host else 0)]
    process = subprocess.Popen(
        rig.product.run(rig.to_origin, hold),
        env=rig.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        held = int(process.stdout.readline().split()[-1])
        if host and held != TUNNELS:
            result.notes.append(f"only {held} tunnels were held")
            return None
        return proportional_megabytes(process.pid)
    finally:
        stop_group(process)
