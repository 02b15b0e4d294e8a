"""A program of a session cannot stop the broker for the others: not by its sockets' options, nor by their number.

Each attack has another process of the session beside it, whose calls must go on.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import pytest

pytestmark = [pytest.mark.ordinary_user]
BROKER = ("--backend", "broker")

PRELUDE = """
import json, os, signal, socket, struct, sys, threading, time
IP_MINTTL = 21
def timed(action):
    began = time.monotonic()
    try:
        result = action()
    except OSError as error:
        result = error.errno
    return [round(time.monotonic() - began, 1), result if isinstance(result, int) else 0]
def dial(port, deaf=False, timeout=None):
    s = socket.socket()
    if deaf:
        s.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 255)
    s.settimeout(timeout)
    s.connect(("192.0.2.1", port))
    s.close()
def own_binder():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, _, rest = open(f"/proc/{pid}/stat").read().rpartition(")")
        except OSError:
            continue
        if name.endswith("(netsandbox-bind") and int(rest.split()[1]) == os.getppid():
            return int(pid)
"""
# A socket that hears no packet of the loopback waits for its connection for minutes.
DEAF = """
threads = [threading.Thread(target=lambda: timed(lambda: dial(80, True)), daemon=True) for _ in range(3)]
for each in threads:
    each.start()
time.sleep(0.3)
made = timed(lambda: socket.socket(socket.AF_UNIX).close())
other = timed(lambda: dial(81))
print(json.dumps([made, other]), flush=True)
os._exit(0)
"""
# One that waits already is not asked for again and again.
DEAF_TWICE = """
s = socket.socket()
s.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 255)
s.setblocking(False)
for _ in range(2):
    timed(lambda: s.connect(("192.0.2.1", 80)))
print(json.dumps([timed(lambda: socket.socket(socket.AF_UNIX).close()), timed(lambda: dial(81))]), flush=True)
os._exit(0)
"""
STOPPED = """
os.kill(own_binder(), signal.SIGSTOP)
def bind():
    socket.socket(socket.AF_UNIX).bind("stopped.sock")
threading.Thread(target=lambda: timed(bind), daemon=True).start()
time.sleep(0.3)
made, other = timed(lambda: socket.socket(socket.AF_UNIX).close()), timed(lambda: dial(81))
print(json.dumps([made, other, timed(bind)]), flush=True)
os._exit(0)
"""
MANY = """
listener = socket.create_server(("127.0.0.1", 4444))
def memory():
    return next(int(line.split()[1]) for line in open(f"/proc/{os.getppid()}/status") if line.startswith("VmRSS"))
found = []
for _ in range(3):
    for _ in range(10000):
        s = socket.socket()
        s.connect(("127.0.0.1", 4444))
        s.close()
        listener.accept()[0].close()
    time.sleep(4.5)
    found.append(memory())
print(json.dumps(found))
"""
MAX_GUARDS = 4096  # of own_ports.c
MAX_MEMORY = 24_000  # KiB; a socket needs one, so all of them 30,000


def inside(netsandbox: Any, body: str, *words: str) -> Any:
    run = netsandbox("run", *BROKER, "--", netsandbox.python, "-c", PRELUDE + body, *words)
    assert run.stdout, run.stderr
    return json.loads(run.stdout)


@pytest.mark.attack(196)
@pytest.mark.parametrize("body", [DEAF, DEAF_TWICE], ids=["waiting", "not waiting"])
def test_a_socket_that_hears_nothing_stops_no_other(netsandbox: Any, body: str) -> None:
    (made, _), (dialled, number) = inside(netsandbox, body)
    assert made < 1
    assert dialled < 15
    assert number == 0


@pytest.mark.attack(196)
def test_a_stopped_binder_stops_no_other_call(netsandbox: Any) -> None:
    (made, _), (dialled, number), (bound, refused) = inside(netsandbox, STOPPED)
    assert made < 1
    assert (dialled < 3, number) == (True, 0)
    assert (bound < 15, refused != 0) == (True, True)


@pytest.mark.attack(197)
def test_sockets_that_are_gone_are_forgotten(netsandbox: Any) -> None:
    assert inside(netsandbox, MANY)[-1] < MAX_MEMORY


@pytest.mark.open_files
@pytest.mark.attack(195)
def test_ports_of_servers_that_are_gone_are_free_again(netsandbox: Any) -> None:
    """Test suites make a server for each test. One that stays is reached all the time."""
    body = """
stays = socket.create_server(("127.0.0.1", 4545))
ports = set()
for _ in range(4300):
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    ports.add(server.getsockname()[1])
    last = server
client = socket.create_connection(("127.0.0.1", 4545))
print(json.dumps([len(ports), client.getpeername()[1]]))
"""
    found, reached = inside(netsandbox, body)
    assert found > MAX_GUARDS
    assert reached == 4545


@pytest.mark.attack(195)
def test_sockets_that_were_never_connected_are_given_back(netsandbox: Any) -> None:
    """The broker has a copy of each. It looks into the processes of the session for those that are gone."""
    body = """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
made = failed = 0
ends = time.monotonic() + 30
while made < 1.5 * min(most, 20000) and time.monotonic() < ends:
    try:
        socket.socket().close()
        made += 1
    except OSError:
        failed += 1
        time.sleep(0.1)
print(json.dumps([made, min(most, 20000)]))
"""
    made, most = inside(netsandbox, body)
    assert made > most


@pytest.mark.attack(166)
def test_no_netlink_message_reaches_a_program_outside(netsandbox: Any) -> None:
    """A program of root may connect such a socket to any other, and the broker may be one."""
    body = """
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
refused = timed(lambda: s.connect((int(sys.argv[1]), 0)))
timed(lambda: s.send(struct.pack("=IHHII", 16, 16, 0, 0, 0)))
print(json.dumps([refused, len(socket.if_nameindex())]))
"""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as outside:
        outside.bind((0, 0))
        outside.settimeout(0.5)
        (_, number), interfaces = inside(netsandbox, body, str(outside.getsockname()[0]))
        with pytest.raises(TimeoutError):
            outside.recv(64)
    assert number == 1
    assert interfaces == len(os.listdir("/sys/class/net"))  # the twin
