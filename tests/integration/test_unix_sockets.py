"""Unix sockets of the host: none by default; with `--allow-unix-socket PATH` that one, whatever is raced or swapped.

The verdict is the canary's: the forbidden listener counts its accepts, and a run must also show that the good one
works.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.rig.unix_probe import results, script

pytestmark = [pytest.mark.usefixtures("user_namespaces")]


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(164)
@pytest.mark.attack(130)
@pytest.mark.attack(131)
def test_by_default_no_unix_socket_of_the_host_is_reached(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    """Stand-ins for docker, ssh-agent, X11 and D-Bus; by path and abstract, stream and datagram (164, 130, 131)."""
    places = [short_tmp / name for name in ("docker.sock", "agent.1", "X0", "bus")]
    servers = [canary.unix(place, echo=True) for place in (*places, f"\0nsb-{os.getpid()}-dbus")]
    body = f"""
for number, path in enumerate({[server.path for server in servers]!r}):
    report(**{{f"connect{{number}}": lambda: talk(path), f"send{{number}}": lambda: sent(path)}})
report(bind=lambda: bound({str(short_tmp / "mine")!r}), abstract=lambda: bound("\\0mine"),
       pair=lambda: pair(socket.SOCK_STREAM), packets=lambda: pair(socket.SOCK_SEQPACKET),
       datagrams=lambda: pair(socket.SOCK_DGRAM))
"""
    run = netsandbox("run", "--", netsandbox.python, "-c", script(body))
    found = results(run)
    assert (found.pop("pair"), found.pop("packets")) == ("x", "x")
    assert (found.pop("bind"), found.pop("abstract")) == ("bound", "bound")
    assert found.pop("connect4") == "ECONNREFUSED"  # nobody in the session's own network has that name
    assert {found.pop(f"connect{number}") for number in range(4)} == {"EACCES"}
    assert set(found.values()) == {"ESOCKTNOSUPPORT"}
    assert [server.accepts for server in servers] == [0] * len(servers)
    denied = run.events("socket", verdict="deny", reason="unix-socket", family="unix")
    assert {record["type"] for record in denied} == {"stream", "dgram"}
    assert {record["path"] for record in denied if record["type"] == "stream"} == set(map(str, places))
    for server in servers:  # the twin: from outside each answers
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server.path)
        assert server.wait(1)


@pytest.mark.open_files
@pytest.mark.attack(167)
def test_a_socket_that_appears_later_is_out_of_reach_too(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    body = """
print("ready", flush=True); sys.stdin.readline()
report(late=lambda: talk(sys.argv[1]))
"""
    late = short_tmp / "late.sock"
    for option in ((), ("--allow-unix-socket", short_tmp / "other.sock")):
        late.unlink(missing_ok=True)
        running = netsandbox.spawn("run", *option, "--", netsandbox.python, "-c", script(body), late, stdin=-1)
        running.read_until(b"ready")
        server = canary.unix(late)
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
        assert b"EACCES" in running.read_until(b"}")
        running.wait()
        assert server.accepts == 0


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(131)
@pytest.mark.attack(166)
def test_an_allowed_path_is_that_socket_and_no_other(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    good, bad = canary.unix(short_tmp / "good.sock", echo=True), canary.unix(short_tmp / "bad.sock", echo=True)
    abstract = canary.unix(f"\0nsb-{os.getpid()}", echo=True)
    (short_tmp / "to-good").symlink_to(good.path)
    (short_tmp / "to-bad").symlink_to(bad.path)
    body = f"""
os.chdir({str(short_tmp)!r})
report(good=lambda: talk({good.path!r}), relative=lambda: talk("./good.sock"), link=lambda: talk("to-good"),
       bad=lambda: talk({bad.path!r}), near=lambda: talk("bad.sock"), badlink=lambda: talk("to-bad"),
       dots=lambda: talk({str(short_tmp / "good.sock/../bad.sock")!r}), file=lambda: talk("/etc/passwd"),
       proc=lambda: talk(f"/proc/self/fd/{{os.open({bad.path!r}, os.O_PATH)}}"),
       root=lambda: talk("/proc/self/root" + {bad.path!r}),
       abstract=lambda: talk({abstract.path!r}), empty=lambda: talk(""), missing=lambda: talk("none.sock"),
       packets=lambda: talk({bad.path!r}, socket.SOCK_SEQPACKET), datagram=lambda: sent({good.path!r}),
       bind=lambda: bound("mine.sock"), bindabstract=lambda: bound("\\0mine"), autobind=lambda: bound(""))
