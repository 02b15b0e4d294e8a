"""The preloaded library and its port map, attacked from inside the processes that carry them.

A process can always get rid of the library. Then the kernel's guard refuses what the library would have rewritten
(INV-7): a port of the program's choice is bound in the window, or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig.account import PACKAGES
from tests.rig.effort import repeated
from tests.rig.localhost import eventually, heard, inner_listeners, sessions, source, status_of, window_of
from tests.rig.workshop import ROOT

pytestmark = pytest.mark.usefixtures("user_namespaces")

LIBRARY = "libnetsandbox_interpose.so"
PRELOAD = ("--rewrite-engine", "preload", "--network-strategy")
BARE = ("raw", "handle", "namespace", "table", "raw-execve", "raw-execveat")  # these lose the library for certain
KEPT = ("next", "execve", "execve-null", "execve-bare", "execvpe", "execle", "clearenv", "fexecve", "loader")
SPAWNED = ("spawn", "spawnp", "vfork")
SERVER = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[2]) or int(os.environ["LISTENING_BASE_PORT"])))
print("serving", flush=True)
while True:
    with server.accept()[0] as visitor:
        visitor.sendall(sys.argv[1].encode())
"""


def bound_program(probe: Any) -> Path:
    program: Path = probe("bound", source("bound.c"), flags=("-Wl,-z,lazy",))
    return program


def answers(text: str) -> dict[str, list[str]]:
    return {words[0]: words[1:] for words in map(str.split, text.splitlines())}


def window(run: Any) -> range:
    (start,) = run.events("session.start")
    first, last = map(int, start["window"].split("-"))
    return range(first, last + 1)


def assert_confined(found: dict[str, list[str]], ports: range) -> None:
    """Each way ended in a refusal, or at a port of the window that the program sees as the one it asked for."""
    for how, answer in found.items():
        if len(answer) == 2:
            assert answer[0] == "3000", how
            assert int(answer[1]) in ports, how
        else:
            assert answer[0] in ("EACCES", "refused"), how


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(98)
@pytest.mark.attack(99)
@pytest.mark.attack(103)
def test_a_program_without_the_library_binds_in_the_window_or_not_at_all(
    netsandbox: Any, probe: Any, short_tmp: Path
) -> None:
    """Dropped by env, execve, posix_spawn, vfork; gone around by raw calls, dlsym, dlmopen, another libc, the GOT."""
    program = bound_program(probe)
    libc = next(Path("/lib").glob("*-linux-gnu*/libc.so.6"), Path("/lib64/libc.so.6"))
    shutil.copy(libc, short_tmp / "own-libc.so")
    (short_tmp / "own-libc.so").chmod(0o755)
    script = f"""
for how in plainly {" ".join(BARE + KEPT + SPAWNED)}; do "$0" $how 3000; done
"$0" copy 3000 {short_tmp}/own-libc.so
env -u LD_PRELOAD "$0" plainly 3000 env-u
env -i "$0" plainly 3000 env-i
env LD_PRELOAD=/dev/null "$0" plainly 3000 env-null
(unset LD_PRELOAD NETSANDBOX_PORT_MAP; exec "$0" plainly 3000 unset)
NETSANDBOX_PORT_MAP=/dev/null "$0" plainly 3000 no-map
"""
    run = netsandbox("run", *PRELOAD, "rewire-port", "--", "sh", "-c", script, program)
    found = answers(run.stdout)
    assert set(found) >= {"plainly", *BARE, *KEPT, *SPAWNED, "copy", "env-u", "env-i", "unset", "no-map"}, run.stderr
    assert_confined(found, window(run))
    assert len(found["plainly"]) == 2  # the twin: with the library it works
    assert all(len(found[how]) == 1 for how in (*BARE, "copy"))
    assert run.events("bind", verdict="deny", reason="outside-window", port=3000)


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(100)
def test_a_setuid_program_is_confined_like_any_other(netsandbox: Any, probe: Any, short_tmp: Path) -> None:
    """No new privileges: the bit has no effect, and whether the loader drops the library or not changes nothing."""
    program = short_tmp / "setuid"
    shutil.copy(bound_program(probe), program)
    program.chmod(0o6755)  # root's, when root runs the tests
    run = netsandbox("run", *PRELOAD, "rewire-port", "--", "sh", "-c", '"$0" plainly 3000; "$0" raw 3000', program)
    found = answers(run.stdout)
    assert set(found) == {"plainly", "raw"}
    assert_confined(found, window(run))
    assert found["raw"] == ["EACCES"]


