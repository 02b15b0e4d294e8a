"""Tools that tests run and that no Debian package brings: fetched once by npm and pip, kept for later runs.

They come from the registries that this machine is set to, into `$XDG_CACHE_HOME/netsandbox-tests`; where a registry
does not answer, tests of its tools are skipped and say so. Scripts of packages are not run.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.rig.account import Identity
from tests.rig.world import need

QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
SOON = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000")  # npm's own: 70 seconds
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--retries=1")
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
# Where a package keeps the program that its install script would put into node_modules/.bin.
NATIVE = {
    "@anthropic-ai/claude-code": "@anthropic-ai/claude-code-*/claude",
    "bun": "@oven/bun-*/bin/bun",
    "deno": "@deno/*/deno",
}


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "netsandbox-tests"


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


def linked(source: Path, target: Path, without: Sequence[str] = ()) -> Path:
    """*target*, a copy of the folder *source* by hard links."""
    if not target.exists():
        ignored = shutil.ignore_patterns(*without)
        shutil.copytree(source, target, symlinks=True, copy_function=link, ignore=ignored)
    return target


def _toolchain(rustup: Path) -> Path:
    """That of the account that runs the tests; in a new home it has none."""
    asked = subprocess.run([rustup, "which", "cargo"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        pytest.skip(f"rustup has no toolchain for this account: {asked.stderr.partition(chr(10))[0]}")
    return Path(asked.stdout.strip()).parents[1]


class Tools:
    """Folders of tools that any account can read."""

    def __init__(self, workshop: Path) -> None:
        self._workshop = workshop
        self._failures: dict[str, str] = {}

    def of_npm(self, package: str, identity: Identity) -> str:
        """The folder of the programs of *package*, such as `pnpm@9`."""

        def install(folder: Path) -> Sequence[str | Path]:
            return (need("npm", "npm"), "install", *QUIET, *SOON, "--prefix", folder, package)

        modules = self._folder(package.strip("@").replace("/", "-"), install, identity) / "node_modules"
        pattern = NATIVE.get(package[: package.rindex("@")])
        return str(next(modules.glob(pattern)).parent if pattern else modules / ".bin")

    def of_pip(self, package: str, identity: Identity) -> str:
        """A folder for PYTHONPATH with *package* and all that it needs, for the interpreter of *identity*."""
        asked = subprocess.run([identity.python, "-c", VERSION], capture_output=True, text=True, check=True)

        def install(folder: Path) -> Sequence[str | Path]:
            return (*PIP, "--python", identity.python, "install", "--target", folder, package)

        return str(self._folder(f"{package}-python{asked.stdout.strip()}", install, identity))

    def modules(self, *names: str) -> str:
        """A folder for PYTHONPATH with modules of the interpreter that runs the tests; they are written in Python, so
        that of any account can run them."""
        site = self._workshop / "modules"
        site.mkdir(exist_ok=True)
        for name in names:
            found = importlib.util.find_spec(name)
            assert found is not None, name
            origin = Path(str(found.origin))
            if origin.name == "__init__.py":
                linked(origin.parent, site / name)
            else:
                shutil.copy(origin, site)
        return str(site)

    def program(self, path: Path, identity: Identity) -> str:
        """*path* itself, or a copy of the program that the account can run."""
        target = path if identity.is_caller else self._workshop / path.name
        if not target.exists():
            link(str(path), str(target))
        return str(target)

    def rust(self, identity: Identity) -> dict[str, str]:
        """Variables with which the account runs Cargo."""
        cargo = Path(need("cargo", "cargo"))
        home = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))}
        if (cargo.parent / "rustup").exists():
            chain = _toolchain(cargo.parent / "rustup")
            if not identity.is_caller:  # that of root, in its home
                return {"PATH": f"{self.readable(chain, identity, ('share',))}/bin:{identity.path}"}
        return {**home, "PATH": f"{cargo.parent}:{identity.path}"}

    def readable(self, folder: Path, identity: Identity, without: Sequence[str] = ()) -> Path:
        """*folder* itself, or a copy that the account can read, without what has the names *without*."""
        return folder if identity.is_caller else linked(folder, self._workshop / folder.name, without)

    def _folder(self, name: str, install: Callable[[Path], Sequence[str | Path]], identity: Identity) -> Path:
        folder = _cache() / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{folder}.lock", "w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # another worker may fetch it at this moment
            if not folder.exists():
                self._fetch(folder, install)
        return self.readable(folder, identity)

    def _fetch(self, folder: Path, install: Callable[[Path], Sequence[str | Path]]) -> None:
        if folder.name not in self._failures:
            new = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            command = [*install(new)]
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=180
            )
            if done.returncode == 0:
                new.rename(folder)
                return
            self._failures[folder.name] = done.stderr.strip()[-200:]
        pytest.skip(f"the registry that is configured here has no answer: {self._failures[folder.name]}")


@pytest.fixture(scope="session")
def tools(workshop: Path) -> Tools:
    return Tools(workshop)
