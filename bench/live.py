"""The published ports of the running sessions of a benchmark."""

from __future__ import annotations

import json
import subprocess
import time

from rig import Rig

PATIENCE = 10


def published(rig: Rig, count: int) -> list[dict[str, object]]:
    """The entries of `netsandbox ports --json`, once there are *count* of them or the time is over."""
    end = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run(
            [rig.product.command, "ports", "--json"],
            env=rig.environment, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        found: list[dict[str, object]] = json.loads(done.stdout)
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.05)
