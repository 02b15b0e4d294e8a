"""How long `true` takes: bare, by the interpreter alone, in a session, and in the peers' sandboxes; and `ps`."""

from __future__ import annotations

import subprocess

import place
from figures import Result, Series
from processes import timed
from rig import Rig

OURS = "netsandbox"
INTERPRETER = "python -I -S -c pass"
CODEX = "codex (native)"
SRT = "srt"
BEFORE = "netsandbox, the other commit"
NO_LOCALHOST = "netsandbox --no-publish"
PS = "netsandbox ps, no session"
ONE_DOMAIN = ["--allow-domain", "example.com"]
EMPTY, REPOSITORY = "an empty folder", "a repository of 50 folders, its .venv/bin on PATH"
OPEN, DOT_FOLDERS = "an empty folder, --files open", "an empty folder, 500 dot folders in the home"


def contestants(rig: Rig) -> dict[str, list[str]]:
    found = {
        "bare": ["/bin/true"],
        INTERPRETER: [rig.product.python, "-I", "-S", "-c", "pass"],
        OURS: [rig.product.command, "run", *ONE_DOMAIN, "--", "true"],
        PS: [rig.product.command, "ps"],
        NO_LOCALHOST: [rig.product.command, "run", "--no-publish", *ONE_DOMAIN, "--", "true"],
    }
    if rig.before is not None:
        apart = f"XDG_STATE_HOME={place.CACHE}/state/before"  # an older version may not share the state of this one
        found[BEFORE] = ["env", apart, rig.before.command, "run", *ONE_DOMAIN, "--", "true"]
    if bwrap := place.find("bwrap"):
        view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        found["bwrap"] = [bwrap, *view, "--unshare-user", "--unshare-pid", "--unshare-net", "true"]
    if codex := place.codex():
        found[CODEX] = [codex, "sandbox", "--", "true"]
    if srt := place.srt(["example.com"]):
        found[SRT] = [*srt, "true"]
    return found


def places(rig: Rig) -> dict[str, list[str]]:
    """The same launch in other folders and homes, by env(1), which becomes netsandbox."""
    folder, home = place.WORK / "launch", place.WORK / "homes"
    empty, repository = folder / "empty", folder / "repository"
    for made in (empty, repository, repository / ".venv/bin", home / "few", home / "many"):
        made.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for number in range(50):
        (repository / f"folder-{number}" / "below").mkdir(parents=True)
    for number in range(500):
        (home / "many" / f".folder-{number}").mkdir()
    path = f"PATH={repository}/.venv/bin:{rig.environment['PATH']}"
    launch = [rig.product.command, "run", *ONE_DOMAIN]
    return {
        EMPTY: ["env", "-C", str(empty), f"HOME={home}/few", *launch, "--", "true"],
        REPOSITORY: ["env", "-C", str(repository), f"HOME={home}/few", path, *launch, "--", "true"],
        OPEN: ["env", "-C", str(empty), f"HOME={home}/few", *launch, "--files", "open", "--", "true"],
        DOT_FOLDERS: ["env", "-C", str(empty), f"HOME={home}/many", *launch, "--", "true"],
    }


def race(commands: dict[str, list[str]], rig: Rig, rounds: int, result: Result) -> tuple[Series, Series]:
    """Milliseconds of wall time and of processor time, every command once a round."""
    wall, cpu = Series(), Series()
    commands = {name: argv for name, argv in commands.items() if _works(name, argv, rig, result)}
    for _ in range(rounds):
        for name, argv in commands.items():
            timing = timed(argv, rig.environment)
            wall.add(name, None if timing.status else timing.seconds * 1e3)
            cpu.add(f"{name}, CPU", None if timing.status else timing.cpu * 1e3)
    return wall, cpu


def _works(name: str, argv: list[str], rig: Rig, result: Result) -> bool:
    """Twice before the first round: files in the cache, and no failure in the figures."""
    statuses = [timed(argv, rig.environment).status for _ in range(2)]
    if statuses[-1] == 0:
        return True
    result.notes.append(f"{name} left out: exit status {statuses[-1]}")
    return False


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("launch of `true`, one allowed domain")
    wall, cpu = race(contestants(rig), rig, rounds, result)
    result.table(wall, "ms", OURS)
    result.table(cpu, "ms")
    result.aim("launch against codex native", 0.55, wall.ratio(OURS, CODEX))
    if before := wall.ratio(OURS, BEFORE):
        result.notes.append(f"against the other commit: {before.median:.3g} x ({before.low:.3g} to {before.high:.3g})")
    result.aim("launch against python -I -S", 2.5, wall.ratio(OURS, INTERPRETER))
    result.aim("ps against python -I -S", 4, wall.ratio(PS, INTERPRETER))
    wall, cpu = race(places(rig), rig, rounds, result)
    result.table(wall, "ms", EMPTY)
    result.table(cpu, "ms")
    result.aim("launch in the default mode against --files open", 1.1, wall.ratio(EMPTY, OPEN))
    result.aim("launch with 500 dot folders in the home against none", 1.05, wall.ratio(DOT_FOLDERS, EMPTY))
    return result