@pytest.mark.ordinary_user
@pytest.mark.attack(106)
@pytest.mark.parametrize("place", ["src", "linked", "work/vendored", "/tmp"])
def test_the_library_is_there_read_only_wherever_netsandbox_is_installed(
    netsandbox: Any, probe: Any, short_tmp: Path, place: str
) -> None:
    """The default mode of files shows neither the rest of the home nor /tmp, only the library and the map of them."""
    home = netsandbox.home()
    site = short_tmp / "site" if place == "/tmp" else home.path / place
    if place == "linked":
        (home.path / "store").mkdir()
        site.symlink_to("store")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, site / Path(package).name)
    subprocess.run(["chown", "-hR", f"{home.identity.uid}:{home.identity.gid}", site.resolve(), home.path], check=True)
    shutil.copy(bound_program(probe), home.work / "bound")
    library, other = site / "netsandbox_interpose" / LIBRARY, site / "netsandbox" / "errors.py"
    before = library.read_bytes()
    script = f"""
./bound plainly 3000
for file in "$LD_PRELOAD" "$NETSANDBOX_PORT_MAP"; do
    test -r "$file" && echo there
    (echo planted >> "$file") 2>&- || echo refused
    rm -f "$file" 2>&- || echo refused
done
test -e {other} || echo hidden
./bound plainly 3000 again
"""
    product = [home.identity.python, "-I", "-S", site / "netsandbox" / "__main__.py", "run", "--no-config"]
    for strategy in ("rewire-device", "rewire-port"):
        run = home.plainly([*product, *PRELOAD, strategy, "--", "sh", "-c", script])
        lines = run.stdout.splitlines()
        ends = [line.split()[:2] for line in (lines[:1] + lines[-1:])]
        assert ends == [["plainly", "3000"], ["again", "3000"]], (strategy, run.stderr)
        assert lines[1:7] == ["there", "refused", "refused"] * 2, strategy
        assert lines[7:-1] == ([] if place.startswith("work") else ["hidden"]), strategy
        assert library.read_bytes() == before, strategy


@pytest.mark.attack(101)
@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port"])
def test_interpreters_by_way_of_env_stay_on_the_map(netsandbox: Any, strategy: str) -> None:
    """What macOS strips at /usr/bin/env and /bin/sh is kept here: each hop hands the library on."""
    script = netsandbox.home().work / "server"
    script.write_text(
        f"#!/usr/bin/env {netsandbox.python}\nimport socket\n"
        "s = socket.create_server(('127.0.0.1', 3000)); print(*s.getsockname())\n"
    )
    script.chmod(0o755)
    hops = "./server; /usr/bin/env ./server; /bin/sh -c ./server; env -i ./server; sh -c 'exec env -i sh -c ./server'"
    run = netsandbox("run", *PRELOAD, strategy, "--", "sh", "-c", hops)
    assert run.stdout.splitlines() == ["127.0.0.1 3000"] * 5, run.stderr


@pytest.mark.ordinary_user
@pytest.mark.attack(104)
@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port"])
def test_datagrams_pass_the_library_to_their_own_session_only(netsandbox: Any, canary: Any, strategy: str) -> None:
    """By every call that sends; to the host's server and to the world they go nowhere; there are no raw sockets."""
    host = canary.udp()
    run = netsandbox("run", *PRELOAD, strategy, "--", netsandbox.python, "-c", source("datagrams.py"), str(host.port))
    out = json.loads(run.stdout)
    assert out.pop("name") == ["127.0.0.1", 5300]
    for way in ("sendto", "sendmsg", "sendmmsg", "connect"):
        assert out.pop(way) == [way, ["127.0.0.1", 5400], f"back {way}", ["127.0.0.1", 5300]]
    assert out == {"raw": []}
    assert host.datagrams == []
    assert sum(record.get("count", 1) for record in run.events("udp", verdict="deny")) >= 1


