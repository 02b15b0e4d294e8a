"""Everything that a measurement may need. Each part is created at its first use and removed at the end."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from functools import cached_property

import place
from box import Box
from processes import Server, await_port, free_port
from product import Product
from servers import ORIGIN, Authority, Dnsmasq, Mitmdump, Origin, Squid


class Rig:
    """One for a run of the benchmarks; use as a context manager."""

    def __init__(self, against: str | None = None) -> None:
        self._against = against
        place.prepare()
        self.environment = place.environment()
        self._stack = ExitStack()
        self._boxes = ExitStack()

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self._boxes.close()
        self._stack.close()
        place.clear()

    @cached_property
    def product(self) -> Product:
        return Product()

    @cached_property
    def origin(self) -> Origin:
        origin = Origin()
        self._stack.callback(origin.server.stop)
        return origin

    @cached_property
    def authority(self) -> Authority:
        authority = Authority()
        self._stack.callback(authority.server.stop)
        return authority

    @cached_property
    def squid(self) -> Squid | None:
        try:
            squid = Squid()
        except LookupError as error:
            print(f"bench: {error}", flush=True)
            return None
        self._stack.callback(squid.stop)
        return squid

    @cached_property
    def dnsmasq(self) -> Dnsmasq | None:
        try:
            dnsmasq = Dnsmasq()
        except LookupError as error:
            print(f"bench: {error}", flush=True)
            return None
        self._stack.callback(dnsmasq.server.stop)
        return dnsmasq

    @cached_property
    def mitmdump(self) -> Mitmdump:
        """Of the same version as the engine's mitmproxy."""
        mitmdump = Mitmdump(self.product.mitmdump, self.origin.certificate)
        self._stack.callback(mitmdump.server.stop)
        return mitmdump

    @cached_property
    def load(self) -> str:
        """The load generator, static so that nothing of the session can change how it runs."""
        return _compiled("load", "-static")

    @cached_property
    def tls_load(self) -> str:
        """The load generator for HTTPS."""
        return _compiled("tls_load", "-lssl", "-lcrypto")

    @cached_property
    def stream(self) -> str:
        """Servers and clients for published ports; dynamic, so that a preload library finds it."""
        return _compiled("stream")

    def relay_to(self, port: int) -> int:
        """The port of a minimal splice relay to *port*."""
        own = free_port()
        log = place.WORK / f"relay-{own}.log"
        server = Server([self.stream, "relay", str(own), str(port)], self.environment, log)
        self._stack.callback(server.stop)
        if not await_port(own):
            raise RuntimeError(f"the relay in C does not listen: {log.read_text()}")
        return own

    @cached_property
    def interposer(self) -> str:
        return _compiled("interposer", "-ldl")

    @cached_property
    def before(self) -> Product | None:
        """The product at another commit, if one was given to compare with."""
        return Product(place.source_of(self._against), "before") if self._against else None

    @property
    def to_origin(self) -> list[str]:
        """Options that allow the origin by its name and by its address."""
        ports = (self.origin.port, self.origin.secure, self.origin.alert)
        options = ["--upstream-dns", f"127.0.0.1:{self.authority.port}"]
        for port in ports:
            options += ["--allow-domain", f"{ORIGIN}:{port}", "--allow-address", f"127.0.0.1/32:{port}"]
        return options

    def box(self, options: list[str], environment: dict[str, str] | None = None) -> Box:
        box = Box(self.product, options, environment or {})
        self._boxes.callback(box.stop)
        return box

    def stop_boxes(self) -> None:
        """Stop idle sessions between two measurements: `ps` would query them, and their ports are published."""
        self._boxes.close()


def _compiled(name: str, *flags: str) -> str:
    program = str(place.PROJECT / name)
    source = str(place.BENCH / f"{name}.c")
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-pthread", "-o", program, source, *flags], check=True)
    return program
