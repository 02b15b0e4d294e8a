"""The session's localhost, attacked from inside: nothing listens outside the window, nothing reaches a neighbour.

The verdict is the kernel's: what listens in the session's network and on the host, and whom a canary heard.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import Any

import pytest

from tests.rig import ports
from tests.rig.effort import repeated
from tests.rig.localhost import (
    DOORS,
    eventually,
    heard,
    host_listeners,
    inner_listeners,
    source,
    status_of,
    window_of,
)

pytestmark = pytest.mark.usefixtures("user_namespaces")

ENGINES = ("kernel", "preload")
REFUSALS = {"outside": {"EACCES"}, "low": {"EACCES"}, "option": {"EACCES"}, "device": {"EADDRNOTAVAIL"}}
ODD = {"EACCES", "EINVAL", "EFAULT", "EBADF", "ENOTSOCK", "EPROTONOSUPPORT", "EAFNOSUPPORT"}
LOOPBACK = ("127.", "::1", "::ffff:127.")


def fail_options(name: str, engine: str = "kernel") -> tuple[str, ...]:
    return ("--name", name, "--network-strategy", "fail", "--rewrite-engine", engine)


@pytest.mark.ordinary_user
@pytest.mark.attack(99)
@pytest.mark.attack(111)
@pytest.mark.attack(189)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["dynamic-libc", "dynamic-raw", "static-raw"])
def test_no_spelling_of_bind_leaves_the_window(
    netsandbox: Any, canary: Any, probe: Any, kind: str, engine: str
) -> None:
    """IPv4, IPv6, mapped, wildcard, link-local, AF_UNSPEC, options, no bind; by libc and by the bare instruction."""
    linked, how = kind.split("-")
    program = probe("binds", source("binds.c"), static=linked == "static")
    host = canary.tcp(greeting=b"the host's own")
    command = ("run", *fail_options("binds", engine), "--", program, how, str(host.port))
    running = netsandbox.spawn(*command, stdin=subprocess.PIPE)
    text = running.read_until(b"done\n").decode()
    answers = dict(line.split(" ", 1) for line in text.splitlines()[:-1])
    status = status_of(netsandbox, "binds")
    window = window_of(status)
    for name, answer in answers.items():
        if name.startswith("twin-"):
            assert answer.startswith("at "), (name, answer)
            assert int(answer[3:]) in window, name
        else:
            assert answer in REFUSALS.get(name.split("-")[0], ODD), name
    assert len(answers) > 45
    assert len(inner_listeners(status)) > 10
    assert {found.port for found in inner_listeners(status)} <= set(window)
    outside = host_listeners(running.pid)
    assert {found.port for found in outside} <= {*window, netsandbox.home().gateway_port}
    assert all(found.address.startswith(LOOPBACK) for found in outside)
    assert len({found.port for found in outside}) > 10
    assert heard("127.0.0.1", host.port) == b"the host's own"
    assert host.accepts == 1
    running.process.stdin.close()
    assert running.wait() == 0
    denied = [record for record in running.audit if record["event"] == "bind" and record["verdict"] == "deny"]
    assert {record["reason"] for record in denied} == {"outside-window", "wrong-device"}
    assert any(record["port"] == host.port for record in denied)


@pytest.mark.attack(115)
@pytest.mark.attack(116)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["flip", "swap", "aim", "aim-lent"])
def test_races_for_a_port_outside_the_window_are_lost(
    netsandbox: Any, canary: Any, probe: Any, mode: str, engine: str
) -> None:
    """Addresses and descriptors change while they are judged, in four pairs of threads."""
    program = probe("bind-race", source("bind_race.c"), static=True)
    host = canary.tcp()
    options = fail_options("race", engine)
    if mode == "aim-lent":  # the window lies among the ports that the kernel lends to connections
        options += ("--listening-base-port", str(ports.free_window(100, ports.LENT)))
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    running = netsandbox.spawn("run", *options, "--", program, mode, str(host.port), str(repeated(200, 2000)), **pipes)
    running.read_until(b"ready\n")
    status = status_of(netsandbox, "race")
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    window = set(window_of(status))
    while running.process.poll() is None:
        try:
            assert_none_stays(status, window)
        except OSError:  # the session has ended
            break
        time.sleep(0.02)
    iterations, good, outside = map(int, running.read_until(b"\n").split())
    assert running.wait() == 0
    assert iterations > 1000
    assert good > 30
    assert outside == 0
    assert host.accepts == 0
    allowed = [record for record in running.audit if record.get("verdict") == "allow"]
    assert {record["port"] for record in allowed if record["event"] in ("listen", "publish")} <= window


def assert_none_stays(status: dict[str, Any], window: set[int]) -> None:
    """A socket outside of WINDOW may be seen before the guard has shut it: its thread let go of the port meanwhile."""
    outside = {found for found in inner_listeners(status) if found.port not in window}
    if outside:
        eventually(lambda: not outside & inner_listeners(status))


FORGOTTEN = """
import ctypes, os, socket
libc = ctypes.CDLL(None)
base, count = (int(os.environ[f"LISTENING_{name}"]) for name in ("BASE_PORT", "PORT_COUNT"))
server = socket.create_server(("127.0.0.1", base), backlog=100)
port = -1
for _ in range(20000):
    client = socket.create_connection(("127.0.0.1", base))
    server.accept()[0].close()
    libc.connect(client.fileno(), bytes(16), 16)  # AF_UNSPEC: the kernel takes the port back, the socket still shows it
    if base <= client.getsockname()[1] < base + count:
        try:
            client.listen()
            port = client.getsockname()[1]
        except OSError as error:
            port = -error.errno
        break
    client.close()
