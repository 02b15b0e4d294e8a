"""A session's programs talk to each other over Unix sockets of their own. No socket of the host is reached by any path,
and no program of the host reaches one of the session.

The verdict is the canary's: a server of the host counts its accepts. In each test the same calls work among the
session's own programs.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.rig.unix_probe import results, script

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

MODES = ("project", "readable", "open")

# Serves one connection in a thread and talks to it.
OWN = """
import threading
def own(path, kind=socket.SOCK_STREAM, to=None):
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(path)
        server.listen()
        def serve():
            peer, _ = server.accept()
            peer.send(peer.recv(5))
            peer.close()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        said = talk(path if to is None else to, kind)
        thread.join()
        return said, server.getsockname() if isinstance(path, str) and path[:1] != "\\0" else path
"""


@pytest.fixture
def project(netsandbox: Any) -> Path:
    """The project's folder, which the host shares with the session."""
    work: Path = netsandbox.home().work
    return work


def probe(netsandbox: Any, mode: str, body: str, *options: Any) -> dict[str, Any]:
    return results(netsandbox("run", "--files", mode, *options, "--", netsandbox.python, "-c", script(OWN + body)))


@pytest.mark.parametrize("mode", MODES)
def test_programs_of_a_session_talk_by_path_and_by_abstract_name(netsandbox: Any, project: Path, mode: str) -> None:
    body = """
os.mkdir("run"); os.chdir("run")
here, packets = os.getcwd(), socket.SOCK_SEQPACKET
os.symlink("l.sock", "link")
there = f"/tmp/nsb-{os.getppid()}-{os.getpid()}.sock"
report(whole=lambda: own(here + "/a.sock"), relative=lambda: own("b.sock"), packets=lambda: own("c.sock", packets),
       up=lambda: own("../d.sock"), temporary=lambda: own(there), abstract=lambda: own("\\0mine"),
       packets2=lambda: own("\\0more", packets), link=lambda: own("l.sock", to="link"),
       descriptor=lambda: own(f"/proc/self/fd/{os.open('.', os.O_PATH)}/f.sock", to="f.sock"),
       pair=lambda: pair(socket.SOCK_STREAM), pair2=lambda: pair(packets))
out["mode"] = os.stat("b.sock").st_mode
os.rename("b.sock", "g.sock"); os.link("c.sock", "h.sock")
report(again=lambda: bound("a.sock"), old=lambda: talk("g.sock"), linked=lambda: talk("h.sock", packets),
       datagrams=lambda: pair(socket.SOCK_DGRAM), datagram=lambda: sent("g.sock"))
os.unlink("a.sock"); os.unlink(there)
out["temporary"][1] == there and out.pop("temporary")
report(free=lambda: own("a.sock"))
"""
    found = probe(netsandbox, mode, body)
    here = f"{project}/run"
    assert {name: found.pop(name)[1] for name in ("whole", "relative", "packets", "up", "free")} == {
        "whole": f"{here}/a.sock",
        "relative": "b.sock",
        "packets": "c.sock",
        "up": "../d.sock",
        "free": "a.sock",
    }
    assert [found.pop(name)[0] for name in ("abstract", "packets2", "link", "descriptor")] == ["hello"] * 4
    assert stat.S_ISSOCK(found.pop("mode"))
    assert [found.pop(name) for name in ("pair", "pair2")] == ["x", "x"]
    assert found.pop("again") == "EADDRINUSE"
    assert [found.pop(name) for name in ("old", "linked")] == ["ECONNREFUSED"] * 2  # their servers are closed
    assert set(found.values()) == {"ESOCKTNOSUPPORT"}, found


