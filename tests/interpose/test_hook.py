"""Real programs under the library: what they ask for works, what they see is what they asked for (attack 110)."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

Session = Callable[..., Any]
Python = Callable[[Path, str], list[str]]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

SERVER = """
family, host, port = socket.FAMILY, "HOST", PORT
server = socket.socket(family)
server.bind((host, port))
server.listen()
client = socket.socket(family)
client.connect(("TARGET", port))
accepted, peer = server.accept()
print(server.getsockname()[:2], client.getpeername()[:2], accepted.getsockname()[:2])
assert peer == client.getsockname() == accepted.getpeername()
"""


def server_code(host: str, target: str, port: int) -> str:
    family = "AF_INET6" if ":" in host else "AF_INET"
    values = {"FAMILY": family, "HOST": host, "TARGET": target, "PORT": str(port)}
    code = SERVER
    for key, value in values.items():
        code = code.replace(key, value)
    return code


@pytest.fixture
def port() -> int:
    """A port that a program asks for. Under the library nobody binds it, so it need not be free."""
    return random.randrange(3000, 9000)


@pytest.mark.attack(110)
@pytest.mark.parametrize(
    ("host", "target", "own_end"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0", "127.0.0.1"),
        ("::1", "::1", "::1"),
        ("::", "::1", "::1"),
        ("::", "::ffff:127.0.0.1", "::ffff:127.0.0.1"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_a_server_on_any_local_address_sees_its_own_port(
    stand_in: Session, python: Python, port: int, host: str, target: str, own_end: str
) -> None:
    session = stand_in("port")
    (line,) = python(session.path, server_code(host, target, port))
    assert line == f"{(host, port)} {(own_end, port)} {(own_end, port)}"
    assert session.window_port(port) in range(session.base, session.base + 32)
    assert [request[0] for request in session.requests] == [port]


def test_datagrams_go_to_the_mapped_port_and_come_from_the_one_that_was_asked_for(
    stand_in: Session, python: Python, port: int
) -> None:
    session = stand_in("port")
    code = f"""
one, two = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
one.bind(("127.0.0.1", {port})); two.bind(("127.0.0.1", {port + 1}))
one.sendto(b"a", ("127.0.0.1", {port + 1})); print(two.recvfrom(1))
one.sendmsg([b"b"], [], 0, ("127.0.0.1", {port + 1})); print(two.recvmsg(1)[3])
two.connect(("127.0.0.1", {port})); two.send(b"c"); print(one.recvfrom(1), two.getpeername())
"""
    here = ("127.0.0.1", port)
    assert python(session.path, code) == [str((b"a", here)), str(here), f"{(b'c', ('127.0.0.1', port + 1))} {here}"]
    assert {request[2] for request in session.requests} == {socket.IPPROTO_UDP}


def test_a_fortified_program_is_told_the_same_and_still_stopped_when_it_reads_too_much(
    stand_in: Session, program: Callable[..., Path], injected: Run, port: int
) -> None:
    session = stand_in("port")
    fortified = program("fortified", "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")
    assert b"__recvfrom_chk" in fortified.read_bytes()
    assert injected(session.path, fortified, port, 8).stdout == f"{port}\n"
    assert injected(session.path, fortified, port, 9).returncode == -signal.SIGABRT


@pytest.mark.attack(111)
def test_any_port_is_a_port_of_the_window(stand_in: Session, python: Python) -> None:
    session = stand_in("port")
    code = """
bound, unnamed = socket.socket(), socket.socket()
bound.bind(("127.0.0.1", 0)); unnamed.listen()
print(bound.getsockname()[1], unnamed.getsockname()[1])
"""
    (line,) = python(session.path, code)
    first, second = map(int, line.split())
    assert first != second
    assert {first, second} <= set(range(session.base, session.base + 32))


def test_a_port_is_shared_by_those_who_say_so_and_taken_for_others(
    stand_in: Session, python: Python, port: int
) -> None:
    session = stand_in("port")
    code = f"""
import errno
def server(*options):
    made = socket.socket()
    for option in options: made.setsockopt(socket.SOL_SOCKET, option, 1)
    made.bind(("127.0.0.1", {port})); made.listen()
    return made
shared = [server(socket.SO_REUSEPORT) for _ in range(2)]
try: server()
except OSError as error: print(errno.errorcode[error.errno])
"""
    assert python(session.path, code) == ["EADDRINUSE"]
    assert len(session.requests) == 1, "the second bind finds its port in the map"


def test_a_forked_child_reaches_what_its_parent_serves(stand_in: Session, python: Python, port: int) -> None:
    session = stand_in("port")
    code = f"""
