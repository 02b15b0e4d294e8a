"""A session cannot lead the next one to another Unix socket than the user allows: what it moves or links is refused.

The verdict is the canary's: the forbidden listener counts its accepts. Each usual way of servers is the twin.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rig.unix_probe import results, script

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

SWAPS = {
    "a link": "os.symlink(agent, wanted)",
    "a hard link": "os.link(agent, wanted)",
    "a rename": "os.rename(agent, wanted)",
    "a rename with a link left behind": "os.rename(agent, wanted); os.symlink(wanted, agent)",
    "a linked folder": "os.rmdir(project); os.symlink(home, project)",
    "a moved folder": "os.rmdir(project); os.rename(home, project)",
    "a folder to change": "os.chmod(project, 0o700); os.rename(agent, wanted); os.chmod(project, 0o500)",
}


@pytest.fixture
def places(short_tmp: Path, identity: Any) -> tuple[Path, Path]:
    """A folder with an agent's socket, and an empty project, both of whoever runs the sessions."""
    home, project = short_tmp / "home", short_tmp / "project"
    for folder in (home, project):
        folder.mkdir()
        os.chown(folder, identity.uid, identity.gid)
    short_tmp.chmod(0o777)
    return home, project


def talk(netsandbox: Any, path: Path, *allowed: str) -> Any:
    options = [word for name in allowed or (str(path),) for word in ("--allow-unix-socket", name)]
    body = f"report(talk=lambda: talk({str(path)!r}))"
    return netsandbox("run", *options, "--", netsandbox.python, "-c", script(body))


@pytest.mark.open_files
@pytest.mark.attack(146)
@pytest.mark.attack(147)
@pytest.mark.attack(149)
@pytest.mark.parametrize("how", SWAPS)
def test_what_an_earlier_session_put_there_is_not_spoken_with(
    netsandbox: Any, canary: Any, places: tuple[Path, Path], identity: Any, how: str
) -> None:
    home, project = places
    name = "agent.sock" if "folder" in how else "db.sock"
    agent, wanted = canary.unix(home / "agent.sock", echo=True), project / name
    os.chown(agent.path, identity.uid, identity.gid)
    body = f"agent, wanted = {agent.path!r}, {str(wanted)!r}; home, project = {str(home)!r}, {str(project)!r}\n"
    first = netsandbox("run", "--", netsandbox.python, "-c", script(f"{body}{SWAPS[how]}\nout['swapped'] = 1"))
    assert results(first) == {"swapped": 1}
    assert wanted.is_socket()
    second = talk(netsandbox, wanted)
    assert (second.returncode, second.log_path) == (2, None)  # no session began
    assert f"started at '{agent.path}', so a command may have put it there" in second.stderr
    assert agent.accepts == 0
    with socket.socket(socket.AF_UNIX) as client:  # the twin: outside it answers there
        client.connect(str(wanted))
    assert agent.wait(1)


@pytest.mark.open_files
@pytest.mark.attack(146)
def test_the_path_that_the_error_names_is_the_way_to_mean_it(
    netsandbox: Any, canary: Any, places: tuple[Path, Path]
) -> None:
    """As with a link of the user's own to an agent whose name changes."""
    home, project = places
    agent, link = canary.unix(home / "agent.sock", echo=True), project / "agent.sock"
    link.symlink_to(agent.path)
    assert f"write '{agent.path}' if you mean that one" in talk(netsandbox, link).stderr
    assert agent.accepts == 0
    assert results(talk(netsandbox, link, agent.path)) == {"talk": "hello"}


def test_a_server_of_the_host_is_reached_however_it_made_its_socket(
    netsandbox: Any, canary: Any, places: tuple[Path, Path]
) -> None:
    """By its whole name, by a relative one, or by another one first, as ssh does it for shared connections."""
    _, project = places
    servers = [canary.unix(project / "whole.sock", echo=True), canary.unix(project / "moved.sock.4711", echo=True)]
    (project / "moved.sock.4711").rename(project / "moved.sock")
    with _working_in(project):
        servers.append(canary.unix("relative.sock", echo=True))
    paths = [str(project / name) for name in ("whole.sock", "moved.sock", "relative.sock")]
    options = [word for path in paths for word in ("--allow-unix-socket", path)]
    body = f"""
for number, path in enumerate({paths!r}):
    report(**{{str(number): lambda: talk(path)}})
"""
    run = netsandbox("run", *options, "--", netsandbox.python, "-c", script(body))
    assert results(run) == dict.fromkeys("012", "hello")
    assert [server.accepts for server in servers] == [1, 1, 1]


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@pytest.mark.open_files
def test_a_real_agent_of_ssh_is_reached_and_another_one_in_its_place_is_not(
    netsandbox: Any, places: tuple[Path, Path], identity: Any
) -> None:
    agent = shutil.which("ssh-agent")
    if agent is None:
        pytest.skip("ssh-agent is not installed")
    home, project = places
    with _agent(agent, home / "agent", identity), _agent(agent, project / "agent", identity):
        command = ("env", f"SSH_AUTH_SOCK={home / 'agent'}", "ssh-add", "-l")
        option = ("--allow-unix-socket", home / "agent")
        said = netsandbox("run", *option, "--", *command)
        assert "The agent has no identities." in said.stdout, said.stderr
        moved = netsandbox("run", "--", "mv", project / "agent", home / "agent")
        assert moved.returncode == 0, moved.stderr
        refused = netsandbox("run", *option, "--", *command)
        assert refused.returncode == 2
        assert "no identities" not in refused.stdout


@contextmanager
def _agent(program: str, path: Path, identity: Any) -> Iterator[None]:
    with subprocess.Popen([program, "-D", "-a", str(path)], stdout=subprocess.PIPE, **identity.popen) as process:
        try:
            assert process.stdout is not None
            assert b"SSH_AUTH_SOCK" in process.stdout.readline()  # said once it listens
            yield
        finally:
            process.kill()
