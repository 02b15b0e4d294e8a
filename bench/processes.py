"""Starts, times and stops processes. Rule: only processes that were started here are stopped, by their process
group."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Timing:
    """One command from start to end."""

    seconds: float
    cpu: float
    status: int


def timed(argv: Sequence[str], environment: Mapping[str, str]) -> Timing:
    """Run *argv* to its end with nothing on its standard descriptors."""
    nothing = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    began = time.perf_counter()
    pid = os.posix_spawnp(argv[0], list(argv), environment, file_actions=nothing)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began
    return Timing(seconds, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status))


class Server:
    """A process in a separate group that runs until `stop`."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def stop(self) -> None:
        stop_group(self._process)


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM, wait a little, then send SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def stop_groups(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stop all of them at the same time, so that many do not take longer than one."""
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
    for process in processes:
        stop_group(process)


def await_port(port: int, seconds: float = 20) -> bool:
    """Whether something accepts on this port of loopback in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return True
    return False


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """The processor time of this process without its children (proc_pid_stat(5): fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def proportional_megabytes(pid: int) -> float:
    """Memory of one process, with shared pages divided among those that share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise ValueError("smaps_rollup has no Pss line")
