"""Loads the rig for every test. The fixtures live in tests/rig, one noun a file."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from netsandbox import paths

pytest_plugins = [
    "tests.rig.own_home",
    "tests.rig.patience",
    "tests.rig.workshop",
    "tests.rig.account",
    "tests.rig.private_home",
    "tests.rig.certificates",
    "tests.rig.canary",
    "tests.rig.authority",
    "tests.rig.probes",
    "tests.rig.command",
    "tests.rig.leftovers",
    "tests.rig.world",
    "tests.rig.tools",
    "tests.rig.real_servers",
    "tests.rig.servers_inside",
    "tests.rig.namespaces",
    "tests.rig.vite",
    "tests.rig.signals",
    "tests.rig.skips",
    "tests.rig.failures",
    "tests.rig.heap",
    "tests.rig.pipe",
    "tests.rig.landlocked",
    "tests.rig.native_units",
]

_memory_home = paths.memory_home


def _memory_of_a_test() -> str:
    """Beside the state home of a test, if it has one: tests must not share what outlives a state home. It is set before
    any other module imports the function."""
    return f"{paths.state_home()}-memory" if os.environ.get("XDG_STATE_HOME") else _memory_home()


paths.memory_home = _memory_of_a_test

# `fast` is what everyone runs: the same examples each time, so that no change is blamed for an older bug. `deep` is
# `make fuzz`, which draws new ones. Deadlines would make a busy machine look like a bug.
settings.register_profile(
    "fast", max_examples=30, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