@pytest.mark.ordinary_user
@pytest.mark.attack(105)
@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port"])
def test_the_library_stands_a_storm(netsandbox: Any, probe: Any, strategy: str) -> None:
    """Forks in threads, signal handlers, constructors, no descriptors: no hang, no crash, errno kept."""
    program, forks = probe("storm", source("storm.c")), repeated(500, 10000)
    run = netsandbox("run", *PRELOAD, strategy, "--", program, str(forks), timeout=180)
    assert run.stdout.split("\n")[:-1] == [
        "constructor",
        "errno",
        "errors",
        "interrupted",
        "closed",
        f"forks {forks} 0",
    ]
    assert run.returncode == 0


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(106)
@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port", "fail"])
def test_the_map_has_one_writer(netsandbox: Any, strategy: str) -> None:
    """Inside it cannot be written, mapped for writing, cut, moved, covered or replaced; on the host it has no name."""
    port = "0" if strategy == "fail" else "3000"  # 0: the first of the window
    serve = ("--name", "neighbour", *PRELOAD, strategy, "--", netsandbox.python, "-c", SERVER, "neighbour", port)
    neighbour = netsandbox.spawn("run", *serve)
    neighbour.read_until(b"serving\n")
    write = (
        "--name",
        "writer",
        *PRELOAD,
        strategy,
        "--",
        netsandbox.python,
        "-c",
        source("map_writer.py"),
        "write",
        port,
    )
    running = netsandbox.spawn("run", *write, stdin=subprocess.PIPE)
    out, same, works = json.loads(running.read_until(b"\n"))
    assert set(out.values()) <= {"EROFS", "EACCES", "EPERM", "EBUSY", "EXDEV", "EEXIST", "EIO", "EFAULT"}, out
    assert len(out) > 20
    assert same
    assert works == (window_of(status_of(netsandbox, "writer")).start if strategy == "fail" else 3000)
    assert not list((netsandbox.home().state / "netsandbox" / "maps").iterdir())
    assert_served(netsandbox, "neighbour")


def assert_served(netsandbox: Any, name: str) -> None:
    status = eventually(lambda: next((s for s in sessions(netsandbox) if s["name"] == name and s["ports"]), None))
    (port,) = status["ports"]
    assert heard(port["host_address"], port["host_port"]) == name.encode()


@pytest.mark.ordinary_user
@pytest.mark.attack(106)
def test_a_map_that_lies_leads_nowhere(netsandbox: Any) -> None:
    """Garbage, other windows, other devices, endless writers: no crash, no hang, and no port outside the window.

    Whoever puts another map over the one in his own process fools his own library, and nobody else.
    """
    command = (netsandbox.python, "-c", source("map_writer.py"), "lie")
    run = netsandbox("run", *PRELOAD, "rewire-port", "--", *command, timeout=180)
    statuses = json.loads(run.stdout)
    assert len(statuses) > 50
    assert set(statuses) == {0}, statuses


