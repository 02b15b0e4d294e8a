"""The time that configuration files, detection and profiles add to a warm launch of `true`."""

from __future__ import annotations

from pathlib import Path

import place
from figures import Result, Series
from processes import timed
from rig import Rig

NONE = "--no-config"
EMPTY, DETECTED, PROJECT = "an empty folder", "a folder with package.json", "that, a trusted file and yours"
USER_FILE = '[network]\ndeny_domains = ["telemetry.example.com"]\n[shell]\ndeny_env = ["KUBE*"]\n'
PROJECT_FILE = '[sandbox]\nprofiles = ["node"]\n[network]\nallow_domains = ["example.com", "*.example.org"]\n'


def measure(rig: Rig, rounds: int) -> Result:
    """Milliseconds more than the same launch with --no-config, round by round: the first launch reads, these do not."""
    result = Result("a warm launch with configuration")
    extra = Series()
    folders = _folders(rig)
    for folder, environment in folders.values():
        for _ in range(2):
            _launch(rig, folder, environment)
    for _ in range(rounds):
        for name, (folder, environment) in folders.items():
            bare, full = _launch(rig, folder, environment, NONE), _launch(rig, folder, environment)
            extra.add(name, None if bare is None or full is None else full - bare)
    result.table(extra, "ms")
    for name in folders:
        result.aim(f"configuration ({name})", 3, extra.spread(name), "ms")
    return result


def _folders(rig: Rig) -> dict[str, tuple[Path, dict[str, str]]]:
    found = {}
    for number, name in enumerate((EMPTY, DETECTED, PROJECT)):
        home = place.WORK / f"configuration-{number}"
        folder = home / "project"
        folder.mkdir(parents=True)
        environment = {
            **rig.environment,
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
        }
        if name != EMPTY:
            (folder / "package.json").write_text("{}")
        if name == PROJECT:
            (home / "config" / "netsandbox").mkdir(parents=True)
            (home / "config" / "netsandbox" / "config.toml").write_text(USER_FILE)
            (folder / ".netsandbox.toml").write_text(PROJECT_FILE)
            trust = ["env", "-C", str(folder), rig.product.command, "trust", "--yes"]
            for words in ([str(home / "config" / "netsandbox")], []):  # a session could have written there before
                timed([*trust, *words], environment)
        found[name] = (folder, environment)
    return found


def _launch(rig: Rig, folder: Path, environment: dict[str, str], *options: str) -> float | None:
    """By env(1), which changes the folder and becomes netsandbox; None if it failed."""
    argv = ["env", "-C", str(folder), rig.product.command, "run", *options, "--allow-domain", "example.com"]
    timing = timed([*argv, "--", "true"], environment)
    return None if timing.status else timing.seconds * 1e3