print(base, count, port, flush=True)
"""


@pytest.mark.attack(111)
def test_a_port_that_the_kernel_has_taken_back_is_not_listened_on(netsandbox: Any) -> None:
    """A forgotten port: the socket still shows one of the window, but listen would choose another by itself."""
    base = ports.free_window(200, ports.LENT)
    numbers = ("--listening-base-port", str(base), "--listening-port-count", "200")
    run = netsandbox("run", "--network-strategy", "fail", *numbers, "--", netsandbox.python, "-c", FORGOTTEN)
    first, count, port = map(int, run.stdout.split())
    assert port < -1 or first <= port < first + count
    assert port != -1  # or the case never came up
    listened = {record["port"] for record in run.events("listen", verdict="allow")}
    assert listened <= set(range(first, first + count))


ANY_PORT = """
import socket
ports = set()
for number in range(400):
    family, host = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))[number % 2]
    with socket.socket(family, (socket.SOCK_STREAM, socket.SOCK_DGRAM)[number // 2 % 2]) as any_port:
        any_port.bind((host, 0))
        ports.add(any_port.getsockname()[1])
print(*sorted(ports))
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(111)
@pytest.mark.parametrize("strategy", ["isolate", "fail", "rewire-device", "rewire-port"])
def test_any_port_is_never_a_door(netsandbox: Any, strategy: str) -> None:
    run = netsandbox("run", "--network-strategy", strategy, "--", netsandbox.python, "-c", ANY_PORT)
    ports = set(map(int, run.stdout.split()))
    assert len(ports) > 10
    assert not ports & DOORS
    assert min(ports) >= 1024
    if strategy == "fail":
        (start,) = run.events("session.start")
        first, last = map(int, start["window"].split("-"))
        assert ports <= set(range(first, last + 1))


WIDE = """
import socket
for port, (family, host) in enumerate(((2, "0.0.0.0"), (10, "::"), (2, "127.0.0.1"), (2, "127.9.9.9")), 3000):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == 10:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((host, port))
    server.listen()
    globals()[host] = server
print("serving", flush=True)
input()
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(189)
@pytest.mark.parametrize("strategy", ["isolate", "rewire-device", "rewire-port"])
def test_nothing_is_published_beyond_loopback(netsandbox: Any, strategy: str) -> None:
    """A server for the whole world inside is one for loopback on the host, whatever the environment asks."""
    wishes = {"HOST": "0.0.0.0", "LISTENING_LOOPBACK_DEVICE": "0.0.0.0", "LISTENING_BASE_PORT": "80"}
    options = ("--name", "wide", "--network-strategy", strategy)
    command = ("run", *options, "--", netsandbox.python, "-c", WIDE)
    running = netsandbox.spawn(*command, env=wishes, stdin=subprocess.PIPE)
    running.read_until(b"serving\n")
    eventually(lambda: len(status_of(netsandbox, "wide")["ports"]) == 4)
    status = status_of(netsandbox, "wide")
    assert window_of(status).start >= 20000
    found = host_listeners(running.pid)
    assert len(found) >= 4
    assert all(one.address.startswith(LOOPBACK) for one in found), found
    for port in status["ports"]:
        socket.create_connection((port["host_address"], port["host_port"]), 10).close()


@pytest.mark.ordinary_user
@pytest.mark.attack(108)
def test_a_port_of_the_host_is_that_port_and_no_other(netsandbox: Any, canary: Any) -> None:
    """--connect-host opens one port: the host's other servers, IPv6 twins and other addresses stay out of reach."""
    good = canary.tcp(port=ports.free_port(), greeting=b"allowed")
    others = [canary.tcp(greeting=b"forbidden"), canary.tcp("::1", greeting=b"forbidden")]
    others.append(canary.tcp("127.0.0.2", good.port, greeting=b"forbidden"))
    script = """
import socket, sys
for word in sys.argv[1:]:
    host, _, port = word.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 10) as client:
            client.settimeout(10)
            print(word, client.recv(100).decode() or "-")
    except OSError as error:
        print(word, type(error).__name__)
"""
    places = [f"{host}:{good.port}" for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1")]
    denied = [f"{server.host}:{server.port}" for server in others] + [f"::ffff:127.0.0.1:{others[0].port}"]
    command = (netsandbox.python, "-c", script, *places, *denied)
    run = netsandbox("run", "--connect-host", str(good.port), "--", *command)
    answers = dict(line.split(" ") for line in run.stdout.splitlines())
    assert {place: answers.pop(place) for place in places} == dict.fromkeys(places, "allowed")
    assert len(answers) == len(denied)
    assert set(answers.values()) <= {"ConnectionRefusedError", "ConnectionResetError", "-"}
    assert [server.accepts for server in (good, *others)] == [3, 0, 0, 0]
    assert len(run.events("egress", verdict="allow", port=good.port)) == 3


ACCOMPLICE = """
import array, errno, os, socket
inherited = socket.socket(fileno=0)
data, ancillary, _, _ = inherited.recvmsg(10, 1000)
given = socket.socket(fileno=array.array("i", ancillary[0][2])[0])
def tried(act, *words):
    try:
        act(*words)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"
port = int(os.environ["LISTENING_BASE_PORT"]) + 5
own = socket.socket()
print(tried(given.bind, ("127.0.0.1", port)), tried(given.listen), tried(own.bind, ("127.0.0.1", port)), flush=True)
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(166)
@pytest.mark.attack(132)
def test_a_socket_of_the_hosts_network_cannot_be_bound_by_a_session(netsandbox: Any) -> None:
    """An accomplice outside passes one in over the inherited standard input: where ports are limited, it is inert."""
    ours, theirs = socket.socketpair()
    running = netsandbox.spawn(
        "run", "--network-strategy", "fail", "--", netsandbox.python, "-c", ACCOMPLICE, stdin=theirs.fileno()
    )
    theirs.close()
    with ours, socket.socket() as gift:
        socket.send_fds(ours, [b"x"], [gift.fileno()])
        bound, listened, twin = running.read_until(b"\n").decode().split()
        assert {bound, listened} <= {"EPERM", "EACCES"}
        assert twin == "ok"
        assert gift.getsockname() == ("0.0.0.0", 0)
    assert running.wait() == 0


DEVICE = """
import errno, json, os, socket
device, base = os.environ["LISTENING_LOOPBACK_DEVICE"], int(os.environ["LISTENING_BASE_PORT"])
def tried(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        try:
            if host:
                server.bind((host, port))
            server.listen()
        except OSError as error:
            return errno.errorcode[error.errno]
        return "ok"
places = [device, f"::ffff:{device}", "127.0.0.1", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "127.0.77.2"]
places += ["192.0.2.1", ""]
print(json.dumps({place: tried(place, base + 3) for place in places}))
"""
REWRITTEN = ("127.0.0.1", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "")


@pytest.mark.ordinary_user
@pytest.mark.attack(108)
@pytest.mark.parametrize(
    ("strategy", "engine"), [("fail", "kernel"), ("fail", "preload"), ("rewire-device", "preload")]
)
def test_a_session_with_a_device_keeps_to_it(netsandbox: Any, strategy: str, engine: str) -> None:
    """Other devices, the wildcard and IPv6 would be more than the device: refused, unless the library rewrites them."""
    options = ("--network-strategy", strategy, "--rewrite-engine", engine, "--listening-loopback", "127.0.77.1")
    run = netsandbox("run", *options, "--", netsandbox.python, "-c", DEVICE)
    found = json.loads(run.stdout)
    assert (found.pop("127.0.77.1"), found.pop("::ffff:127.0.77.1")) == ("ok", "ok")
    rewritten = REWRITTEN if strategy == "rewire-device" else ()
    assert {place: found.pop(place) for place in rewritten} == dict.fromkeys(rewritten, "ok")
    assert set(found.values()) == {"EADDRNOTAVAIL"}
    shown = {record["host_address"] for record in run.events("publish", verdict="allow")}
    assert shown == {"127.0.77.1"}
