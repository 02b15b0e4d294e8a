"""The command line of the benchmarks: the measurements, the number of rounds, and the output files."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import backends
import configuration
import crowd
import growth
import imports
import inspected_npm
import inspection
import interposer
import launch
import mapping
import memory
import notice
import npm
import place
import policy
import publishing
import recording
import report
import request
import resolver
import throughput
import tunnels
from figures import Result
from rig import Rig

# In this order; the rounds keep a run of everything under a quarter of an hour on two cores.
MEASUREMENTS: dict[str, tuple[Callable[[Rig, int], Result], int]] = {
    "launch": (launch.measure, 25),
    "backends": (backends.measure, 10),
    "configuration": (configuration.measure, 25),
    "imports": (imports.measure, 5),
    "request": (request.measure, 10),
    "tunnels": (tunnels.measure, 5),
    "throughput": (throughput.measure, 5),
    "resolver": (resolver.measure, 5),
    "npm": (npm.measure, 3),
    "inspection": (inspection.measure, 5),
    "inspected-npm": (inspected_npm.measure, 5),
    "recording": (recording.measure, 5),
    "memory": (memory.measure, 2),
    "policy": (policy.measure, 3),
    "growth": (growth.measure, 3),
    "interposer": (interposer.measure, 5),
    "mapping": (mapping.measure, 5),
    "publishing": (publishing.measure, 5),
    "notice": (notice.measure, 3),
    "crowd": (crowd.measure, 3),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run", description="Measures netsandbox beside its peers.")
    parser.add_argument(
        "what", nargs="*", default=["all"], metavar="what", help=f"all, or some of: {', '.join(MEASUREMENTS)}"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="instead of each measurement's own number")
    parser.add_argument("--json", type=_path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--tables", type=_path, metavar="FILE", help="and there as the tables of docs/performance.md")
    parser.add_argument("--no-install", action="store_true", help="compare with the peers that are here already")
    parser.add_argument("--against", metavar="COMMIT", help="the launch of this commit beside the present one")
    chosen = parser.parse_args()
    names = list(MEASUREMENTS) if "all" in chosen.what else chosen.what
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        parser.error(f"no such measurement: {', '.join(unknown)}")
    if not chosen.no_install:
        subprocess.run([str(place.BENCH / "install-peers")], check=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the servers are stopped on the way out
    results = run(names, chosen.rounds, chosen.against)
    report.summary(results)
    if chosen.json:
        report.save(chosen.json, results)
    if chosen.tables:
        chosen.tables.write_text(report.tables(results))
    return 0


def _path(text: str) -> Path:
    """Of the caller's folder, which a run leaves."""
    return Path(text).absolute()


def run(names: list[str], rounds: int | None, against: str | None) -> list[Result]:
    print(", ".join(f"{name} {value}" for name, value in report.machine().items()), flush=True)
    results = []
    with Rig(against) as rig:
        for name in names:
            measurement, own_rounds = MEASUREMENTS[name]
            began = time.monotonic()
            result = _guarded(name, measurement, rig, rounds or own_rounds)
            rig.stop_boxes()
            result.notes.append(f"took {time.monotonic() - began:.0f} s")
            report.show(result)
            results.append(result)
    return results


def _guarded(name: str, measurement: Callable[[Rig, int], Result], rig: Rig, rounds: int) -> Result:
    """A measurement that fails must not stop the others; it has no figures and a note with the reason."""
    try:
        return measurement(rig, rounds)
    except (OSError, LookupError, ValueError, RuntimeError, subprocess.SubprocessError) as error:
        return Result(name, notes=[f"broke off: {error}"])
