"""What the command inherits from its caller is no way out: descriptors, sockets, the terminal (INV-7)."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE, lines

pytestmark = [pytest.mark.usefixtures("user_namespaces")]


@pytest.mark.attack(132)
def test_nothing_but_the_standard_descriptors_is_inherited(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    """132: files, folders, listeners and connections that the caller left open are closed."""
    server = canary.tcp()
    home = netsandbox.home()
    folder = os.open("/", os.O_RDONLY)
    listener, connection = socket.create_server(("127.0.0.1", 0)), socket.create_connection((server.host, server.port))
    high = os.dup2(connection.fileno(), 900)
    script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) > 2))"
    inside = [home.identity.python, "-m", "netsandbox", "run", "--", home.identity.python, "-c", script]
    with listener, connection:
        given = (folder, listener.fileno(), connection.fileno(), high)
        for fd in given:
            os.set_inheritable(fd, True)
        run = subprocess.run(
            inside,
            env=home.environment(None),
            cwd=home.work,
            capture_output=True,
            text=True,
            pass_fds=given,
            check=False,
        )
    os.close(folder)
    os.close(high)
    assert run.stdout == "[3]\n", run.stderr  # the listing's own
    assert server.wait(1)
    assert server.received == b""


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(132)
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_an_internet_socket_as_standard_input_cannot_be_aimed_anew(netsandbox: Any, canary: Any, kind: int) -> None:
    """132: it was made in the host's network, where no door stands; the session does not start with it."""
    forbidden, udp = canary.tcp(), canary.udp()
    script = f"""
import socket
sock = socket.socket(fileno=0)
for address in (("127.0.0.1", {forbidden.port}), ("127.0.0.1", {udp.port})):
    try:
        sock.connect(address); sock.send(b"secret")
    except OSError:
        pass
"""
    with socket.socket(socket.AF_INET, kind) as given:
        running = netsandbox.spawn("run", "--", netsandbox.python, "-c", script, stdin=given.fileno())
        _, err = running.process.communicate(timeout=20)
    assert running.process.returncode == 1
    assert err.startswith(b"netsandbox: standard input is a socket")
    assert (forbidden.accepts, udp.datagrams) == (0, [])


TERMINAL = (
    PRELUDE
    + r"""
int main(void)
{
    struct winsize size;
    int discipline = 27; /* N_NULL */
    TRY("tiocsti", ioctl(0, TIOCSTI, "x"));
    TRY("tiocsti-high", syscall(SYS_ioctl, 0L, 0xABCD00000000UL | TIOCSTI, "x"));
    TRY("tioclinux", ioctl(0, TIOCLINUX, "\3"));
    TRY("tiocexcl", ioctl(0, TIOCEXCL));
    TRY("tiocsetd", ioctl(0, TIOCSETD, &discipline));
    TRY("size", ioctl(0, TIOCGWINSZ, &size));
    said("end", "ok");
    return 0;
}
"""
)


@pytest.mark.ordinary_user
def test_nothing_can_be_typed_into_the_callers_terminal(netsandbox: Any, probe: Any) -> None:
    running = netsandbox.spawn("run", "--", probe("terminal", TERMINAL), terminal=True)
    text = running.read_until(b"end ok").decode().replace("\r", "")
    refused = ("tiocsti", "tiocsti-high", "tioclinux", "tiocexcl", "tiocsetd")
    assert lines(text) == {**dict.fromkeys(refused, "EPERM"), "size": "ok", "end": "ok"}


TIOCGEXCL = 0x80045440
CLOSE_TERMINAL = """
import fcntl, termios
try:
    fcntl.ioctl(0, termios.TIOCEXCL)
except OSError:
    pass
print("end", "ok", flush=True)
input()
"""


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.attack(222)
def test_the_command_cannot_close_the_callers_terminal_to_others(netsandbox: Any) -> None:
    """H10: an exclusive terminal would stay closed to its user after the session."""
    running = netsandbox.spawn("run", "--", netsandbox.python, "-c", CLOSE_TERMINAL, terminal=True)
    running.read_until(b"end ok")
    terminal = os.open(f"/proc/{running.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)  # EBUSY if it is exclusive, but for root
    try:
        assert fcntl.ioctl(terminal, TIOCGEXCL, bytes(4)) == bytes(4)
        fcntl.ioctl(terminal, termios.TIOCEXCL)  # the twin: outside it works, and is seen
        assert fcntl.ioctl(terminal, TIOCGEXCL, bytes(4)) != bytes(4)
    finally:
        os.close(terminal)
