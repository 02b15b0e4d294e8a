"""Asking a tool: found where no project can have put it, run with bounds, far away from the project.

Rules kept:
1. A program inside the project is never run: whoever wrote the project would run outside of any session.
2. Nor is any program run *in* the project: npm, yarn, cargo, bundle and mvn all load code that a project's files name.
   The directory is the root, which belongs to the system.
3. Only variables that help to start the program are passed on; none that says what it should answer.
4. Time and output are bounded; a program that goes beyond ends with all that it started.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

PATIENCE = 10.0
OUTPUT_LIMIT = 1 << 20
_PASSED = frozenset(("HOME", "USER", "LOGNAME", "TMPDIR", "JAVA_HOME", "GOROOT", "N_PREFIX"))
_PASSED_PREFIXES = ("PYENV_", "NVM_", "FNM_", "VOLTA_", "ASDF_", "MISE_", "RBENV_", "RUSTUP_", "SDKMAN_", "NIX_")
_QUIET = {
    "LC_ALL": "C.UTF-8",
    "NO_COLOR": "1",
    "COLUMNS": "400",
    "NO_UPDATE_NOTIFIER": "1",
    "COREPACK_ENABLE_NETWORK": "0",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "GOTOOLCHAIN": "local",
    "RUSTUP_AUTO_INSTALL": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PDM_CHECK_UPDATE": "0",
}


def is_inside(path: str, folder: str) -> bool:
    """Whether *path*, wherever its links lead, is *folder* or under it."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real == root or real.startswith(root.rstrip("/") + "/")


def safe_path(path: str, folder: str) -> list[str]:
    """The directories of a PATH without relative ones and without those of the project in *folder*."""
    return [each for each in path.split(":")[:200] if each.startswith("/") and not is_inside(each, folder)]


def tool_environment(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """What a tool that is asked sees."""
    passed = {
        name: value for name, value in environment.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
    return {**passed, "PATH": ":".join(safe_path(environment.get("PATH", ""), folder)), **_QUIET}


def ask(
    command: Sequence[str], environment: Mapping[str, str], question: bytes = b"", *, patience: float = PATIENCE
) -> bytes | None:
    """What *command* prints when it reads *question*; None if it fails, says too much or takes too long."""
    import subprocess
    from time import monotonic

    deadline = monotonic() + patience
    process = start(command, environment)
    if process is None:
        return None
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        try:
            process.stdin.write(question[:4096])  # fits into the pipe, so nobody waits
            process.stdin.close()
        except BrokenPipeError:
            pass  # it does not want to know
        said = _output(process.stdout.fileno(), deadline)
        if said is not None:
            return said if process.wait(max(0.1, deadline - monotonic())) == 0 else None
    except subprocess.TimeoutExpired:
        pass
    finally:
        end(process)
    return None


def start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """*command* in a process group of its own, far away from the project; None if it cannot be started."""
    import subprocess

    try:
        return subprocess.Popen(
            command,
            cwd="/",
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError):
        return None


def end(process: subprocess.Popen[bytes]) -> None:
    """No trace is left of *process*, nor of what it started, unless its end was already noticed."""
    from signal import SIGKILL

    if process.returncode is None:
        try:
            os.killpg(process.pid, SIGKILL)  # not yet reaped, so the number is still its own
        except ProcessLookupError:
            pass
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _output(descriptor: int, deadline: float) -> bytes | None:
    """All that comes until the end, or None if there is no end to it."""
    from select import POLLIN, poll
    from time import monotonic

    waiting = poll()
    waiting.register(descriptor, POLLIN)
    said = bytearray()
    while len(said) <= OUTPUT_LIMIT:
        ready = waiting.poll(max(0.0, deadline - monotonic()) * 1000)
        piece = os.read(descriptor, 1 << 16) if ready else None
        if not piece:
            return None if piece is None else bytes(said)
        said += piece
    return None