@pytest.mark.attack(124)
@pytest.mark.attack(130)
@pytest.mark.attack(131)
@pytest.mark.attack(164)
@pytest.mark.parametrize("mode", MODES)
def test_no_socket_of_the_host_is_reached(
    netsandbox: Any, canary: Any, project: Path, short_tmp: Path, mode: str
) -> None:
    """In the project, in a folder that is shown, abstract; by links, descriptors and the names of /proc."""
    inside, shared = canary.unix(project / "db.sock", echo=True), canary.unix(short_tmp / "agent.1", echo=True)
    abstract = canary.unix(f"\0nsb-{os.getpid()}-{mode}", echo=True)
    os.chown(inside.path, netsandbox.identity.uid, netsandbox.identity.gid)
    body = f"""
inside, shared, abstract = {inside.path!r}, {shared.path!r}, {abstract.path!r}
os.symlink(inside, "to-db"); os.link("db.sock", "db2.sock")
report(own=lambda: own("mine.sock")[0], inside=lambda: talk(inside), near=lambda: talk("db.sock"),
       link=lambda: talk("to-db"), hard=lambda: talk("db2.sock"), shared=lambda: talk(shared),
       packets=lambda: talk(inside, socket.SOCK_SEQPACKET), root=lambda: talk("/proc/self/root" + inside),
       cwd=lambda: talk("/proc/self/cwd/db.sock"), over=lambda: bound("db.sock"),
       descriptor=lambda: talk(f"/proc/self/fd/{{os.open('db.sock', os.O_PATH)}}"),
       folder=lambda: talk(f"/proc/self/fd/{{os.open('.', os.O_PATH)}}/db.sock"))
os.unlink("mine.sock"); os.rename("db.sock", "mine.sock")
report(renamed=lambda: talk("mine.sock"), abstract=lambda: talk(abstract))
"""
    found = probe(netsandbox, mode, body, "--allow-read", short_tmp)
    assert found.pop("own") == "hello"
    assert found.pop("abstract") == "ECONNREFUSED"
    assert found.pop("over") == "EADDRINUSE"
    assert {found.pop("root"), found.pop("descriptor")} <= {"EACCES", "ELOOP", "ENOENT"}
    assert set(found.values()) == {"EACCES"}, found
    assert [server.accepts for server in (inside, shared, abstract)] == [0, 0, 0]
    for server in (shared, abstract):  # the twin: from outside each answers
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server.path)
        assert server.wait(1)


def test_a_socket_that_the_session_does_not_see_is_missing_and_recorded(netsandbox: Any, canary: Any) -> None:
    home = netsandbox.home()
    hidden = canary.unix(home.path / "docker.sock", echo=True)
    body = f"report(hidden=lambda: talk({hidden.path!r}), missing=lambda: talk('/run/none.sock'))"
    run = netsandbox("run", "--", netsandbox.python, "-c", script(body))
    assert results(run) == {"hidden": "ENOENT", "missing": "ENOENT"}
    (denied,) = run.events("socket", verdict="deny")
    assert (denied["reason"], denied["path"], denied["call"]) == ("unix-socket", hidden.path, "connect")
    assert hidden.accepts == 0


@pytest.mark.attack(166)
@pytest.mark.parametrize("mode", MODES)
def test_no_program_of_the_host_reaches_a_socket_of_the_session(netsandbox: Any, project: Path, mode: str) -> None:
    """166: it could pass descriptors in, or hand its secrets to a false server."""
    body = """
server = socket.socket(socket.AF_UNIX); server.bind("trap.sock"); server.listen()
server.settimeout(20)
print("ready", flush=True); sys.stdin.readline()
server.setblocking(False)
report(host=lambda: server.accept() and "came")
server.setblocking(True)
client = socket.socket(socket.AF_UNIX); client.connect("trap.sock")
report(inside=lambda: server.accept() and "came")
"""
    running = netsandbox.spawn("run", "--files", mode, "--", netsandbox.python, "-c", script(body), stdin=-1)
    running.read_until(b"ready")
    assert (project / "trap.sock").is_socket()
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
        client.connect(str(project / "trap.sock"))
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    said = running.read_until(b"}")
    assert b'"host": "EAGAIN"' in said
    assert b'"inside": "came"' in said


