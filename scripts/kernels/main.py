"""Boots the cases one after the other and prints a line for each; the last line has the totals."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import machine
import product
from boot import PROCESSORS, boot
from cases import KERNELS, Case, chosen
from page import written
from verdict import FAILED, SKIPPED, Verdict, judge, totals

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernels.md"
NEEDED = ("mmdebstrap", "mke2fs", "depmod", "apt-cache")
SECONDS = 1200.0  # for one case


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="doctor and a smoke of the backends on other kernels")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--write", action="store_true", help="write what was seen into docs/kernels.md")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "kernels", help="where machines are kept")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="patience with one case")
    given = parser.parse_args(arguments)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    bench = Bench(given.folder.resolve(), given.seconds)
    verdicts = []
    for case in chosen(given.cases):
        verdicts.append(bench.verdict(case))
        print(verdicts[-1].line, flush=True)
    if given.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), verdicts), "utf-8")
    print(totals(verdicts))
    return int(any(verdict.status == FAILED for verdict in verdicts))


class Bench:
    """The machines of a run; each is built, and the product installed, when the first case needs it."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._installed: dict[str, Path] = {}

    def verdict(self, case: Case) -> Verdict:
        kernel = KERNELS[case.kernel]
        lacking = [name for name in (*NEEDED, PROCESSORS[kernel.architecture][0]) if shutil.which(name) is None]
        if lacking:
            why = f"{', '.join(lacking)} missing; run `scripts/install-deps kernels`"
            return Verdict(case, SKIPPED, "", "not run", {}, (why,))
        prefix = self._product(kernel.architecture)
        work = self._folder / "cases" / case.name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        product.pack(prefix, case, work / "payload")
        booted = machine.machine(kernel.architecture, kernel.release, self._folder / kernel.architecture)
        result = boot(booted, case.options, work, self._seconds)
        (work / "payload").unlink()
        return judge(case, result)

    def _product(self, architecture: str) -> Path:
        if architecture not in self._installed:
            releases = {each.release for each in KERNELS.values() if each.architecture == architecture}
            machine.build(architecture, releases, self._folder / architecture)
            folder = self._folder / "product" / architecture
            self._installed[architecture] = product.install(architecture, folder)
        return self._installed[architecture]