server = socket.create_server(("127.0.0.1", {port}))
if os.fork() == 0:
    socket.create_connection(("127.0.0.1", {port})).send(b"hello"); os._exit(0)
print(server.accept()[0].recv(5)); os.wait()
"""
    assert python(session.path, code) == ["b'hello'"]


def test_a_passing_port_is_reached_as_it_is(stand_in: Session, python: Python) -> None:
    session = stand_in("port")
    with socket.create_server(("127.0.0.1", 0)) as door:
        door_port = door.getsockname()[1]
        session.set(session.base + 1, door_port)
        session.map.passing[0], session.map.passing_count = door_port, 1
        code = f"print(socket.create_connection(('127.0.0.1', {door_port})).getpeername()[1])"
        assert python(session.path, code) == [str(door_port)]


@pytest.mark.attack(110)
@pytest.mark.parametrize(
    ("host", "target", "own_end"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0", "127.0.0.1"),
        ("::1", "::1", "::1"),
        ("::", "::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_on_a_device_of_its_own_a_program_still_sees_localhost(
    stand_in: Session, python: Python, device: str, port: int, host: str, target: str, own_end: str
) -> None:
    session = stand_in("device", device)
    (line,) = python(session.path, server_code(host, target, port))
    assert line == f"{(host, port)} {(own_end, port)} {(own_end, port)}"
    assert [request[0] for request in session.requests] == [port]


def test_datagrams_on_a_device_come_from_localhost(stand_in: Session, python: Python, device: str, port: int) -> None:
    session = stand_in("device", device)
    code = f"""
def udp(family, *name):
    made = socket.socket(family, socket.SOCK_DGRAM); made.bind(name)
    return made
one, two = udp(socket.AF_INET, "127.0.0.1", {port}), udp(socket.AF_INET6, "::1", {port + 1})
one.sendto(b"a", ("127.0.0.1", {port + 1})); print(two.recvfrom(1)[1][:2])
two.sendto(b"b", ("::1", {port})); print(one.recvfrom(1)[1])
late = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
late.sendto(b"c", ("localhost", {port})); print(one.recvfrom(1)[1][0])
"""
    expected = [str(("::1", port)), str(("127.0.0.1", port + 1)), "127.0.0.1"]
    assert python(session.path, code) == expected


def test_a_device_that_the_program_names_itself_is_shown_by_its_name(
    stand_in: Session, python: Python, device: str, port: int
) -> None:
    session = stand_in("device", device)
    (line,) = python(session.path, server_code(device, device, port))
    assert line == f"{(device, port)} {(device, port)} {(device, port)}"


def test_two_sessions_have_the_same_port_on_two_devices(
    stand_in: Session, python: Python, device: str, port: int
) -> None:
    session = stand_in("device", device)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        taken = foreign.getsockname()[1]
        (line,) = python(session.path, server_code("127.0.0.1", "127.0.0.1", taken))
        assert line.startswith(f"('127.0.0.1', {taken})")


def test_a_socket_for_ipv6_only_cannot_have_an_ipv4_device(
    stand_in: Session, python: Python, device: str, port: int
) -> None:
    session = stand_in("device", device)
    code = f"""
import errno
made = socket.socket(socket.AF_INET6)
made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
try: made.bind(("::1", {port}))
except OSError as error: print(errno.errorcode[error.errno])
"""
    assert python(session.path, code) == ["EADDRNOTAVAIL"]
    assert session.requests == []


def test_strategy_fail_asks_outside_the_window_and_says_what_the_supervisor_says(
    stand_in: Session, python: Python, port: int
) -> None:
    session = stand_in("fail")
    session.answer = lambda request: (0, session.base + 5) if request.port == 0 else (errno.EACCES, 0)
    code = f"""
import errno
def attempt(*name):
    try: made = socket.socket(); made.bind(name); return made.getsockname()[1]
    except OSError as error: return errno.errorcode[error.errno]
print(attempt("127.0.0.1", {session.base}), attempt("127.0.0.1", {port}), attempt("", 0))
"""
    assert python(session.path, code) == [f"{session.base} EACCES {session.base + 5}"]
    assert [request[0] for request in session.requests] == [port, 0]


def test_a_supervisor_that_is_gone_or_silent_is_a_refusal(stand_in: Session, python: Python, port: int) -> None:
    """INV-1, INV-10: the program goes on while the answer is still to come."""
    code = f"""
