"""The whole process group is killed at once, as by `timeout -s KILL`: nothing of the session survives."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.rig.localhost import eventually

pytestmark = [pytest.mark.open_files, pytest.mark.ordinary_user]

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


@pytest.mark.attack(204)
@pytest.mark.attack(205)
def test_a_daemon_does_not_survive_the_group_of_its_session(netsandbox: Any) -> None:
    running = netsandbox.spawn("run", "--backend", "broker", "--", netsandbox.python, "-c", DAEMON)
    pid = int(running.read_until(b"\n"))
    try:
        assert os.path.exists(f"/proc/{pid}")
        os.killpg(os.getpgid(running.pid), signal.SIGKILL)
        assert eventually(lambda: not os.path.exists(f"/proc/{pid}"), within=5)
    finally:
        running.close()
        if os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGKILL)