@pytest.mark.attack(169)
@pytest.mark.attack(171)
@pytest.mark.parametrize("mode", MODES)
def test_two_sessions_in_one_folder_do_not_reach_each_others_sockets(netsandbox: Any, project: Path, mode: str) -> None:
    """By the path, with the stand-in's mark removed, by a hard link, by an abstract name."""
    body = """
server = socket.socket(socket.AF_UNIX); server.bind("theirs.sock"); server.listen()
named = socket.socket(socket.AF_UNIX); named.bind("\\0theirs"); named.listen()
print("ready", flush=True); sys.stdin.readline()
for each in (server, named): each.setblocking(False)
report(path=server.accept, abstract=named.accept)
server.setblocking(True)
report(own=lambda: [socket.socket(socket.AF_UNIX).connect("theirs.sock"), server.accept()] and "came")
"""
    running = netsandbox.spawn("run", "--files", mode, "--", netsandbox.python, "-c", script(body), stdin=-1)
    running.read_until(b"ready")
    other = """
report(marked=lambda: talk("theirs.sock"), abstract=lambda: talk("\\0theirs"))
os.utime("theirs.sock"); os.link("theirs.sock", "linked.sock")
report(plain=lambda: talk("theirs.sock"), linked=lambda: talk("linked.sock"), own=lambda: own("mine.sock")[0])
"""
    refused = dict.fromkeys(("plain", "linked"), "EACCES")
    dead = dict.fromkeys(("marked", "abstract"), "ECONNREFUSED")
    assert probe(netsandbox, mode, other) == {**dead, **refused, "own": "hello"}
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    said = running.read_until(b"}")
    assert b'{"path": "EAGAIN", "abstract": "EAGAIN", "own": "came"}' in said


@pytest.mark.attack(164)
def test_in_an_overlay_sockets_are_the_sessions_own_too(netsandbox: Any, canary: Any, project: Path) -> None:
    """The host's socket lies in the folder below, and is reached through the overlay without a broker."""
    host = canary.unix(project / "db.sock", echo=True)
    body = "report(own=lambda: own('mine.sock')[0], host=lambda: talk('db.sock'))"
    assert probe(netsandbox, "project", body, "--overlay") == {"own": "hello", "host": "EACCES"}
    assert host.accepts == 0
    assert not (project / "mine.sock").exists()


def test_what_an_earlier_session_left_is_dead_and_not_the_hosts(netsandbox: Any, project: Path) -> None:
    """Servers such as tmux remove a dead socket, and must not remove one of the host."""
    assert probe(netsandbox, "project", "report(own=lambda: own('left.sock')[0])") == {"own": "hello"}
    assert (project / "left.sock").is_socket()
    body = "report(dead=lambda: talk('left.sock')); os.unlink('left.sock'); report(own=lambda: own('left.sock')[0])"
    assert probe(netsandbox, "project", body) == {"dead": "ECONNREFUSED", "own": "hello"}


def test_a_folder_that_cannot_be_written_takes_no_socket(netsandbox: Any, project: Path) -> None:
    body = """
os.mkdir("closed"); os.chmod("closed", 0o500)
report(system=lambda: bound("/usr/x.sock"), closed=lambda: bound("closed/x.sock"), none=lambda: bound("no/x.sock"),
       own=lambda: own("x.sock")[0], slash=lambda: bound("y.sock/"), dots=lambda: bound("closed/.."))
os.chmod("x.sock", 0)
report(shut=lambda: talk("x.sock"))
os.chmod("closed", 0o700)
"""
    found = probe(netsandbox, "readable", body, "--allow-write", project)
    assert found.pop("system") in ("EROFS", "EACCES")
    assert found.pop("closed") == "EACCES"  # also for root, which has no capabilities inside
    assert found == {"none": "ENOENT", "own": "hello", "slash": "ENOENT", "dots": "EADDRINUSE", "shut": "EACCES"}


