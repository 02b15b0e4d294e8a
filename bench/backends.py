"""The broker backend beside the others: the launch of `true` against namespaces, and a connection against none."""

from __future__ import annotations

import subprocess

import place
from figures import Result, Series
from launch import ONE_DOMAIN, race
from processes import free_port
from rig import Rig

BARE = "bare"
CONNECTIONS = 2000
NAMES = ("namespaces", "broker")


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("backends: launch of `true`, and socket, connect and close on loopback")
    commands = {name: rig.product.run(["--backend", name, *ONE_DOMAIN], ["true"]) for name in NAMES}
    wall, cpu = race(commands, rig, rounds, result)
    result.table(wall, "ms", NAMES[0])
    result.table(cpu, "ms")
    connects = _connects(rig, rounds)
    result.table(connects, "µs", BARE)
    result.aim("launch by the broker against namespaces", 1.2, wall.ratio("broker", "namespaces"))
    result.aim("socket, connect and close by the broker against bare", 2.5, connects.ratio("in broker", BARE))
    return result


def _connects(rig: Rig, rounds: int) -> Series:
    """Microseconds of one connection to a server of the same session, every contestant once a round. The socket is made
    in the time taken: the broker makes it too."""
    program = place.WORK / "sockets"
    subprocess.run(["cc", "-O2", "-o", str(program), str(place.BENCH / "sockets.c")], check=True, timeout=60)
    boxes = {f"in {name}": rig.box(["--backend", name, "--allow-read", str(program)]) for name in NAMES}
    series = Series()
    for _ in range(rounds):
        words = f"{program} {free_port()} {CONNECTIONS}"
        bare = subprocess.run(words.split(), capture_output=True, text=True, check=True).stdout
        series.add(BARE, int(bare) / 1e3)
        for name, box in boxes.items():
            series.add(name, int(box.run(words)) / 1e3)
    return series
