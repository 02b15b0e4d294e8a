"""Installs netsandbox as a user does: from the wheel, in a fresh environment, with compiled bytecode."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import place

UNWANTED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "dist", "build")


class Product:
    """`command` is the installed entry point; `python` the interpreter that it runs on."""

    def __init__(self, source: Path = place.REPOSITORY, name: str = "product") -> None:
        self._source = source
        self._environment = place.environment()
        self._folder = place.WORK / name
        self._built = self._wheel()
        venv = self._folder / "venv"
        self._run([_base_interpreter(), "-m", "venv", str(venv)])
        self.python = str(venv / "bin" / "python")
        self._run([self.python, "-m", "pip", "-q", "--disable-pip-version-check", "install", str(self._built)])
        self.command = str(venv / "bin" / "netsandbox")

    def run(self, options: list[str], command: list[str]) -> list[str]:
        """The command line that runs *command* in a session."""
        return [self.command, "run", "-q", *options, "--", *command]

    @cached_property
    def mitmdump(self) -> str:
        """The program that comes with the extra `inspect`, which is installed at the first use."""
        self._run([self.python, "-m", "pip", "-q", "--disable-pip-version-check", "install", f"{self._built}[inspect]"])
        return str(Path(self.python).parent / "mitmdump")

    @cached_property
    def main(self) -> str:
        """The file that the entry point passes to the interpreter."""
        return self._printed("import netsandbox; print(netsandbox.__path__[0] + '/__main__.py', end='')")

    @cached_property
    def preload_library(self) -> str:
        return self._printed("from netsandbox_interpose.library import LIBRARY; print(LIBRARY, end='')")

    def _printed(self, code: str) -> str:
        argv = [self.python, "-c", code]
        return subprocess.run(argv, env=self._environment, check=True, capture_output=True, text=True).stdout

    def _wheel(self) -> Path:
        source, output = self._folder / "source", self._folder / "wheel"
        shutil.copytree(self._source, source, ignore=UNWANTED, symlinks=True)
        build = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "wheel", "--no-deps"]
        if _has_hatchling():
            build.append("--no-build-isolation")
        self._run([*build, "-w", str(output), str(source)])
        return next(output.glob("netsandbox-*.whl"))

    def _run(self, argv: list[str]) -> None:
        subprocess.run(argv, env=self._environment, check=True, stdin=subprocess.DEVNULL, cwd=self._folder.parent)


def _base_interpreter() -> str:
    return str(getattr(sys, "_base_executable", sys.executable))


def _has_hatchling() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("hatchling", "editables", "cffi", "pip"))
