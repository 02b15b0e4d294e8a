"""A launch and one small request. This includes the work that a launch defers until the first connection."""

from __future__ import annotations

import place
from figures import Result
from launch import OURS, SRT, race
from rig import Rig
from servers import ORIGIN

BARE = "bare curl"
CURL = ["curl", "-sS", "-f", "-o", "/dev/null"]


def contestants(rig: Rig) -> dict[str, list[str]]:
    port = rig.origin.port
    literal = f"http://127.0.0.1:{port}/small"
    named = f"http://{ORIGIN}:{port}/small"
    found = {
        BARE: [*CURL, literal],
        OURS: rig.product.run(rig.to_origin, [*CURL, named]),
        f"{OURS}, no proxy variables": rig.product.run([*rig.to_origin, "--no-proxy-env"], [*CURL, named]),
    }
    if srt := place.srt(["127.0.0.1", "localhost"]):
        found[SRT] = [*srt, " ".join([*CURL, "--noproxy", "''", "-p", literal])]
    return found


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("launch and one request through a door")
    wall, cpu = race(contestants(rig), rig, rounds, result)
    result.table(wall, "ms", OURS)
    result.table(cpu, "ms")
    result.aim("launch and a request against srt", 0.15, wall.ratio(OURS, SRT))
    return result
