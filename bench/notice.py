"""The time from listen() in a session until the host can connect."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from typing import IO

from figures import Result, Series
from processes import stop_group
from rig import Rig

FIRST, PORTS = 3000, 20
WINDOW = 100  # a port P of the session is at base + P % 100 when that is free
PATIENCE = 3
PROMISE_MS = 100
KINDS = {
    "isolate": [],
    "rewire-port, kernel": ["--network-strategy", "rewire-port"],
    "rewire-port, preload": ["--network-strategy", "rewire-port", "--rewrite-engine", "preload"],
}


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("from listen() in a session to connect() on the host")
    series = Series()
    for _ in range(rounds):
        for kind, options in KINDS.items():
            first, *others = _listen(rig, options)
            series.add(f"{kind}, first of a session", first)
            for latency in others:
                series.add(kind, latency)
    result.table(series, "ms")
    for name, samples in series.samples.items():
        found = [sample for sample in samples if sample is not None]
        if len(found) < len(samples):
            result.notes.append(f"{name}: {len(samples) - len(found)} of {len(samples)} were never let in")
        result.aim(f"the slowest of {len(found)} ({name})", PROMISE_MS, max(found, default=None), "ms")
    return result


def _listen(rig: Rig, options: list[str]) -> list[float | None]:
    command = ["/bin/sh", "-c", f"echo $LISTENING_BASE_PORT; exec {rig.stream} listen"]
    with ExitStack() as stack:
        process = subprocess.Popen(
            rig.product.run(options, command),
            env=rig.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        stack.callback(stop_group, process)
        assert process.stdin is not None
        assert process.stdout is not None
        base = int(process.stdout.readline())
        ports = range(FIRST, FIRST + PORTS)
        return [_one(rig, process.stdin, process.stdout, port, base + port % WINDOW) for port in ports]


def _one(rig: Rig, asking: IO[bytes], told: IO[bytes], port: int, outside: int) -> float | None:
    """Milliseconds; None if no connection succeeded. The client tries to connect before there is a listener."""
    with subprocess.Popen(
        [rig.stream, "knock", "127.0.0.1", str(outside), str(PATIENCE)], env={}, stdout=subprocess.PIPE
    ) as client:
        asking.write(b"%d\n" % port)
        asking.flush()
        listened = int(told.readline())
        answer = client.communicate(timeout=PATIENCE + 5)[0]
    return max(0, int(answer) - listened) / 1e6 if answer else None
