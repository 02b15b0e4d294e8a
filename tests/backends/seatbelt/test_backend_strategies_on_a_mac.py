"""A server in a session of a Mac, under each strategy: where its program believes to be, and where the Mac finds it.

The program is of our own making, since dyld keeps the library out of the system's.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.backends.seatbelt.reservation import can_bind
from netsandbox.errors import HostError

pytestmark = [
    pytest.mark.macos,
    pytest.mark.skipif(sys.platform != "darwin", reason="applies Seatbelt, which only a Mac has"),
]

COUNT = 4
DEVICE, NOBODYS = "127.0.0.2", "127.77.77.77"
GREETING = b"from the session"
# Prints where it listens by its own account, or why it does not, and greets one visitor. Arguments: address, port.
SERVER = """
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct pollfd visitor = {.fd = s, .events = POLLIN};

    if (count != 3)
        return 2;
    at.sin_port = htons(atoi(words[2]));
    inet_pton(AF_INET, words[1], &at.sin_addr);
    if (bind(s, (struct sockaddr *)&at, sizeof at) != 0 || listen(s, 1) != 0)
        return printf("refused: %s\\n", strerror(errno)), 0;
    getsockname(s, (struct sockaddr *)&at, &size);
    printf("listens on %s:%d\\n", inet_ntoa(at.sin_addr), ntohs(at.sin_port));
    if (poll(&visitor, 1, 20000) == 1)
        write(accept(s, NULL, NULL), "from the session", 16);
    return 0;
}
"""


@pytest.fixture
def server(tmp_path: Path, system: MacSystem) -> Callable[[Path], str]:
    """Compiles the program into a folder; its path."""
    compiler = shutil.which("cc")
    if compiler is None or not os.path.exists(system.library):
        pytest.skip("needs a compiler and the library")

    def compile_into(folder: Path) -> str:
        source = tmp_path / "server.c"
        source.write_text(SERVER)
        subprocess.run([compiler, "-o", folder / "server", source], check=True)
        return str(folder / "server")

    return compile_into


def is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def base() -> int:
    """The first port of a window that nobody has, nor had a moment ago."""
    return next(base for base in range(24100, 29000, 10) if all(map(is_free, range(base, base + COUNT))))


class Visitor(threading.Thread):
    """Goes round the window's ports on *address* until somebody greets; `met` is the port."""

    def __init__(self, address: str, base: int) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._base = base
        self._over = threading.Event()
        self.met: int | None = None

    def __enter__(self) -> Visitor:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while self.met is None and not self._over.wait(0.05):
            for port in range(self._base, self._base + COUNT):
                try:
                    with socket.create_connection((self._address, port), 5) as met:
                        if met.recv(100) == GREETING:
                            self.met = port
                            return
                except OSError:
                    continue


def window(strategy: str, base: int | None = None, device: str | None = None) -> LocalhostSettings:
    return LocalhostSettings(strategy=strategy, chosen=True, base=base, count=COUNT, device=device)


def test_fail_lets_a_server_have_a_port_of_the_window(mac: Any, server: Any, place: Path, base: int) -> None:
    with Visitor("127.0.0.1", base) as visitor:
        ended = mac(server(place / "work"), "127.0.0.1", str(base + 1), localhost=window("fail", base))
    assert ended.stdout == f"listens on 127.0.0.1:{base + 1}\n", ended.stderr
    assert visitor.met == base + 1


def test_fail_gives_port_0_a_port_of_the_window(mac: Any, server: Any, place: Path, base: int) -> None:
    with Visitor("127.0.0.1", base) as visitor:
        ended = mac(server(place / "work"), "127.0.0.1", "0", localhost=window("fail", base))
    assert ended.stdout == f"listens on 127.0.0.1:{visitor.met}\n", ended.stderr


def test_fail_refuses_any_other_port(mac: Any, server: Any, place: Path, base: int) -> None:
    ended = mac(server(place / "work"), "127.0.0.1", str(base + COUNT), localhost=window("fail", base))
    assert ended.stdout.startswith("refused: "), ended.stderr
    assert [record["port"] for record in ended.of("bind") if record["verdict"] == "deny"] == [base + COUNT]


def test_rewire_port_gives_a_server_the_port_that_it_believes_to_have(
    mac: Any, server: Any, place: Path, base: int
) -> None:
    with Visitor("127.0.0.1", base) as visitor:
        ended = mac(server(place / "work"), "127.0.0.1", "3000", localhost=window("rewire-port", base))
    assert ended.stdout == "listens on 127.0.0.1:3000\n", ended.stderr
    assert visitor.met is not None
    assert ended.of("rewrite")


def test_rewire_device_gives_a_server_an_address_of_the_sessions(mac: Any, server: Any, place: Path, base: int) -> None:
    if not can_bind(DEVICE):
        pytest.skip(f"needs an alias, which root makes: sudo ifconfig lo0 alias {DEVICE}")
    with Visitor(DEVICE, base) as visitor:
        ended = mac(server(place / "work"), "127.0.0.1", str(base), localhost=window("rewire-device", base, DEVICE))
    if ended.stdout.startswith("refused: "):
        pytest.skip("Seatbelt's localhost is not that address here, so nothing listens: see the question localhost-net")
    assert ended.stdout == f"listens on 127.0.0.1:{base}\n", ended.stderr
    assert visitor.met == base


def test_rewire_device_without_its_address_runs_nothing_and_says_how_to_have_it(mac: Any, place: Path) -> None:
    with pytest.raises(HostError, match=f"sudo ifconfig lo0 alias {NOBODYS}"):
        mac("/usr/bin/touch", "ran", localhost=window("rewire-device", device=NOBODYS))
    assert not (place / "work" / "ran").exists()


def test_a_program_of_the_system_listens_in_the_window_only(mac: Any) -> None:
    """`nc -l` is without the library: Seatbelt alone decides, and what it refuses ends at once."""
    text = (
        "listen() { /usr/bin/nc -l 127.0.0.1 $1 & sleep 0.5; kill $! 2>/dev/null && echo listens || echo refused; }; "
        "listen $LISTENING_BASE_PORT; listen $((LISTENING_BASE_PORT + LISTENING_PORT_COUNT))"
    )
    ended = mac("/bin/bash", "-c", text)
    assert ended.stdout == "listens\nrefused\n", ended.stderr
