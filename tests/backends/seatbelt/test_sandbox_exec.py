"""The way without our helper: the same promises, kept by sandbox-exec and a stage of Python. Landlock confines."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.seatbelt import sandbox_exec as module
from netsandbox.backends.seatbelt.sandbox_exec import SandboxExec, interpreter, interpreter_paths
from netsandbox.errors import HostError
from tests.rig.mac_start import ENVIRONMENT, PROFILE, Start, starting
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)


@pytest.fixture
def start(sandbox_exec: str, closed_port: int, tmp_path: Path) -> Start:
    return starting(SandboxExec, sandbox_exec, tmp_path, closed_port)


def test_the_kernel_refuses_what_the_profile_does_not_open(start: Start, tmp_path: Path) -> None:
    """INV-7: the command is behind the boundary, and its twin is a port that the profile names."""
    text = (
        "import errno, socket, sys\n"
        "for port in map(int, sys.argv[1:]):\n"
        "    print(errno.errorcode[socket.socket().connect_ex(('127.0.0.1', port))] if port else '')\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as forbidden, socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in (forbidden, opened)]
        profile = PROFILE + f'(allow network-outbound (remote tcp "localhost:{ports[1]}"))\n'
        assert start(sys.executable, "-c", text, *ports, profile=profile).wait() == 0
        forbidden.settimeout(0)
        with pytest.raises(BlockingIOError):
            forbidden.accept()
    assert (tmp_path / "out").read_text() == "EACCES\nECONNREFUSED\n"


def test_a_profile_that_is_not_accepted_runs_nothing_and_its_words_are_ours_to_say(
    start: Start, tmp_path: Path
) -> None:
    with pytest.raises(HostError, match=r"sandbox-exec did not start the session \(sandbox-exec: unbound variable"):
        start("touch", str(tmp_path / "ran"), profile="; refuse")
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "err").read_text() == ""


def test_a_stage_that_python_cannot_run_runs_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "STAGE", str(tmp_path / "gone.py"))
    with pytest.raises(HostError, match=r"did not start the session .*can't open file"):
        start("touch", str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()


def test_without_sandbox_exec_nothing_is_run(start: Start, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for program, words in ((str(tmp_path / "none"), "there is no .*/none"), (str(plain), "cannot start .*/plain")):
        with pytest.raises(HostError, match=words):
            start("touch", str(tmp_path / "ran"), program=program)
    assert not (tmp_path / "ran").exists()


def test_one_that_says_nothing_and_starts_nothing_is_an_error(start: Start) -> None:
    with pytest.raises(HostError, match="without a report"):
        start("true", program="/bin/true")


def test_one_that_takes_no_notice_of_the_profile_runs_nothing(start: Start, tmp_path: Path) -> None:
    """INV-1: whatever calls itself sandbox-exec, the stage asks the kernel."""
    false = tmp_path / "sandbox-exec"
    false.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    false.chmod(0o755)
    with pytest.raises(HostError, match="does not hold"):
        start("touch", str(tmp_path / "ran"), program=str(false))
    assert not (tmp_path / "ran").exists()


def test_a_profile_that_is_too_long_for_a_line_runs_nothing(start: Start, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="too long for sandbox-exec"):
        start("touch", str(tmp_path / "ran"), profile=PROFILE + "; long" * (1 << 20))
    assert not (tmp_path / "ran").exists()


def test_a_watcher_that_does_not_start_runs_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "WATCHER", str(tmp_path / "gone.py"))
    with pytest.raises(HostError, match="its watcher did not start"):
        start("touch", str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()


def test_without_a_path_the_systems_folders_are_searched(start: Start) -> None:
    assert start("true", environment={}).wait() == 0


def test_a_supervisor_that_dies_before_it_says_go_runs_nothing(sandbox_exec: str, tmp_path: Path) -> None:
    """The stage is still waiting for its plan, which then breaks off."""
    text = f"""
import os
from netsandbox.backends.seatbelt import helper_process as applied
from netsandbox.backends.seatbelt.sandbox_exec import SandboxExec
applied._write_all = lambda fd, data: (os.write(fd, data[:-3]), os._exit(0))
command = ["touch", {str(tmp_path / "ran")!r}]
SandboxExec({sandbox_exec!r}, command, {PROFILE!r}, {ENVIRONMENT!r}, (0, 1, 2), closed_port=9)
"""
    with open(os.devnull) as nothing:
        subprocess.run(
            [sys.executable, "-c", text],
            stdin=nothing,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=30,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    wait_for(lambda: not running(module.STAGE, str(tmp_path)))
    assert not (tmp_path / "ran").exists()


def running(*words: str) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        if line and all(word.encode() in line for word in words):
            found.append(name)
    return found


def test_the_watcher_is_deaf_to_the_terminal_and_nobodys_child(start: Start) -> None:
    ran = start("sleep", "60")
    (watcher,) = map(int, running(module.WATCHER, f"\0{ran.pid}\0"))
    assert os.getsid(watcher) != os.getsid(0)
    assert os.listdir(f"/proc/{watcher}/fd") == ["3"]
    with pytest.raises(ChildProcessError):
        os.waitpid(watcher, os.WNOHANG)
    ran.close()


def test_the_watcher_leaves_with_the_command(start: Start) -> None:
    ran = start("true")
    ran.wait()
    wait_for(lambda: not running(module.WATCHER, f"\0{ran.pid}\0"))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_a_watcher_that_cannot_be_spawned_ends_the_stage(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    real = module.spawn

    def spawn(program: str, words: Any, descriptors: Any) -> int:
        if module.WATCHER in words:
            raise OSError(number, os.strerror(number))
        return real(program, words, descriptors)

    monkeypatch.setattr(module, "spawn", spawn)
    with pytest.raises(HostError, match="cannot watch over the command"):
        start("touch", str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()


def test_a_python_that_does_not_know_where_it_is_cannot_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(HostError, match="use another Python"):
        interpreter()


def test_the_interpreter_is_named_without_links() -> None:
    assert interpreter_paths() == (os.path.realpath(sys.executable), os.path.realpath(sys.base_prefix))


def test_the_stage_imports_nothing_of_ours_and_nothing_slow() -> None:
    code = f"import sys; exec(open({module.STAGE!r}).read(), {{'__name__': 'stage'}}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("netsandbox") or name in ("socket", "enum")]
