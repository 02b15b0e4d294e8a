"""connect() and close() on loopback: with and without the preload library, in turns, in one process."""

from __future__ import annotations

import json
import subprocess
from statistics import median

import place
from figures import Result, Series
from processes import free_port
from rig import Rig

BLOCKS = 40  # of fifty connections each
ANY, DEVICE = "0.0.0.0", "127.84.32.1"
BY_DEVICE, BY_PORT = 2, 3  # NS_STRATEGY_… of interpose/src/portmap.h
ASKED = 3000
WINDOW, WIDEST = 100, 4096
BARE, CONTROL = "bare, outside", "control: without the library"
PAST = "past the library"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("connect() and close() under the interposer")
    cases = {name: _prepared(rig, number, *case) for number, (name, case) in enumerate(_cases().items())}
    boxes = {
        f"in a session, {strategy}": rig.box(["--network-strategy", strategy, "--rewrite-engine", "preload"])
        for strategy in ("rewire-port", "rewire-device")
    }
    blocks, sessions = Series(), Series()
    for _ in range(rounds):
        port = free_port()
        bare = _run([rig.interposer, "connects", "127.0.0.1", str(port), "127.0.0.1", str(port), str(BLOCKS)], {})
        _note(blocks, CONTROL, bare)
        sessions.add(BARE, median(bare["real"]) / 1e3)
        for name, (words, environment) in cases.items():
            _note(blocks, name, _run([rig.interposer, "connects", *words, str(BLOCKS)], environment))
        for name, box in boxes.items():
            found = json.loads(box.run(f"{rig.interposer} inside {ASKED} {BLOCKS}"))
            _note(blocks, name, found)
            sessions.add(f"{name}, by the library", median(found["hooked"]) / 1e3)
    for name in (CONTROL, *cases, *boxes):
        result.compare(blocks, name, "µs", f"{name}, {PAST}", PAST)
    result.table(sessions, "µs", BARE)
    for name in (*cases, *boxes):
        result.aim(f"connect and close ({name})", 1.1, blocks.ratio(name, f"{name}, {PAST}"))
    return result


def _cases() -> dict[str, tuple[int, str, int, int | None]]:
    """Strategy, device, ports in the window, and the slot of the port that is connected to."""
    return {
        "rewire-port, mapped": (BY_PORT, ANY, WINDOW, ASKED % WINDOW),
        "rewire-port, not mapped": (BY_PORT, ANY, WINDOW, None),
        "rewire-device": (BY_DEVICE, DEVICE, WINDOW, None),
        f"rewire-port, mapped last of {WIDEST:,}": (BY_PORT, ANY, WIDEST, WIDEST - 1),
        f"rewire-port, not mapped, {WIDEST:,} slots": (BY_PORT, ANY, WIDEST, None),
    }


def _prepared(
    rig: Rig, number: int, strategy: int, device: str, count: int, slot: int | None
) -> tuple[list[str], dict[str, str]]:
    """The addresses to listen on and to connect to, and the environment with the port map between them."""
    port = free_port()
    base = port - (slot or 0)
    listener = [device if strategy == BY_DEVICE else "127.0.0.1", str(port)]
    pairs = [] if slot is None else [f"{port}={ASKED}"]
    path = place.WORK / f"port-map-{number}"
    if slot is None:  # a window in which the port is not
        base = 20_000
    probe = [rig.product.python, str(place.BENCH / "port_map_probe.py"), str(path), str(strategy), device]
    subprocess.run([*probe, str(base), str(count), *pairs], env=rig.environment, check=True, timeout=30)
    environment = {"LD_PRELOAD": rig.product.preload_library, "NETSANDBOX_PORT_MAP": str(path)}
    return [*listener, "127.0.0.1", str(ASKED if pairs else port)], environment


def _run(argv: list[str], environment: dict[str, str]) -> dict[str, list[int]]:
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


def _note(series: Series, name: str, found: dict[str, list[int]]) -> None:
    for hooked, real in zip(found["hooked"], found["real"], strict=True):
        series.add(name, hooked / 1e3)
        series.add(f"{name}, {PAST}", real / 1e3)
