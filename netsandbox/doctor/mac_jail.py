"""Proves the jail on a Mac: the probe program runs in a folder of its own, where the window is all that it may have."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.strategies import FAIL

from netsandbox.backends.seatbelt.sandbox_exec import interpreter, interpreter_places
from netsandbox.doctor.jail import Finding, Probes, prove, run_settings, run_with
from netsandbox.doctor.mac_probes import mac_probes
from netsandbox.policy.file_rules import FileRules, PathRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.doctor.scene import Scene
    from netsandbox.policy.policy import Policy
    from netsandbox.settings import RunSettings

PORTS = 4


def mac_run_settings(scene: Scene) -> RunSettings:
    """With `fail` each bind outside of the window is refused and not rewritten, so that it can be judged.

    Our Python, which the probes are run by, may lie in the home directory, where only known toolchains are open.
    """
    python = tuple(PathRule(place, "netsandbox doctor") for place in interpreter_places())
    localhost = LocalhostSettings(strategy=FAIL, chosen=True, count=PORTS)
    return run_settings(scene, localhost, FileRules(allow_execute=python))


def run_on_mac(scene: Scene, policy: Policy, command: list[str], output: int) -> str | None:
    """The path of the session's log. Where the user stands may be no folder that a session is given."""
    with contextlib.chdir(scene.work):
        return run_with(mac_run_settings(scene), policy, command, output)


def prove_mac(
    run: Callable[[Scene, Policy, list[str], int], str | None] = run_on_mac,
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    library: bool,
) -> list[Finding]:
    """*library*: whether the session has the preload library."""

    def probes(scene: Scene) -> Probes:
        return mac_probes(scene, library=library, home=os.path.expanduser("~"))

    return prove(run=run, wanted=wanted, probes=probes, python=interpreter())
