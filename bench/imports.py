"""The modules that are imported before the command starts, and the cost of each (python -X importtime).

The command writes a mark to standard error, which also gets the interpreter's lines. Modules before the mark were
imported before exec.
"""

from __future__ import annotations

import subprocess

from figures import Result, Row, Spread
from launch import ONE_DOMAIN
from rig import Rig

MARK = "--exec--"
MODULES = 40


def modules(rig: Rig) -> list[tuple[str, int]]:
    """(module, its own microseconds) in the order of import, up to exec."""
    # As the native launcher starts it.
    ours = [rig.product.python, "-I", "-S", "-X", "importtime", rig.product.main]
    program = ["run", *ONE_DOMAIN, "--", "/bin/sh", "-c", f"echo {MARK} >&2"]
    done = subprocess.run(
        [*ours, *program], env=rig.environment, capture_output=True, text=True, check=True, timeout=30
    )
    found = []
    for line in done.stderr.partition(MARK)[0].splitlines():
        fields = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and fields[0].strip().isdigit():
            found.append((fields[2].strip(), int(fields[0])))
    return found


def measure(rig: Rig, rounds: int) -> Result:
    """The cheapest of *rounds* runs for each module: a module cannot be imported faster than that."""
    result = Result("imports on the path to exec (own cost, cheapest of the rounds)")
    cheapest: dict[str, int] = {}
    for _ in range(rounds):
        for name, cost in modules(rig):
            cheapest[name] = min(cost, cheapest.get(name, cost))
    ours = {name: cost for name, cost in cheapest.items() if name.startswith("netsandbox")}
    for name, cost in sorted(cheapest.items(), key=lambda entry: -entry[1]):
        result.rows.append(Row(name, Spread(cost / 1e3, cost / 1e3, cost / 1e3, 1), "ms"))
    result.aim("modules before exec", MODULES, len(cheapest), "modules")
    result.notes.append(f"{len(cheapest)} modules, {sum(cheapest.values()) / 1e3:.1f} ms in all")
    result.notes.append(f"{len(ours)} of them ours, {sum(ours.values()) / 1e3:.1f} ms")
    return result
