"""Unix sockets of a session without namespaces: its programs reach them by path, and no program of the host does."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.broker_as_root, pytest.mark.backend("broker"), pytest.mark.ordinary_user(only=True)]

SERVER = """
import os, socket, sys
os.umask(0o027)
server = socket.socket(socket.AF_UNIX)
server.bind("own.sock")
server.listen()
"""
TALK = """
def talk(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError as error:
            return error.errno
        with server.accept()[0] as peer:
            peer.sendall(b"hello")
            return [client.recv(5).decode(), server.getsockname()]
"""


def words(netsandbox: Any, body: str) -> list[str]:
    return ["run", "--files", "project", "--", netsandbox.python, "-c", body]


def result(netsandbox: Any, body: str) -> Any:
    run = netsandbox(*words(netsandbox, f"import json\n{body}\nprint(json.dumps(found))"))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def project(netsandbox: Any) -> Path:
    (netsandbox.home().work / ".git").mkdir(exist_ok=True)
    folder: Path = netsandbox.home().work
    os.chown(folder / ".git", netsandbox.identity.uid, netsandbox.identity.gid)
    return folder


@pytest.mark.attack(164)
def test_a_program_of_the_host_finds_nobody_at_the_path(netsandbox: Any) -> None:
    """INV-7: what a session serves is for its own programs, wherever its project is seen."""
    folder = project(netsandbox)
    body = f"{SERVER}{TALK}print(talk('own.sock')[0], flush=True); sys.stdin.read(1); print(talk('own.sock')[0])"
    running = netsandbox.spawn(*words(netsandbox, body), stdin=-1)
    running.read_until(b"hello")
    with socket.socket(socket.AF_UNIX) as client:
        assert client.connect_ex(str(folder / "own.sock")) == errno.ECONNREFUSED
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    running.read_until(b"hello")


def test_the_path_is_that_of_the_server_for_its_own_programs(netsandbox: Any) -> None:
    folder = project(netsandbox)
    moved = "os.rename('own.sock', 'moved.sock'); found.append(talk('moved.sock')[0])"
    found = result(netsandbox, f"{SERVER}{TALK}found = talk('own.sock'); {moved}; os.link('moved.sock', 'linked.sock')")
    assert found == ["hello", "own.sock", "hello"]
    assert stat.S_IMODE((folder / "moved.sock").stat().st_mode) == 0o750


def test_the_rights_of_the_path_count(netsandbox: Any) -> None:
    project(netsandbox)
    body = f"{SERVER}{TALK}os.chmod('own.sock', 0); found = talk('own.sock')"
    assert result(netsandbox, body) == errno.EACCES


def test_a_path_is_bound_once_and_what_an_earlier_session_left_is_dead(netsandbox: Any) -> None:
    """Servers remove a dead socket, and must not remove one of the host."""
    project(netsandbox)
    again = "try: socket.socket(socket.AF_UNIX).bind('own.sock')\nexcept OSError as error: found = error.errno"
    assert result(netsandbox, f"{SERVER}{again}") == errno.EADDRINUSE
    later = "import os, socket\nfound = socket.socket(socket.AF_UNIX).connect_ex('own.sock')"
    assert result(netsandbox, later) == errno.ECONNREFUSED
    assert result(netsandbox, f"import os; os.unlink('own.sock')\n{SERVER}{TALK}found = talk('own.sock')[0]") == "hello"


def test_a_socket_is_bound_once_whatever_the_name(netsandbox: Any) -> None:
    """The second bind makes no file."""
    folder = project(netsandbox)
    again = """
found = []
for name in ("other.sock", chr(0) + "other", ""):
    try: server.bind(name)
    except OSError as error: found.append(error.errno)
"""
    assert result(netsandbox, f"{SERVER}{again}") == [errno.EINVAL] * 3
    assert not (folder / "other.sock").exists()


def test_nothing_is_left_where_sockets_are_bound(netsandbox: Any) -> None:
    """That folder is netsandbox's own, which the session cannot list."""
    project(netsandbox)
    state = netsandbox.home().state / "netsandbox"
    running = netsandbox.spawn(*words(netsandbox, f"{SERVER}print('ready', flush=True); sys.stdin.read()"), stdin=-1)
    running.read_until(b"ready")
    assert [path.name for path in state.rglob("*") if path.is_socket() and path.name.startswith("socket-")] == []
