"""The ports of a session without a network of its own: no server of the host is ever found at one of them.

A server of the host that listens on every address, and sets SO_REUSEADDR as most servers do, tries to begin while the
session binds and closes its port again and again.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import pytest

from tests.rig import ports
from tests.rig.command import CommandLine
from tests.rig.patience import WaitedInVain

pytestmark = [pytest.mark.backend("broker"), pytest.mark.ordinary_user]
TRIES = 300

BINDER = """
import socket, sys, threading
port, own = int(sys.argv[1]), ("127.0.0.1", int(sys.argv[1]))
stop, bound = threading.Event(), threading.Event()

def bind():
    while not stop.is_set():
        with socket.socket() as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(own)
            bound.set()
            if port % 2:
                made.listen()

def reached():
    with socket.socket() as client:
        if client.connect_ex(own):
            return False
        client.settimeout(1)
        try:
            return client.recv(4) == b"host"
        except OSError:
            return False

bind_thread = threading.Thread(target=bind)
bind_thread.start()
bound.wait()
print("ready", flush=True)
count = 0
for line in sys.stdin:
    count += reached()
stop.set()
bind_thread.join()
with socket.create_server(own) as server, socket.create_connection(own):
    print(count, "and own", bool(server.accept()), flush=True)
"""


@pytest.mark.attack(108)
@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_port_of_the_session_never_leads_to_a_server_of_the_host(
    netsandbox: CommandLine, address: str, listens: bool
) -> None:
    port = ports.free_port() // 2 * 2 + listens
    with host_server(address, port):
        pass  # the twin: before the session has the port, a server of the host can have it
    spawned = netsandbox.spawn("run", "--", "python3", "-c", BINDER, str(port), stdin=-1)
    assert spawned.read_until(b"ready\n")
    stdin = spawned.process.stdin
    assert stdin is not None
    begun = 0
    for number in range(TRIES):
        try:
            with host_server(address, port):
                begun += 1
        except OSError:
            pass
        if number % 30 == 0:
            stdin.write(b"\n")
            stdin.flush()
    stdin.close()
    assert spawned.read_until(b"\n").decode().strip().endswith("0 and own True")
    assert begun == 0
    if spawned.wait() != 0:
        raise WaitedInVain(spawned.stderr)


SERVER = """
import errno, socket, sys
own = ("127.0.0.1", int(sys.argv[1]))
with socket.socket() as server, socket.socket() as client:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(own)
        server.listen()
        print("listens", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
    sys.stdin.readline()
    print(client.connect_ex(own), flush=True)
"""


@pytest.mark.attack(108)
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_port_of_the_host_is_refused_and_leads_nowhere(netsandbox: CommandLine, address: str) -> None:
    """Once the host's server is gone, the same program has the port."""
    port = ports.free_port()
    with host_server(address, port) as server:
        assert begin(netsandbox, port) == (errno.errorcode[errno.EADDRINUSE], errno.ECONNREFUSED)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert begin(netsandbox, port) == ("listens", 0)


@pytest.mark.attack(108)
def test_a_server_of_the_host_that_was_bound_before_cannot_listen_any_more(netsandbox: CommandLine) -> None:
    """Its bind is no conflict, since both sockets allow that; its listen is one."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("0.0.0.0", ports.free_port()))
        tried: list[int | None] = []

        def listen() -> None:
            try:
                server.listen()
                tried.append(None)
            except OSError as error:
                tried.append(error.errno)

        assert begin(netsandbox, server.getsockname()[1], listen) == ("listens", 0)
        listen()  # the twin: the session is over
        assert tried == [errno.EADDRINUSE, None]


def begin(line: CommandLine, port: int, meanwhile: Callable[[], None] = lambda: None) -> tuple[str, int]:
    """How a session's server began at *port*, and what a client inside then got there."""
    spawned = line.spawn("run", "--", "python3", "-c", SERVER, str(port), stdin=-1)
    how = spawned.read_until(b"\n").decode().strip()
    meanwhile()
    stdin = spawned.process.stdin
    assert stdin is not None
    stdin.write(b"\n")
    stdin.close()
    answer = int(spawned.read_until(b"\n").decode().strip().rpartition("\n")[2])
    assert spawned.wait() == 0
    return how, answer


def host_server(address: str, port: int) -> socket.socket:
    """Listens, or raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, dualstack_ipv6=family == socket.AF_INET6)
