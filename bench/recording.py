"""What the record of refused files costs: the same work in the same view, observed and not (unrecorded.py).

The launch, measured in the same way, is subtracted from both.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import place
from figures import Result, Series
from processes import timed
from rig import Rig

ON, OFF = "recorded", "not recorded"
NPM, GIT, PYTEST = "npm ci --offline", "git status of 20,000 files, ten times", "pytest, 400 tests in 40 files"
PACKAGES = ["express", "react", "eslint"]
FOLDERS, FILES = 200, 100
MODULES, TESTS = 40, 10
LIMIT = 1.1


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("recording of refused files")
    folder = place.WORK / "recording"
    works = {GIT: _git(folder / "git"), PYTEST: _pytest(folder / "pytest"), NPM: _npm(folder / "npm", result)}
    wall, cpu = Series(), Series()
    for name, argv in works.items():
        try:
            if argv is not None:
                _race(rig, rounds, name, argv, (wall, cpu))
        except RuntimeError as error:
            result.notes.append(f"left out: {error}")
    for series, unit in ((wall, "ms"), (cpu, "ms CPU")):
        for name in series.samples:
            result.compare(series, name, unit, name.replace(f", {ON}", f", {OFF}"), OFF)
    for name in works:
        result.aim(f"{name}, recorded against not", LIMIT, wall.ratio(f"{name}, {ON}", f"{name}, {OFF}"))
        result.aim(f"{name}, its CPU", LIMIT, cpu.ratio(f"{name}, {ON}", f"{name}, {OFF}"))
    return result


def _race(rig: Rig, rounds: int, name: str, argv: list[str], into: tuple[Series, Series]) -> None:
    """Every other round begins with the other one. *argv* begins with `env -C FOLDER`, which `true` needs too."""
    ways = {
        ON: [rig.product.command],
        OFF: [rig.product.python, "-I", "-S", str(place.BENCH / "unrecorded.py"), rig.product.main],
    }
    samples: dict[str, list[tuple[float, float]]] = {}
    for turn in range(rounds + 1):
        for way, product in sorted(ways.items(), reverse=bool(turn % 2)):
            for kind, command in (("launch", ["true"]), ("work", argv[3:])):
                timing = timed([*argv[:3], *product, "run", "-q", "--", *command], rig.environment)
                if timing.status:
                    raise RuntimeError(f"{name}, {way}: exit status {timing.status}")
                if turn:  # the first only warms caches
                    samples.setdefault(f"{way} {kind}", []).append((timing.seconds, timing.cpu))
    for number, series in enumerate(into):
        for way in ways:
            launch = median(sample[number] for sample in samples[f"{way} launch"])
            for sample in samples[f"{way} work"]:
                series.add(f"{name}, {way}", (sample[number] - launch) * 1e3)


def _git(folder: Path) -> list[str]:
    for number in range(FOLDERS):
        below = folder / f"folder-{number}"
        below.mkdir(parents=True)
        for name in range(FILES):
            (below / f"{name}.txt").write_text(f"{number} {name}\n")
    author = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "files"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    ten_times = "for turn in 1 2 3 4 5 6 7 8 9 10; do git status || exit; done"
    return ["env", "-C", str(folder), "sh", "-c", ten_times]


def _pytest(folder: Path) -> list[str]:
    folder.mkdir(parents=True)
    for number in range(MODULES):
        tests = (f"def test_{name}(tmp_path):\n    (tmp_path / 'a').write_text('a')\n" for name in range(TESTS))
        (folder / f"test_{number}.py").write_text("\n".join(tests))
    return ["env", "-C", str(folder), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def _npm(folder: Path, result: Result) -> list[str] | None:
    """The packages are fetched once, outside a session, and installed from the cache in the folder."""
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "bench", "version": "1.0.0"}\n')
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--cache", str(folder / "cache")]
    for words in (["install", *PACKAGES], ["ci"]):  # the second fills the cache with what only `ci` asks for
        fetch = ["npm", *words, *options]
        done = subprocess.run(fetch, cwd=folder, env=place.environment(), capture_output=True, check=False, timeout=120)
        if done.returncode:
            result.notes.append("npm left out: the packages could not be fetched")
            return None
    return ["env", "-C", str(folder), "npm", "ci", "--offline", *options]
