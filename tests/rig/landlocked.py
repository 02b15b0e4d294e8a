"""A command under the Landlock rules that the broker backend computes, without the rest of that backend.

The rules are computed by the account itself, in a process of its own, and applied in a child of it, which then tries
what the test asks for.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DONE, REFUSED = "done", "EACCES"
SECRET = "canary-51ab"  # in files that must not be read

PROGRAM = (Path(__file__).parent / "sources/landlocked_session.py").read_text("utf-8")


@dataclass(frozen=True)
class Landlocked:
    results: list[Any]
    notices: list[str]
    lines: list[str]
    kept: list[str]
    permits: list[tuple[int, str]]
    environment: dict[str, str]
    error: str
    kind: str


Try = Callable[..., Landlocked]


@pytest.fixture
def home(netsandbox: Any) -> Any:
    return netsandbox.home(warm=False)


def put(home: Any, name: str, text: str = SECRET) -> Path:
    """A file in the home on the host, owned by the account."""
    path: Path = home.path / name
    for folder in reversed(path.relative_to(home.path).parents):
        whole = home.path / folder
        if not whole.exists():
            whole.mkdir()
            os.chown(whole, home.identity.uid, home.identity.gid)
    path.write_text(text)
    os.chown(path, home.identity.uid, home.identity.gid)
    return path


@pytest.fixture
def landlocked(netsandbox: Any) -> Try:
    """landlocked(attempts, **files) -> what came of each attempt in a session of the test's account. Without
    *temporary*, /tmp is a folder like others: the homes of tests are there."""
    home = netsandbox.home(warm=False)

    def run(
        attempts: Iterable[tuple[str, str | Path]] = (),
        *,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        settings: dict[str, Any] | None = None,
        own: Iterable[str] = (),
        words: tuple[str, ...] = ("true",),
        temporary: bool = True,
        stdin: Any = subprocess.DEVNULL,
        python: Path | None = None,
        **files: Any,
    ) -> Landlocked:
        asked = {
            "attempts": [(kind, str(value)) for kind, value in attempts],
            "files": {
                name: [str(each) for each in value] if isinstance(value, list) else value
                for name, value in files.items()
            },
            "settings": settings or {},
            "own": [*map(str, own)],
            "words": words,
            "temporary": temporary,
        }
        done = subprocess.run(
            [*home.identity.prefix, str(python or home.identity.python), "-B", "-c", PROGRAM, json.dumps(asked)],
            env={**home.environment(None), "PYTHONPATH": home.identity.pythonpath, **(env or {})},
            cwd=cwd or home.work,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            stdin=stdin,
        )
        assert done.returncode == 0, done.stderr
        nothing: dict[str, Any] = {name: [] for name in ("results", "notices", "lines", "kept", "permits")}
        return Landlocked(**{**nothing, "environment": {}, "error": "", "kind": "", **json.loads(done.stdout)})

    return run
