"""One large download: direct, and in a session by CONNECT and transparently; and what it costs the supervisor."""

from __future__ import annotations

import subprocess

from figures import Result, Series
from processes import cpu_seconds
from rig import Rig
from servers import BIG, ORIGIN

DIRECT = "direct"
GIGABYTE = 1e9
CURL = "curl -sS -f -o /dev/null --max-time 60 -w %{speed_download}"
DOOR = "http://127.0.0.1:1008"  # netsandbox/linux/ports.py


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("throughput of one connection, 1 GiB")
    port = rig.origin.port
    named, literal = f"http://{ORIGIN}:{port}/big", f"http://127.0.0.1:{port}/big"
    commands = {
        "CONNECT to a name, HTTP": f"{CURL} --noproxy '' -p -x {DOOR} {named}",
        "CONNECT to an address": f"{CURL} --noproxy '' -p -x {DOOR} {literal}",
        "absolute-form HTTP": f"{CURL} --noproxy '' -x {DOOR} {named}",
        "transparent": f"{CURL} --noproxy '*' {named}",
    }
    box = rig.box(rig.to_origin)
    speeds, costs = Series(), Series()
    _direct(literal)
    for _ in range(rounds):
        speeds.add(DIRECT, _direct(literal))
        for name, command in commands.items():
            before = cpu_seconds(box.pid)
            speeds.add(name, float(box.run(command) or 0) / GIGABYTE or None)
            costs.add(f"{name}, supervisor CPU", (cpu_seconds(box.pid) - before) / (BIG / GIGABYTE))
    result.table(speeds, "GB/s", DIRECT)
    result.table(costs, "s/GB")
    for name in commands:
        cost = costs.spread(f"{name}, supervisor CPU")
        result.aim(f"throughput ({name}) against direct", 0.9, speeds.ratio(name, DIRECT), at_least=True)
        result.aim(f"its processor time ({name})", 0.35, cost, "s/GB")
    return result


def _direct(url: str) -> float:
    command = [*CURL.split(), "--noproxy", "*", url]
    return float(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout) / GIGABYTE