def test_a_server_may_go_and_come_many_times(netsandbox: Any, project: Path) -> None:
    """More sockets than the broker keeps, each closed before the next: dead ones are dropped."""
    body = """
done = 0
for number in range(300):
    done += own(f"s{number}.sock")[0] == "hello"
    os.unlink(f"s{number}.sock")
out["done"] = done
"""
    assert probe(netsandbox, "project", body) == {"done": 300}


def test_a_connect_that_waits_is_interrupted_by_signals_and_limits(netsandbox: Any, project: Path) -> None:
    body = """
import signal, struct, time
server = socket.socket(socket.AF_UNIX); server.bind("full.sock"); server.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect("full.sock")
class Rang(Exception): pass
def ring(*_): raise Rang
signal.signal(signal.SIGALRM, ring)
def waits(seconds=0.2):
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # again, should it ring just before the call
    try:
        with socket.socket(socket.AF_UNIX) as client: client.connect("full.sock")
    except Rang: return "rang"
    finally: signal.setitimer(signal.ITIMER_REAL, 0)
def limited():
    with socket.socket(socket.AF_UNIX) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
        client.connect("full.sock")
def at_once():
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        client.connect("full.sock")
report(waits=waits, limited=limited, at_once=at_once)
report(again=lambda: {waits(0.02) for _ in range(50)}.pop())
report(other=lambda: own("other.sock")[0])
"""
    assert probe(netsandbox, "project", body) == {
        "waits": "rang",
        "limited": "EAGAIN",
        "at_once": "EAGAIN",
        "again": "rang",  # none of them waits for a tick that never comes
        "other": "hello",
    }


@pytest.mark.parametrize("options", [(), ("--network-strategy", "fail")], ids=["watched", "guarded"])
def test_servers_listen_whatever_is_decided_about_ports(netsandbox: Any, project: Path, options: tuple[str]) -> None:
    """Where ports are limited, listen is made by the broker too."""
    body = """
import struct
def server_pid():
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("pid.sock"); server.listen(); client.connect("pid.sock")
        return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] - os.getpid()
def unbound():
    with socket.socket(socket.AF_UNIX) as server: server.listen()
report(path=lambda: own("a.sock")[0], abstract=lambda: own("\\0mine")[0], unbound=unbound)
out["same"] = server_pid() == 0
"""
    found = probe(netsandbox, "project", body, *options)
    assert found == {"path": "hello", "abstract": "hello", "unbound": "EINVAL", "same": not options}


@pytest.mark.attack(166)
@pytest.mark.attack(170)
@pytest.mark.attack(171)
def test_the_peer_that_a_server_sees_is_of_no_use_to_it(netsandbox: Any, project: Path) -> None:
    """The broker, outside, made the connect: its process can be neither signalled nor looked into by SO_PEERPIDFD."""
    body = """
import ctypes, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0: raise OSError(ctypes.get_errno(), "")
    return "done"
server = socket.socket(socket.AF_UNIX); server.bind("s.sock"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("s.sock")
peer, _ = server.accept()
out["cred"] = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
out["me"] = (0, os.getuid(), os.getgid())
def broker(): return peer.getsockopt(socket.SOL_SOCKET, 77)
report(kill=lambda: call(424, broker(), int(signal.SIGKILL), 0, 0), probe=lambda: call(424, broker(), 0, 0, 0),
       descriptor=lambda: call(438, broker(), 0, 0), channel=lambda: call(438, broker(), 4, 0),
       network=lambda: call(16, broker(), 0xFF03, 0), mine=lambda: call(424, os.pidfd_open(os.getpid()), 0, 0, 0))
report(own=lambda: own("t.sock")[0])
"""
    found = probe(netsandbox, "project", body)
    assert found.pop("cred") == found.pop("me")
    assert (found.pop("own"), found.pop("mine")) == ("hello", "done")
    assert "done" not in found.values(), found
