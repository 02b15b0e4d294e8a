"""What both Linux backends do alike, without a sandbox."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netsandbox.backends.linux.linux_backend import LinuxBackend, own_addresses
from netsandbox.errors import BackendUnavailable, CommandError, HostError
from netsandbox.policy.policy import Policy
from tests.rig import processes


@pytest.fixture
def backend() -> LinuxBackend:
    command = SimpleNamespace(words=("missing",), environment={b"PATH": b"/bin"})
    context: Any = SimpleNamespace(settings=SimpleNamespace(name="mine"), command=command, stderr=2)
    return LinuxBackend(context)


def test_allowed_sockets_are_held_until_the_end(backend: LinuxBackend, tmp_path: Path) -> None:
    before = processes.own_descriptors()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        backend.confine(Policy(allow_unix_sockets=[str(tmp_path / "s")]))
        assert len(backend.pins) == 1
        backend.stop()
    assert (backend.pins, processes.own_descriptors()) == ([], before)


def test_signals_go_to_the_helper_until_it_is_closed(backend: LinuxBackend) -> None:
    sent: list[object] = []
    backend.helper = SimpleNamespace(pid=7, signal=sent.append, close=lambda: sent.append("closed"))  # type: ignore[assignment]
    backend.signal(15)
    backend.kill()
    assert (backend.pid, sent) == (7, [15, 9])
    backend.stop()
    backend.signal(15)
    assert (backend.pid, sent) == (0, [15, 9, "closed"])


def test_the_failure_of_a_start_is_raised(backend: LinuxBackend) -> None:
    failed = lambda step, number: BackendUnavailable(f"{step} {number}")  # noqa: E731
    backend.helper = SimpleNamespace(set_up_failure=failed)  # type: ignore[assignment]
    backend.raise_failure()  # nothing was served
    backend._serving = SimpleNamespace(exec_errno=2, failure=None)  # type: ignore[assignment]
    with pytest.raises(CommandError, match="missing"):
        backend.raise_failure()
    backend._serving = SimpleNamespace(exec_errno=0, failure=("step", 38))  # type: ignore[assignment]
    with pytest.raises(BackendUnavailable, match="step 38"):
        backend.raise_failure()


def test_lineage_ends_at_the_first_process(backend: LinuxBackend) -> None:
    backend.helper = SimpleNamespace(pid=os.getppid())  # type: ignore[assignment]
    assert backend.lineage(os.getpid())[0] == os.getpid()


def test_own_addresses_are_the_hosts() -> None:
    assert own_addresses(lambda: 0.0) is not None


@pytest.fixture
def spawner(backend: LinuxBackend) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The supervisor's end of the socket to the spawner, and the spawner's."""
    ours, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    backend._serving = SimpleNamespace(await_spawner=lambda: ours)  # type: ignore[assignment]
    with ours, far:
        yield ours, far


def test_a_second_command_goes_to_the_spawner(
    backend: LinuxBackend, spawner: tuple[socket.socket, socket.socket]
) -> None:
    backend.execute(b"request", [0, 1, 2])
    data, passed, _, _ = socket.recv_fds(spawner[1], 100, 8)
    assert (data, len(passed)) == (b"request", 3)
    for fd in passed:
        os.close(fd)


def test_without_a_spawner_that_answers_there_is_no_second_command(
    backend: LinuxBackend, spawner: tuple[socket.socket, socket.socket]
) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            spawner[0].send(bytes(4096))
    with pytest.raises(HostError, match="does not answer"):
        backend.execute(bytes(4096), [])
    spawner[1].close()
    with pytest.raises(HostError, match="is gone"):
        backend.execute(b"request", [])
    backend._serving = None
    with pytest.raises(HostError, match="has no process that starts commands"):
        backend.execute(b"request", [])
