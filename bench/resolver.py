"""Queries per second: cached names, compared with dnsmasq; and new names, each of which is decided and recorded."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import place
from box import Box
from figures import Result, Series
from processes import cpu_seconds
from rig import Rig

SECONDS = 2
NAMES = 64
COLD = 30_000
OURS, PEER = "netsandbox", "dnsmasq"


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("resolver")
    if place.find("dnsperf") is None:
        result.notes.append("dnsperf is not installed; bench/install-peers installs it")
        return result
    rates, costs = Series(), Series()
    box = rig.box(["--allow-domain", "**.allowed.test"])
    for kind in ("allowed", "denied"):
        box.run(f"{_dnsperf(53, _questions(kind))} -l 1")
    for _ in range(rounds):
        for kind in ("allowed", "denied"):
            arguments = f"-l {SECONDS}"
            before = cpu_seconds(box.pid)
            rate, count = _rate(box.run(f"{_dnsperf(53, _questions(kind))} {arguments}"))
            rates.add(f"{OURS}, {kind}", rate)
            costs.add(f"{OURS}, {kind}, CPU", (cpu_seconds(box.pid) - before) / count * 1e6 if count else None)
            if rig.dnsmasq is not None:
                rates.add(f"{PEER}, {kind}", _rate(_outside(rig.dnsmasq.port, kind, arguments))[0])
    _cold(rig, rounds, rates, costs)
    for name in rates.samples:
        result.compare(rates, name, "/s", name.replace(OURS, PEER))
    result.table(costs, "µs")
    for kind in ("allowed", "denied"):
        found = rates.ratio(f"{OURS}, {kind}", f"{PEER}, {kind}")
        result.aim(f"cached names ({kind}) against dnsmasq", 0.9, found, at_least=True)
        result.aim(f"cold names ({kind})", 18_000, rates.spread(f"{OURS}, cold, {kind}"), "/s", at_least=True)
    return result


def _cold(rig: Rig, rounds: int, rates: Series, costs: Series) -> None:
    """A new session each time. The rules are exact, because a wildcard allows only a hundred new names a minute."""
    policy = place.WORK / "cold.toml"
    names = ", ".join(f'"c{number}.allowed.test"' for number in range(COLD))
    policy.write_text(f"[network]\nallow_domains = [{names}]\n")
    for _ in range(min(rounds, 3)):
        for kind in ("allowed", "denied"):
            box: Box = rig.box(["--config", str(policy)])
            box.run(f"{_dnsperf(53, _questions(kind))} -l 0.2")
            before = cpu_seconds(box.pid)
            rate, count = _rate(box.run(f"{_dnsperf(53, _fresh(kind))} -n 1"))
            rates.add(f"{OURS}, cold, {kind}", rate)
            costs.add(f"{OURS}, cold, {kind}, CPU", (cpu_seconds(box.pid) - before) / count * 1e6 if count else None)
            box.stop()


def _questions(kind: str) -> Path:
    return _file(f"{kind}.txt", [f"h{number}.{kind}.test A" for number in range(NAMES)])


def _fresh(kind: str) -> Path:
    return _file(f"cold-{kind}.txt", [f"c{number}.{kind}.test A" for number in range(COLD)])


def _file(name: str, lines: list[str]) -> Path:
    path = place.PROJECT / name
    if not path.exists():
        path.write_text("\n".join(lines) + "\n")
    return path


def _dnsperf(port: int, questions: Path) -> str:
    return f"dnsperf -s 127.0.0.1 -p {port} -d {questions} -c 8 -T 1 -q 100"


def _outside(port: int, kind: str, arguments: str) -> str:
    command = f"{_dnsperf(port, _questions(kind))} {arguments}".split()
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def _rate(output: str) -> tuple[float | None, int]:
    """Answered queries per second and in total; None if many were lost."""
    rate = re.search(r"Queries per second:\s+([\d.]+)", output)
    completed = re.search(r"Queries completed:\s+(\d+) \(([\d.]+)%\)", output)
    if rate is None or completed is None or float(completed[2]) < 99:
        return None, 0
    return float(rate[1]), int(completed[1])
