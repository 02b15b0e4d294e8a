"""The doors of a Mac's session on Linux: one takes connections behind a preamble, the other answers DNS.

Programs run with the library as a Mac has it (NS_EGRESS) and a made-up port map; what they meant comes to `meant`.
"""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.rig.authority import Authority
from tests.rig.canary import Canaries, StreamCanary, Visit
from tests.rig.http import serve_http
from tests.rig.threaded_server import read_exactly

PREAMBLE = 36
BODY = b"by the door\n"


class MacDoors:
    """*session* is a stand-in's map, which learns of the doors. `serve` speaks after the preamble; HTTP by default."""

    def __init__(self, session: Any, canaries: Canaries, authority: Authority, run: Callable[..., Any]) -> None:
        self.session = session
        self.authority = authority
        self.meant: list[tuple[str, int]] = []
        self.serve: Callable[[socket.socket, Visit], None] = self.serve_http
        self.servers = self._open(canaries)
        self._run = run
        session.map.egress, session.map.resolver = self.servers[0].port, authority.port
        session.map.passing[0], session.map.passing[1] = self.servers[0].port, authority.port
        session.map.passing_count = 2

    def _open(self, canaries: Canaries) -> list[StreamCanary]:
        first = canaries.tcp(script=self._take)
        return [first, canaries.tcp("::1", first.port, script=self._take)]

    @property
    def accepts(self) -> int:
        return sum(server.accepts for server in self.servers)

    def serve_http(self, stream: socket.socket, visit: Visit) -> None:
        serve_http(stream, visit.data, lambda *_: (200, {}, BODY))

    def echo(self, stream: socket.socket, visit: Visit) -> None:
        while data := stream.recv(65536):
            stream.sendall(data)

    def close(self) -> None:
        for server in self.servers:
            server.close()

    def _take(self, stream: socket.socket, visit: Visit) -> None:
        head = read_exactly(stream, PREAMBLE)
        if len(head) != PREAMBLE or head[0] != 1 or head[20:] != bytes(self.session.map.token):
            raise ValueError(f"no preamble: {head!r}")
        address = ipaddress.ip_address(head[4:8] if head[1] == 4 else head[4:20])
        self.meant.append((str(address), int.from_bytes(head[2:4], "big")))
        self.serve(stream, visit)

    def run(self, *command: object, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """The finished program; whatever it meant is in `meant` by then."""
        done: subprocess.CompletedProcess[str] = self._run(self.session.path, *command, timeout=timeout)
        assert all(server.wait(server.accepts) for server in self.servers)
        return done

    def python(self, code: str) -> list[str]:
        """The lines that the code printed. It has `attempt(call)`, which gives the name of an error."""
        done = self.run(sys.executable, "-c", PRELUDE + code)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


PRELUDE = """
import errno, os, socket, sys
def attempt(call, *arguments):
    try: return call(*arguments)
    except socket.gaierror as error:
        return next(name for name in dir(socket) if name.startswith("EAI_") and getattr(socket, name) == error.errno)
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
"""


def compile_library(compiler: str, sources: Path, folder: Path, *more: str) -> Path:
    """The preload library with what only a Mac's has. *more*: flags and units."""
    product = folder / "libnetsandbox_interpose.so"
    flags = ["-D_GNU_SOURCE", "-DNS_EGRESS", "-std=gnu11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-shared"]
    units = sorted(str(unit) for unit in sources.glob("*.c"))
    subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", *units, *more, "-o", product, "-ldl"], check=True)
    return product


def own_address() -> str | None:
    """An address of this machine that other machines would reach it by, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        address = ipaddress.ip_address(sock.getsockname()[0])
    return None if address.is_loopback else str(address)
