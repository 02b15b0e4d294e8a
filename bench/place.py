"""The folders of the benchmarks, the installed peers, and the environment of all programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BENCH = REPOSITORY / "bench"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netsandbox-bench"
WORK = Path(tempfile.gettempdir()) / f"netsandbox-bench-{os.getuid()}"  # squid, under its own account, can read it
PROJECT = WORK / "project"  # the working folder of all sessions; they see it, and not the rest of WORK
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MODULES = CACHE / "npm" / "node_modules"


def environment() -> dict[str, str]:
    """The caller's environment, without variables that slow or change Python, and with our folder for logs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    kept["PATH"] = f"{kept.get('PATH', '')}:{SYSTEM_PATH}"
    kept["XDG_STATE_HOME"] = str(CACHE / "state")
    kept["CODEX_HOME"] = str(CACHE / "codex")
    return kept


def prepare() -> None:
    """An empty folder, and in it the project, from which everything is started; files of earlier runs are removed."""
    clear()
    PROJECT.mkdir(mode=0o755, parents=True)
    os.chdir(PROJECT)
    for folder in (CACHE / "state", CACHE / "codex"):
        folder.mkdir(parents=True, exist_ok=True)


def clear() -> None:
    """Remove everything except the cache. State that an interrupted run left would be refused as planted."""
    os.chdir(REPOSITORY)
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(CACHE / "state", ignore_errors=True)


def source_of(commit: str) -> Path:
    """The files of a commit, in the working folder; the repository itself is only read."""
    folder = WORK / "commit"
    folder.mkdir()
    archive = subprocess.run(["git", "-C", str(REPOSITORY), "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def find(program: str) -> str | None:
    return shutil.which(program, path=environment()["PATH"])


def codex() -> str | None:
    """The native program inside the npm package, without its Node wrapper."""
    found = sorted(MODULES.glob("@openai/codex*/vendor/*/bin/codex"))
    return str(found[0]) if found else None


def srt(domains: list[str]) -> list[str] | None:
    """The command line of sandbox-runtime with only these domains allowed; a shell command follows it."""
    program = MODULES / ".bin" / "srt"
    if not program.exists() or not find("node"):
        return None
    settings = WORK / f"srt-{len(list(WORK.glob('srt-*')))}.json"
    network = {"allowedDomains": domains, "deniedDomains": []}
    files: dict[str, list[str]] = {"denyRead": [], "allowWrite": [str(WORK), "/tmp"], "denyWrite": []}
    settings.write_text(json.dumps({"network": network, "filesystem": files}))
    return [str(program), "-s", str(settings), "-c"]