import errno
try: socket.socket().bind(("127.0.0.1", {port}))
except OSError as error: print(errno.errorcode[error.errno])
print(len(os.listdir("/proc/self/fd")) < 6)
"""
    session = stand_in("port")
    over = threading.Event()
    session.answer = lambda request: (0, session.base) if over.wait() else (0, 0)
    try:
        assert python(session.path, code) == ["EACCES", "True"]
        assert [request[0] for request in session.requests] == [port]
    finally:
        over.set()
    session.close()
    session.map.door = 1
    assert python(session.path, code) == ["EACCES", "True"]


@pytest.mark.parametrize("answer", [(0, 0), (-1, 0)])
def test_a_reply_that_makes_no_sense_is_a_refusal(
    stand_in: Session, python: Python, port: int, answer: tuple[int, int]
) -> None:
    session = stand_in("port")
    session.answer = lambda request: answer
    code = f"""
import errno
try: socket.socket().bind(("127.0.0.1", {port}))
except OSError as error: print(errno.errorcode[error.errno])
"""
    assert python(session.path, code) == ["EACCES"]


@pytest.mark.attack(105)
def test_errno_buffers_and_lengths_are_the_kernels(
    stand_in: Session, program: Callable[..., Path], injected: Run, port: int
) -> None:
    session = stand_in("port")
    done = injected(session.path, program("errno"), port)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.attack(105)
def test_hooks_run_in_signal_handlers(
    stand_in: Session, program: Callable[..., Path], injected: Run, port: int
) -> None:
    session = stand_in("port")
    session.set(session.base + 3, port)
    done = injected(session.path, program("handler"), port)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


@pytest.mark.attack(105)
def test_hooks_run_in_other_libraries_constructors(
    stand_in: Session, program: Callable[..., Path], injected: Run, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both orders: a library that was preloaded before ours, and one after."""
    session = stand_in("port")
    monkeypatch.setenv("EARLY_PORT", str(port))
    library = program("constructor", "-shared", "-fPIC")
    for place in ("before", "after"):
        done = injected(session.path, "/bin/true", **{place: str(library)})
        assert (done.returncode, done.stdout, done.stderr) == (0, f"early {port}\n", "")


@pytest.mark.attack(105)
def test_eight_threads_that_fork_and_connect_lose_nothing(
    stand_in: Session, program: Callable[..., Path], injected: Run, port: int
) -> None:
    session = stand_in("port")
    session.set(session.base + 3, port)
    done = injected(session.path, program("storm"), 60, port, timeout=60)
    assert (done.returncode, done.stdout) == (0, "lost 0\n"), done.stderr


@pytest.mark.attack(105)
def test_nothing_is_lost_when_a_program_closes_every_descriptor(stand_in: Session, python: Python, port: int) -> None:
    session = stand_in("port")
    code = f"""
os.closerange(3, 1 << 16)
os.close(0)
server = socket.create_server(("127.0.0.1", {port}))
print(server.getsockname()[1], server.fileno())
"""
    assert python(session.path, code) == [f"{port} 0"]


def test_nothing_is_allocated_after_the_start(
    stand_in: Session, program: Callable[..., Path], injected: Run, port: int
) -> None:
    session = stand_in("port")
    done = injected(session.path, program("allocations"), port)
    assert (done.returncode, done.stdout) == (0, "allocated 0 times, good\n"), done.stderr


def test_sockets_of_other_families_are_not_looked_at(stand_in: Session, python: Python, tmp_path: Path) -> None:
    session = stand_in("port")
    code = f"""
server = socket.socket(socket.AF_UNIX); server.bind({str(tmp_path / "s")!r}); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect({str(tmp_path / "s")!r})
print(client.getpeername() == {str(tmp_path / "s")!r}, repr(server.accept()[1]))
raw = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); raw.bind((0, 0)); print(raw.getsockname()[0] > 0)
"""
    assert python(session.path, code) == ["True ''", "True"]
    assert session.requests == []


def test_a_web_server_of_pythons_is_reached_by_the_port_that_it_says(
    stand_in: Session, python: Python, port: int
) -> None:
    session = stand_in("port")
    code = f"""
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(("", {port}), http.server.SimpleHTTPRequestHandler)
server.RequestHandlerClass.log_message = lambda *_: None
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open("http://localhost:{port}/").status)
os._exit(sys.stdout.flush() or 0)
"""
    assert python(session.path, code) == [f"{port} 200"]


def test_the_host_sees_the_window_port(stand_in: Session, port: int) -> None:
    from netsandbox_interpose import library

    session = stand_in("port")
    code = f"import socket; s = socket.create_server(('127.0.0.1', {port})); print('up', flush=True); input()"
    environment = {**os.environ, "LD_PRELOAD": library.LIBRARY, "NETSANDBOX_PORT_MAP": str(session.path)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        socket.create_connection(("127.0.0.1", session.window_port(port)), timeout=30).close()
        server.communicate(b"\n", timeout=30)
