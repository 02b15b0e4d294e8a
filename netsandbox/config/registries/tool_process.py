"""Runs a program for its output: one that no project can have written, with bounds, outside the project.

Rules kept:
1. A program inside the project is never run, and none is run *in* the project: npm, yarn, cargo, bundle and mvn all
   load code that a project's files name.
2. Only variables that are needed to start the program are passed, none that changes its output.
3. Time and output are bounded; a program that exceeds them is ended with everything that it started.
4. A tool of the user runs in a separate session (`query_sandbox`); only our own programs are started directly.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

TIMEOUT = 10.0
MAX_OUTPUT = 1 << 20
MAX_INPUT = 60000  # fits into a pipe, so that writing it never blocks
_PASSED = frozenset(("COREPACK_HOME", "USER", "LOGNAME", "TMPDIR", "JAVA_HOME", "GOROOT", "N_PREFIX"))
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
_HOMES = {  # the folders of version managers, unless their variable names another one
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "VOLTA_HOME": ".volta",
    "ASDF_DIR": ".asdf",
    "ASDF_DATA_DIR": ".asdf",
    "MISE_DATA_DIR": ".local/share/mise",
    "SDKMAN_DIR": ".sdkman",
    "COREPACK_HOME": ".cache/node/corepack",
}


def is_inside(path: str, folder: str) -> bool:
    """Whether *path*, with links resolved, is *folder* or below it."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real == root or real.startswith(root.rstrip("/") + "/")


def safe_path(path: str, folder: str) -> list[str]:
    """The directories of a PATH without relative ones and without those of the project in *folder*."""
    return [each for each in path.split(":")[:200] if each.startswith("/") and not is_inside(each, folder)]


def tool_environment(environment: Mapping[str, str], folder: str, home: str) -> dict[str, str]:
    """The variables of a tool. The home is left out, because its settings were read already, but tools in it can be
    found."""
    places = {name: os.path.join(home, place) for name, place in _HOMES.items()}
    passed = {name: place for name, place in places.items() if os.path.isdir(place)}
    passed.update(
        (name, value) for name, value in environment.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    )
    return {**passed, "PATH": ":".join(safe_path(environment.get("PATH", ""), folder)), **_QUIET}


def output(process: subprocess.Popen[bytes], timeout: float = TIMEOUT, grace: float = 0.0) -> bytes | None:
    """The output of *process*, if it succeeds within *timeout*. Otherwise it is ended, after *grace* seconds."""
    import subprocess
    from time import monotonic

    deadline = monotonic() + timeout
    assert process.stdout is not None
    try:
        printed = _read(process.stdout.fileno(), deadline)
        if printed is not None:
            return printed if process.wait(max(0.1, deadline - monotonic())) == 0 else None
    except subprocess.TimeoutExpired:
        pass
    finally:
        end(process, grace)
    return None


def start(
    command: Sequence[str], environment: Mapping[str, str], data: bytes = b"", folder: str = "/"
) -> subprocess.Popen[bytes] | None:
    """Start *command* in a new process group, with *data* on its standard input; None if that fails."""
    import subprocess

    if len(data) > MAX_INPUT:
        return None
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError):
        return None
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        process.stdin.close()
    except BrokenPipeError:
        pass  # it does not read its input
    return process


def end(process: subprocess.Popen[bytes], grace: float = 0.0) -> None:
    """End *process* and everything that it started. With *grace* it gets SIGTERM first, so that it can tidy up."""
    from signal import SIGKILL

    if process.returncode is None:
        if grace:
            process.terminate()
            _wait_without_reaping(process.pid, grace)
        try:
            os.killpg(process.pid, SIGKILL)  # not yet reaped, so the pid is not reused
        except ProcessLookupError:
            pass
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _wait_without_reaping(pid: int, timeout: float) -> None:
    """Wait until the child has ended, without reaping it."""
    from time import monotonic, sleep

    deadline = monotonic() + timeout
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and monotonic() < deadline:
        sleep(0.01)


def _read(descriptor: int, deadline: float) -> bytes | None:
    """All output until the end; None if it takes too long or is too much."""
    from select import POLLIN, poll
    from time import monotonic

    waiting = poll()
    waiting.register(descriptor, POLLIN)
    data = bytearray()
    while len(data) <= MAX_OUTPUT:
        ready = waiting.poll(max(0.0, deadline - monotonic()) * 1000)
        piece = os.read(descriptor, 1 << 16) if ready else None
        if not piece:
            return None if piece is None else bytes(data)
        data += piece
    return None
