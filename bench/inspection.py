"""Inspection beside mitmdump, and beside a session without inspection: the same client, the same server, by CONNECT."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import place
from figures import Result, Series, Spread
from launch import race
from processes import cpu_seconds, proportional_megabytes, stop_group
from rig import Rig
from servers import ORIGIN

DOOR = 1008  # portmap/netsandbox_portmap/__init__.py
PLAIN, OURS, MITMDUMP = "without inspection", "inspected", "mitmdump"
HELD = 500
SECONDS = 3
LOADS = {  # words for tls_load: kind, path, how many at once; and the figure
    "requests, 8 connections": ("requests", "/small", 8, "per_second", "/s"),
    "new TLS connections, 8 at once": ("connections", "/small", 8, "per_second", "/s"),
    "one large body": ("requests", "/middle", 1, "megabytes_per_second", "MB/s"),
}
REQUESTS, CONNECTIONS, BODY = LOADS


class Contestant(NamedTuple):
    """*run* runs a command where the proxy is; *pids* are the processes that do the work."""

    port: int
    target: str
    run: Callable[[str], str]
    pids: Callable[[], list[int]]


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("inspection beside mitmdump")
    trust = {"SSL_CERT_FILE": str(rig.origin.certificate)}
    place_of = f"{ORIGIN}:{rig.origin.secure}"
    mitmdump = rig.mitmdump  # before the first session: it installs what inspection needs
    inspects = [*rig.to_origin, "--inspect", place_of]
    plain, inspected = rig.box(rig.to_origin, trust), rig.box(inspects, trust)
    outside = f"127.0.0.1:{rig.origin.secure}"
    contestants = {
        PLAIN: Contestant(DOOR, place_of, plain.run, lambda: [plain.pid]),
        OURS: Contestant(DOOR, place_of, inspected.run, lambda: [inspected.pid, *engine(inspected.pid)]),
        MITMDUMP: Contestant(mitmdump.port, outside, _outside, lambda: [mitmdump.server.pid]),
    }
    _load(rig, rounds, result, contestants, place_of)
    _memory(rig, result, contestants, place_of)
    _launch(rig, rounds * 3, result, inspects, place_of)
    return result


def _load(rig: Rig, rounds: int, result: Result, contestants: dict[str, Contestant], place_of: str) -> None:
    rates, costs = Series(), Series()
    for turn in range(rounds + 1):
        for kind, (word, path, at_once, figure, _) in LOADS.items():
            for name, (port, target, run, pids) in contestants.items():
                before = sum(map(cpu_seconds, pids()))
                output = run(f"{rig.tls_load} {word} {port} {target} {place_of} {path} {at_once} {SECONDS}")
                figures = json.loads(output) if output.strip() else {"good": 0, "failed": 1}
                sound = bool(figures["good"]) and not figures["failed"]
                if not turn:  # the first turn only warms
                    continue
                if not sound:
                    result.notes.append(f"{name}, {kind}: {figures}; the round is left out")
                rates.add(f"{name}, {kind}", figures[figure] if sound else None)
                spent = (sum(map(cpu_seconds, pids())) - before) * 1e3
                costs.add(f"{name}, {kind}, CPU", spent / figures["good"] if sound else None)
    for kind, (*_, unit) in LOADS.items():
        for name in contestants:
            result.compare(rates, f"{name}, {kind}", unit, f"{MITMDUMP}, {kind}", MITMDUMP)
    for kind in (REQUESTS, CONNECTIONS):
        for name in contestants:
            result.compare(costs, f"{name}, {kind}, CPU", "ms each")

    for kind, limit in ((REQUESTS, 3.0), (CONNECTIONS, 2.5), (BODY, 1.5)):
        found = rates.ratio(f"{OURS}, {kind}", f"{MITMDUMP}, {kind}")
        result.aim(f"inspected: {kind} against mitmdump", limit, found, at_least=True)
    result.aim("inspected: CPU of a request", 1.0, costs.spread(f"{OURS}, {REQUESTS}, CPU"), "ms")


def _memory(rig: Rig, result: Result, contestants: dict[str, Contestant], place_of: str) -> None:
    series = Series()
    for name in (OURS, MITMDUMP):
        port, target, _, pids = contestants[name]
        command = [rig.tls_load, "hold", str(port), target, place_of, "/small", str(HELD), "-"]
        environment = {**rig.environment, "SSL_CERT_FILE": str(rig.origin.certificate)}
        if name == OURS:
            command = rig.product.run([*rig.to_origin, "--inspect", place_of], command)
        held = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            assert held.stdout is not None
            said = held.stdout.readline().strip()
            if said == f"held {HELD}":
                found = engine(held.pid) if name == OURS else pids()
                series.add(f"{name}, {HELD} connections held", sum(map(proportional_megabytes, found)))
            else:
                result.notes.append(f"{name}: {said or 'none'} of {HELD} connections")
        finally:
            stop_group(held)  # type: ignore[arg-type]
    result.table(series, "MB PSS")
    result.aim(f"the engine with {HELD} connections", 60, series.spread(f"{OURS}, {HELD} connections held"), "MB PSS")


def _launch(rig: Rig, rounds: int, result: Result, inspects: list[str], place_of: str) -> None:
    """`true` needs no engine; curl needs it at once, and trusts anybody, so that it is the same in both sessions."""
    trusting = ["env", f"SSL_CERT_FILE={rig.origin.certificate}"]
    commands = {"true": ["true"], "curl": ["curl", "-sS", "-k", "-f", "-o", "/dev/null", f"https://{place_of}/small"]}
    sessions = {PLAIN: rig.to_origin, OURS: inspects}
    wall, cpu = race(
        {
            f"`{word}`, {name}": [*trusting, *rig.product.run(options, command)]
            for word, command in commands.items()
            for name, options in sessions.items()
        },
        rig, rounds, result,
    )  # fmt: skip
    for word in commands:
        for name in sessions:
            result.compare(wall, f"`{word}`, {name}", "ms", f"`{word}`, {PLAIN}", PLAIN)
    result.table(cpu, "ms")
    pairs = zip(wall.samples[f"`true`, {OURS}"], wall.samples[f"`true`, {PLAIN}"], strict=True)
    added = [ours - plain for ours, plain in pairs if ours is not None and plain is not None]
    result.aim("what inspection adds to the launch of `true`", 20, Spread.of(added) if added else None, "ms")
    result.aim("launch until a first inspected answer", 400, wall.spread(f"`curl`, {OURS}"), "ms")


def engine(supervisor: int) -> list[int]:
    """The engine's two processes: its first, and the worker that serves."""
    for pid in _children(supervisor):
        if b"inspect.engine" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return [pid, *_children(pid)]
    raise LookupError("the session has no engine")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _outside(command: str) -> str:
    return subprocess.run(
        command.split(), env=place.environment(), capture_output=True, text=True, timeout=60, check=False
    ).stdout