"""
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", netsandbox.python, "-c", script(body))
    found = results(run)
    assert [found.pop(name) for name in ("good", "relative", "link")] == ["hello"] * 3
    assert found.pop("missing") == "ENOENT"
    assert found.pop("dots") == "ENOTDIR"
    assert found.pop("proc") in ("EACCES", "ELOOP", "ENOENT")
    assert found.pop("root") in ("EACCES", "ELOOP", "ENOENT")
    assert found.pop("datagram") == "ESOCKTNOSUPPORT"
    assert {found.pop(name) for name in ("bind", "bindabstract", "autobind")} == {"bound"}
    assert {found.pop(name) for name in ("abstract", "file")} == {"ECONNREFUSED"}
    assert found.pop("empty") == "EINVAL"
    assert set(found.values()) == {"EACCES"}, found
    assert (bad.accepts, abstract.accepts, good.accepts) == (0, 0, 3)
    allowed = run.events("socket", verdict="allow")
    assert [(r["reason"], r["rule"], r["call"]) for r in allowed] == [("rule", good.path, "connect")] * 3
    denied = {record.get("path") for record in run.events("socket", verdict="deny")}
    assert {bad.path, str(short_tmp / "to-bad")} <= denied


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
def test_internet_sockets_behave_as_without_the_option(netsandbox: Any, short_tmp: Path) -> None:
    """TCP and UDP, both families, blocking or not, listening, refused and denied: the same answers (INV-3)."""
    body = """
def served(family, host):
    with socket.create_server((host, 0), family=family) as server:
        client = socket.create_connection(server.getsockname()[:2])
        peer, _ = server.accept()
        peer.sendall(b"hi")
        return client.recv(2).decode()
def later(host):
    import select
    with socket.create_server((host, 0)) as server, socket.socket() as client:
        client.setblocking(False)
        first = client.connect_ex(server.getsockname())
        select.select([], [client], [], 5)
        again = client.connect_ex(server.getsockname()) in (0, errno.EISCONN)
        return [errno.errorcode.get(first), client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), again]
def aimed():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0)); b.connect(a.getsockname()); b.send(b"x")
        return a.recv(1).decode() if DATAGRAMS else "x"
def twice():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.socket() as two:
        two.bind(one.getsockname())
def away():
    with socket.create_connection(("192.0.2.1", 80), 5) as client:
        return client.recv(1).decode()
def low(family, host):
    with socket.socket(family) as server:
        server.bind((host, 80))
report(tcp=lambda: served(socket.AF_INET, "127.0.0.1"), tcp6=lambda: served(socket.AF_INET6, "::1"),
       later=lambda: later("127.0.0.1"), udp=aimed, twice=twice, away=away,
       refused=lambda: socket.create_connection(("127.0.0.1", 9)),
       low=lambda: low(socket.AF_INET, "127.0.0.1"), low6=lambda: low(socket.AF_INET6, "::1"),
       door=lambda: low(socket.AF_INET, "127.0.0.1"), interfaces=lambda: [name for _, name in socket.if_nameindex()],
       names=lambda: sorted({entry[4][0] for entry in socket.getaddrinfo("localhost", 80)}))
"""
    body = body.replace("DATAGRAMS", str(netsandbox.backend != "broker"))  # there UDP leads to DNS or nowhere
    plain = results(netsandbox("run", "--", netsandbox.python, "-c", script(body)))
    option = ("--allow-unix-socket", short_tmp / "none.sock")
    brokered = netsandbox("run", *option, "--", netsandbox.python, "-c", script(body))
    assert results(brokered) == plain
    assert (plain["tcp"], plain["tcp6"], plain["udp"], plain["low"]) == ("hi", "hi", "x", "EACCES")
    assert plain["later"] == ["EINPROGRESS", 0, True]
    assert brokered.events("egress", verdict="deny", host="192.0.2.1")


@pytest.mark.open_files
def test_the_log_says_who_used_what_and_repeats_are_counted(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    good, bad = canary.unix(short_tmp / "good.sock", echo=True), canary.unix(short_tmp / "bad.sock")
    body = f"""
for _ in range(20):
    report(good=lambda: talk({good.path!r}), bad=lambda: talk({bad.path!r}))
"""
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", netsandbox.python, "-c", script(body))
    allowed = run.events("socket", verdict="allow", path=good.path)
    assert [record["count"] for record in allowed] == [1, 19]
    assert allowed[0]["exe"].rpartition("/")[2].startswith("python")
    assert sum(record["count"] for record in run.events("socket", verdict="deny", path=bad.path)) == 20
