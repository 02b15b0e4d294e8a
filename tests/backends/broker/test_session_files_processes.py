"""What is no file of the project: devices, descriptors, the files of processes, programs."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from tests.rig.landlocked import DONE, REFUSED, SECRET, Try, home, put

__all__ = ["home"]
pytestmark = pytest.mark.ordinary_user


def test_other_terminals_are_closed_unless_a_device_opens_them(home: Any, landlocked: Try) -> None:
    leader, follower = os.openpty()
    name = os.ttyname(follower)
    os.chmod(name, 0o666)
    try:
        assert landlocked([("write", name), ("write", "/dev/null")]).results == [REFUSED, DONE]
        opened = landlocked(
            [("write", name), ("sh", "python3 -c 'import pty; pty.openpty(); print(1)'")], devices=["/dev/pts/ptmx"]
        )
        assert opened.results[0] == DONE
        assert any("terminals" in line for line in opened.notices)
    finally:
        os.close(leader)
        os.close(follower)


def test_shared_memory_works(home: Any, landlocked: Try) -> None:
    script = "python3 -c 'import multiprocessing as m; print(m.Lock().acquire())'"
    assert landlocked([("sh", script)]).results[0][1] == "True\n"


def test_the_files_of_processes_can_be_closed(home: Any, landlocked: Try) -> None:
    attempts = [("read", "/proc/self/environ"), ("read", "/proc/version")]
    closed = landlocked(attempts, settings={"no_debug": True}).results
    assert closed[0] == REFUSED
    assert "Linux" in closed[1]
    assert "HOME=" in landlocked(attempts).results[0]


def test_variables_of_processes_outside_are_closed(home: Any, landlocked: Try) -> None:
    sleeper = subprocess.Popen(
        [*home.identity.prefix, "/bin/sleep", "60"], env={"CANARY": SECRET, "PATH": "/usr/bin:/bin"}
    )
    try:
        found = landlocked([("read", f"/proc/{sleeper.pid}/environ"), ("read", "/proc/self/environ")])
        assert found.results[0] == REFUSED
        assert "HOME=" in found.results[1]
    finally:
        sleeper.kill()
        sleeper.wait()


def test_links_of_processes_lead_to_nothing_that_is_closed(home: Any, landlocked: Try) -> None:
    plan, mine = put(home, "Documents/plan"), put(home, "work/mine", "mine")
    sleeper = subprocess.Popen(
        [*home.identity.prefix, "/bin/sleep", "60"], cwd=home.path, env={"PATH": "/usr/bin:/bin"}
    )
    try:
        found = landlocked(
            [
                ("read", f"/proc/self/root{mine}"),
                ("read", "/proc/self/cwd/mine"),
                ("read", f"/proc/self/root{plan}"),
                ("read", "/proc/self/cwd/../Documents/plan"),
                ("read", f"/proc/{sleeper.pid}/root{mine}"),
                ("read", f"/proc/{sleeper.pid}/cwd/work/mine"),
                ("sh", f"exec 3<>{mine}; cat /proc/self/fd/3"),
            ]
        )
        assert found.results[:2] == ["mine", "mine"]
        assert found.results[2:6] == [REFUSED] * 4
        assert found.results[6] == [0, "mine", ""]
    finally:
        sleeper.kill()
        sleeper.wait()


def test_standard_input_from_elsewhere_can_be_opened_anew(home: Any, landlocked: Try) -> None:
    """With the rights of the descriptor: what is only read there is not written."""
    data = put(home, "Documents/input", "input")
    with data.open() as opened:
        found = landlocked(
            [("read", "/dev/stdin"), ("write", data), ("read", f"{home.path}/Documents/x")], stdin=opened
        )
    assert found.results[:2] == ["input", REFUSED]
    assert data.read_text() == "input"


def test_only_listed_programs_are_executed(home: Any, landlocked: Try) -> None:
    found = landlocked(
        [("sh", "/usr/bin/env true; echo $?; /bin/echo x")], words=("sh",), listed_only=True, allow_execute=[]
    )
    assert found.results[0][1].startswith("126")
    plain = landlocked([("sh", "/usr/bin/env true; echo $?")])
    assert plain.results[0][1] == "0\n"


@pytest.mark.parametrize(
    ("files", "settings", "named"),
    [
        ({"overlay": ""}, {}, "--overlay"),
        ({}, {"ask_files": 5}, "--ask"),
    ],
)
def test_what_needs_mounts_is_an_error(
    home: Any, landlocked: Try, files: dict[str, Any], settings: dict[str, Any], named: str
) -> None:
    found = landlocked(settings=settings, **files)
    assert found.kind == "HostError"
    assert named in found.error
    assert "\n" not in found.error


def test_asking_about_names_only_is_said(home: Any, landlocked: Try) -> None:
    found = landlocked(settings={"ask": 5, "ask_files": 5})
    assert any(line.startswith("--ask") for line in found.notices)
