"""A stand-in supervisor, small C programs, and a way to run a program with the library in it."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.rig import mac_wheel as wheels
from tests.rig import ports
from tests.rig.authority import Authority
from tests.rig.bridge import Bridge
from tests.rig.canary import Canaries
from tests.rig.mac_doors import MacDoors, compile_library

PROGRAMS = Path(__file__).parent / "programs"
SOURCES = Path(__file__).resolve().parents[2] / "interpose" / "src"
WINDOW = 32


class StandIn:
    """The map and the door of one session. `answer(request)` gives (errno, port); the default maps every port."""

    def __init__(self, folder: Path, strategy: str, device: str) -> None:
        from netsandbox_interpose._native import ffi, lib

        self.ffi, self.lib = ffi, lib
        self.path = folder / "map"
        self.path.write_bytes(bytes(ffi.sizeof("struct ns_map")))
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.map: Any = ffi.from_buffer("struct ns_map *", self.memory)
        self.requests: list[tuple[int, str, int]] = []
        self.answer: Callable[[Any], tuple[int, int]] = self.assign
        self._door = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.base = ports.free_window(WINDOW)
        token = list(os.urandom(lib.NS_TOKEN_BYTES))
        self.map.magic, self.map.version, self.map.size = lib.NS_MAP_MAGIC, lib.NS_MAP_VERSION, len(self.memory)
        self.map.strategy = getattr(lib, f"NS_STRATEGY_{strategy.upper()}")
        self.map.device = list(socket.inet_aton(device))
        self.map.base, self.map.count, self.map.token = self.base, WINDOW, token
        self.map.door = self._door.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def set(self, port: int, requested: int) -> None:
        self.lib.ns_map_begin(self.map)
        self.map.requested[port - self.base], self.map.window[requested] = requested, port
        self.lib.ns_map_end(self.map)

    def window_port(self, requested: int) -> int:
        """The port that stands for *requested*, or 0."""
        view = self.ffi.new("struct ns_view *")
        assert self.lib.ns_map_look(self.map, requested, view) == 0
        return int(view.window)

    def assign(self, request: Any) -> tuple[int, int]:
        if self.map.strategy == self.lib.NS_STRATEGY_DEVICE:
            return 0, request.port
        taken = self.window_port(request.port) if request.port else 0
        free = (self.base + slot for slot in range(WINDOW) if not self.map.requested[slot])
        port = taken or next(free)
        self.set(port, request.port or port)
        return 0, port

    def close(self) -> None:
        """Also what a supervisor that died looks like: while somebody is in accept, a closed socket still listens."""
        with contextlib.suppress(OSError):  # it was closed already
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join(20)

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            with caller, contextlib.suppress(OSError):  # who requested may be gone
                self._reply(caller)

    def _reply(self, caller: socket.socket) -> None:
        data = caller.recv(self.ffi.sizeof("struct ns_request"), socket.MSG_WAITALL)
        if len(data) != self.ffi.sizeof("struct ns_request"):
            return
        request = self.ffi.from_buffer("struct ns_request *", data)
        assert bytes(request.token) == bytes(self.map.token)
        self.requests.append((request.port, socket.inet_ntoa(bytes(request.address)), request.protocol))
        error, port = self.answer(request)
        reply = self.ffi.new("struct ns_reply *", {"magic": self.lib.NS_MAP_MAGIC, "error": error, "port": port})
        caller.sendall(bytes(self.ffi.buffer(reply)))


@pytest.fixture(scope="session")
def mac_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the wheel for Macs, copied once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "mac-wheel"
    folder.mkdir(exist_ok=True)
    with wheels.locked(folder):
        sources = folder / "sources"
        return sources if sources.exists() else wheels.copy_sources(sources)


@pytest.fixture(scope="session")
def mac_wheel(mac_sources: Path) -> Path:
    """The wheel for Macs, built once for all workers."""
    pytest.importorskip("ziglang", reason="no cross compiler (package ziglang of the test extra)")
    dist = mac_sources.parent / "dist"
    with wheels.locked(mac_sources.parent):
        return next(dist.glob("*.whl"), None) or wheels.build(mac_sources, dist)


@pytest.fixture(scope="session", params=["aarch64", "x86_64"])
def library(request: pytest.FixtureRequest) -> bytes:
    """The preload library for Macs, in each architecture."""
    from tests.rig import darwin

    return darwin.compiled(request.param)


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[Callable[..., StandIn]]:
    """stand_in("port" | "device" | "fail", device="0.0.0.0") -> a session's map and door."""
    made: list[StandIn] = []

    def make(strategy: str = "port", device: str = "0.0.0.0") -> StandIn:
        made.append(StandIn(tmp_path, strategy, device))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def device() -> str:
    """A loopback address that no other test has. Every address of 127/8 is there on Linux."""
    return f"127.{random.randrange(64, 250)}.{random.randrange(1, 250)}.1"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory, compiler: str) -> Callable[..., Path]:
    """program("errno") -> tests/interpose/programs/errno.c, compiled once for all tests."""

    @cache
    def build(name: str, *flags: str) -> Path:
        target = tmp_path_factory.mktemp(name) / name
        command = [compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", *flags]
        subprocess.run([*command, str(PROGRAMS / f"{name}.c"), "-o", str(target), "-lpthread"], check=True)
        return target

    return build


@pytest.fixture
def injected() -> Callable[..., subprocess.CompletedProcess[str]]:
    """injected(map_path, command…) -> the finished program, which ran with the library in it."""
    from netsandbox_interpose import library

    def run(
        path: Path,
        *command: object,
        before: str = "",
        after: str = "",
        timeout: float = 30,
        instead: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        entries = [entry for entry in (before, str(instead or library.LIBRARY), after) if entry]
        environment = {**os.environ, "LD_PRELOAD": ":".join(entries), "NETSANDBOX_PORT_MAP": str(path)}
        return subprocess.run(
            [str(part) for part in command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    return run


@pytest.fixture
def python(injected: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[[Path, str], list[str]]:
    """python(map_path, code) -> the lines that the code printed, under the library."""

    def run(path: Path, code: str) -> list[str]:
        done = injected(path, sys.executable, "-c", f"import os, socket, subprocess, sys\n{code}")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture(scope="session")
def egress_library(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library as a Mac has it, for Linux: with the way to the doors."""
    return compile_library(compiler, SOURCES, tmp_path_factory.mktemp("egress"))


@pytest.fixture(scope="session")
def bridge() -> Bridge:
    """The way over protected programs, alone."""
    return Bridge()


@pytest.fixture(scope="session")
def bridge_library(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library as a Mac has it, for Linux: with the way over protected programs, and what stands for dyld there."""
    more = ("-DNS_BRIDGE", str(PROGRAMS / "dyld.c"))
    return compile_library(compiler, SOURCES, tmp_path_factory.mktemp("bridge"), *more)


@pytest.fixture
def doors(
    stand_in: Callable[..., StandIn],
    canary: Canaries,
    authority: Authority,
    egress_library: Path,
    injected: Callable[..., subprocess.CompletedProcess[str]],
) -> MacDoors:
    """A Mac's session with both doors."""
    return MacDoors(stand_in("port"), canary, authority, partial(injected, instead=egress_library))
