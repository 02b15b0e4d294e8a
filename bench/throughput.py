"""One large download: direct, by a bare splice relay in C, and in a session by CONNECT and transparently.

On two cores no relay is faster than the one in C, so ours is compared with it. The supervisor's processor time is
measured too.
"""

from __future__ import annotations

import subprocess

from figures import Result, Series
from processes import cpu_seconds
from rig import Rig
from servers import BIG, ORIGIN

DIRECT, DIRECT_TLS, SQUID = "direct", "direct, TLS", "squid, CONNECT to an address"
RELAY, RELAY_TLS = "a relay in C", "a relay in C, TLS"
GIGABYTE = 1e9
CURL = "curl -sS -f -k -o /dev/null --max-time 60 -w %{speed_download}"
DOOR = "http://127.0.0.1:1008"  # portmap/netsandbox_portmap/__init__.py


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("throughput of one connection, 1 GiB")
    port, secure = rig.origin.port, rig.origin.secure
    direct = {DIRECT: f"http://127.0.0.1:{port}/big", DIRECT_TLS: f"https://127.0.0.1:{secure}/big"}
    outside = {
        **direct,
        RELAY: f"http://127.0.0.1:{rig.relay_to(port)}/big",
        RELAY_TLS: f"https://127.0.0.1:{rig.relay_to(secure)}/big",
    }
    commands = {
        "CONNECT to an address": (f"-p -x {DOOR} http://127.0.0.1:{port}/big", RELAY),
        "CONNECT to a name, TLS": (f"-p -x {DOOR} https://{ORIGIN}:{secure}/big", RELAY_TLS),
        "transparent, TLS": (f"https://{ORIGIN}:{secure}/big", RELAY_TLS),
        "CONNECT to a name, HTTP": (f"-p -x {DOOR} http://{ORIGIN}:{port}/big", RELAY),
        "absolute-form HTTP": (f"-x {DOOR} http://{ORIGIN}:{port}/big", RELAY),
        "transparent, HTTP": (f"http://{ORIGIN}:{port}/big", RELAY),
    }
    box = rig.box([*rig.to_origin, "--no-proxy-env"])
    speeds, costs = Series(), Series()
    for turn in range(rounds + 1):
        for name, url in outside.items():
            speed = _outside(url)
            if turn:  # the first turn only fills the page cache
                speeds.add(name, speed)
        if rig.squid is not None and turn:
            before = cpu_seconds(rig.squid.server.pid)
            speeds.add(SQUID, _outside(direct[DIRECT], f"http://127.0.0.1:{rig.squid.port}"))
            costs.add(f"{SQUID}, CPU", (cpu_seconds(rig.squid.server.pid) - before) / (BIG / GIGABYTE))
        for name, (words, _) in commands.items() if turn else ():
            before = cpu_seconds(box.pid)
            speeds.add(name, float(box.run(f"{CURL} {words}") or 0) / GIGABYTE or None)
            costs.add(f"{name}, supervisor CPU", (cpu_seconds(box.pid) - before) / (BIG / GIGABYTE))
    for name in speeds.samples:
        result.compare(speeds, name, "GB/s", commands[name][1] if name in commands else DIRECT)
    result.table(costs, "s/GB")
    for name, (_, baseline) in commands.items():
        cost = costs.spread(f"{name}, supervisor CPU")
        result.aim(f"throughput ({name}) against {baseline}", 0.95, speeds.ratio(name, baseline), at_least=True)
        result.aim(f"its processor time ({name})", 0.3, cost, "s/GB")
    return result


def _outside(url: str, proxy: str | None = None) -> float:
    """Outside any session; by CONNECT where a proxy is given."""
    way = ["--noproxy", "", "-p", "-x", proxy] if proxy else ["--noproxy", "*"]
    done = subprocess.run([*CURL.split(), *way, url], capture_output=True, text=True, timeout=60, check=True)
    return float(done.stdout) / GIGABYTE
