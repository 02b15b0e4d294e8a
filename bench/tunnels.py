"""New CONNECT tunnels, sixteen at once, one exchange in each: in a session through our door, and outside through squid.

Three kinds: to a name, with a ClientHello whose SNI is checked (what a package manager does); to a name, with plain
HTTP, whose Host is checked in every request; to an address, where nothing is left to check.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from figures import Result, Series
from processes import cpu_seconds
from rig import Rig
from servers import ORIGIN

AT_ONCE = 16
TOTAL = 8000
DOOR = 1008  # portmap/netsandbox_portmap/__init__.py
SQUID = "squid"
OURS = "netsandbox"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result(f"new tunnels, {AT_ONCE} at once")
    kinds = {
        "name, TLS": f"{ORIGIN} {rig.origin.alert} hello",
        "name, HTTP": f"{ORIGIN} {rig.origin.port} get",
        "address": f"127.0.0.1 {rig.origin.port} get",
    }
    box = rig.box(rig.to_origin)
    rates, middles, tails, costs = Series(), Series(), Series(), Series()
    for _ in range(rounds):
        for kind, words in kinds.items():
            runs: list[tuple[str, int, int, Callable[[str], str]]] = [(f"{OURS}, {kind}", box.pid, DOOR, box.run)]
            if rig.squid is not None:
                runs.append((f"{SQUID}, {kind}", rig.squid.server.pid, rig.squid.port, _outside))
            for name, pid, port, run in runs:
                before = cpu_seconds(pid)
                output = run(f"{rig.load} tunnels {port} {words} {AT_ONCE} {TOTAL}")
                figures = json.loads(output) if output.strip() else {"failed": TOTAL}
                sound = figures["failed"] <= TOTAL // 1000
                rates.add(name, figures["per_second"] if sound else None)
                middles.add(f"{name}, p50", figures["p50_ms"] if sound else None)
                tails.add(f"{name}, p99", figures["p99_ms"] if sound else None)
                costs.add(f"{name}, CPU", (cpu_seconds(pid) - before) / TOTAL * 1e6 if sound else None)
                if not sound:
                    result.notes.append(f"{name}: {figures['failed']} of {TOTAL} failed in a round, which is left out")
    for name in rates.samples:
        result.compare(rates, name, "/s", name.replace(OURS, SQUID))
    result.table(middles, "ms")
    result.table(tails, "ms")
    result.table(costs, "µs each")
    for kind in kinds:
        rate = rates.ratio(f"{OURS}, {kind}", f"{SQUID}, {kind}")
        tail = tails.ratio(f"{OURS}, {kind}, p99", f"{SQUID}, {kind}, p99")
        result.aim(f"new tunnels ({kind}) against squid", 1.0, rate, at_least=True)
        result.aim(f"their p99 ({kind}) against squid", 1.0, tail)
    return result


def _outside(command: str) -> str:
    return subprocess.run(command.split(), capture_output=True, text=True, timeout=60, check=False).stdout