TRUTH = """
import json, os, socket
found = []
def plain(name):
    return [name[0].removeprefix("::ffff:"), name[1]]
places = ((2, "127.0.0.1", "127.0.0.1"), (10, "::1", "::1"), (10, "::", "127.0.0.1"), (2, "0.0.0.0", "127.0.0.1"))
for port, (family, host, dialled) in enumerate(places, 3000):
    with socket.socket(family) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen()
        with socket.create_connection((dialled, port)) as client:
            accepted, source = server.accept()
            ours, theirs = plain(client.getsockname()), plain(accepted.getpeername())
            found.append([plain(server.getsockname()), plain(client.getpeername()), plain(accepted.getsockname())])
            found.append([ours == theirs == plain(source), ours[0]])
            accepted.close()
print(json.dumps(found), flush=True)
server = socket.create_server(("127.0.0.1", 3000))
print("serving", flush=True)
with server.accept()[0] as visitor:
    print(json.dumps([visitor.getsockname(), visitor.getpeername()[0]]), flush=True)
    visitor.sendall(b"hello")
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(110)
@pytest.mark.parametrize(
    ("strategy", "engine"),
    [
        ("isolate", "kernel"),
        ("rewire-device", "kernel"),
        ("rewire-port", "kernel"),
        ("rewire-device", "preload"),
        ("rewire-port", "preload"),
    ],
)
def test_a_program_sees_the_names_it_asked_for(netsandbox: Any, strategy: str, engine: str) -> None:
    """Both ends agree, by IPv4, IPv6, both at once and wildcard; also when the client comes from the host."""
    options = ("--name", "truth", "--network-strategy", strategy, "--rewrite-engine", engine)
    running = netsandbox.spawn("run", *options, "--", netsandbox.python, "-c", TRUTH)
    found = json.loads(running.read_until(b"\n"))
    hosts = (("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"))
    for number, (host, dialled) in enumerate(hosts):
        port = 3000 + number
        assert found[2 * number] == [[host, port], [dialled, port], [dialled, port]], host
        agree, client = found[2 * number + 1]
        assert agree, host
        # A device is an IPv4 address: the library leaves the client's own one as the kernel chose it.
        assert client in (dialled, "127.0.0.1" if (strategy, engine) == ("rewire-device", "preload") else dialled), host
    running.read_until(b"serving\n")
    status = eventually(lambda: next((s for s in sessions(netsandbox) if s["ports"]), None))
    inside = {found.port for found in inner_listeners(status)}
    assert inside <= ({3000} if (strategy, engine) != ("rewire-port", "preload") else set(window_of(status)))
    port = next(port for port in status["ports"] if port["port"] == 3000)
    assert heard(port["host_address"], port["host_port"]) == b"hello"
    seen, peer = json.loads(running.read_until(b"\n"))
    assert seen == ["127.0.0.1", 3000]
    assert peer.startswith("127.")
    assert running.wait() == 0


FLOOD = """
import errno, json, os, random, socket, struct
choice = random.Random(106)
door = ("127.0.0.1", 1011)
kept = []
for number in range(300):
    try:
        client = socket.create_connection(door, 5)
        client.sendall(choice.randbytes(choice.randrange(0, 200)))
        kept.append(client)
    except OSError:
        pass
request = struct.pack("=IHH4sI", 0x4e534d50, 1, 9999, socket.inet_aton("127.0.0.1"), 6)
with socket.create_connection(door, 5) as client:
    client.sendall(request + bytes(16))  # a token that is not ours
    client.settimeout(5)
    try:
        forged = client.recv(100).hex()
    except OSError:
        forged = ""
for client in kept:
    client.close()
answers = []
servers = []
for port in range(4000, 4100):
    try:
        servers.append(socket.create_server(("127.0.0.1", port)))
        answers.append("ok")
    except OSError as error:
        answers.append(errno.errorcode[error.errno])
print(json.dumps([forged, answers]), flush=True)
input()
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(106)
@pytest.mark.attack(184)
def test_the_asking_door_gives_out_the_window_and_no_more(netsandbox: Any) -> None:
    """Garbage and a forged token get no answer; a hundred wishes for twenty ports get what there is."""
    options = ("--name", "flood", *PRELOAD, "rewire-port", "--listening-port-count", "20")
    running = netsandbox.spawn("run", *options, "--", netsandbox.python, "-c", FLOOD, stdin=subprocess.PIPE)
    forged, found = json.loads(running.read_until(b"\n", 60))
    assert forged == ""
    assert set(found) <= {"ok", "EADDRINUSE", "EACCES"}
    assert 10 <= found.count("ok") <= 20
    status = status_of(netsandbox, "flood")
    ports = {one.port for one in inner_listeners(status)}
    assert len(ports) == found.count("ok")
    assert ports <= set(window_of(status))


@pytest.mark.ordinary_user
@pytest.mark.attack(206)
def test_maps_of_dead_sessions_are_swept(netsandbox: Any) -> None:
    """A map has a name for a moment only; one that was left by a kill in that moment goes when another session runs."""
    netsandbox("run", *PRELOAD, "rewire-port", "--", "true")
    maps = netsandbox.home().state / "netsandbox" / "maps"
    left = maps / "0123456789abcdef"
    left.write_bytes(bytes(8368))
    os.chown(left, netsandbox.identity.uid, netsandbox.identity.gid)
    yesterday = time.time() - 86400
    os.utime(left, (yesterday, yesterday))
    assert netsandbox("run", *PRELOAD, "rewire-port", "--", "true").returncode == 0
    assert list(maps.iterdir()) == []
