"""The probes that try to reach something: by address, through the doors, by name, through Unix sockets.

`network_probes` are the probes of Linux; `mac_probes` uses those that apply to a Mac.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from netsandbox_portmap import DNS_PORT, MIXED_PORT

from netsandbox.doctor import judgement
from netsandbox.doctor.judgement import Judgement
from netsandbox.doctor.probe import REACHED, SILENCE, Absent, Evidence, Probe, canary_probe, logged
from netsandbox.doctor.scene import CONTROL_NAME, REBOUND_NAME, Scene, has_loopback6

DENIED_NAME = "denied.doctor.test"
TXT = 16
INSIDE_ONLY = "only from inside"
METADATA = "169.254.169.254"
GLOBAL6 = "2001:db8::1"
ELSEWHERE = "192.0.2.53"


def network_probes(scene: Scene) -> list[Probe | Absent]:
    """Controls come first: they also prove that the doors are open."""
    return [
        *_controls(scene),
        *ipv4(scene),
        logged("tcp-metadata", METADATA, 80),
        *ipv6(scene),
        logged("tcp6-global", GLOBAL6, 443),
        *doors(scene, MIXED_PORT),
        *other_servers(scene),
        *_resolver(scene),
        _abstract(scene),
        _own(scene),
        *unix_paths(scene),
    ]


def _controls(scene: Scene) -> list[Probe | Absent]:
    name, door = scene.by_name, scene.by_door
    return [
        Probe(
            "control-name",
            REACHED,
            "visit",
            {"name": CONTROL_NAME, "port": name.port},
            lambda seen: judgement.arrival(seen.answer, name.visits),
        ),
        Probe(
            "control-door",
            REACHED,
            "connect-door",
            {"door": MIXED_PORT, "host": "127.0.0.1", "port": door.port},
            lambda seen: judgement.arrival(seen.answer, door.visits),
        ),
    ]


def ipv4(scene: Scene) -> list[Probe | Absent]:
    found: list[Probe | Absent] = []
    for suffix, address in (("loopback", "127.0.0.1"), ("host", scene.host4)):
        for name in (f"tcp-{suffix}", f"udp-{suffix}", f"mapped-{suffix}"):
            if address is None:
                found.append(Absent(name, SILENCE, "this host has no IPv4 address but loopback"))
                continue
            attempt = "udp" if name.startswith("udp") else "tcp"
            canary = scene.udp(address) if attempt == "udp" else scene.tcp(address)
            target = f"::ffff:{address}" if name.startswith("mapped") else address
            found.append(canary_probe(name, attempt, canary, host=target, port=canary.port))
    return found


def ipv6(scene: Scene) -> list[Probe | Absent]:
    found: list[Probe | Absent] = []
    for suffix, address in (("loopback", "::1" if has_loopback6() else None), ("host", scene.host6)):
        for attempt in ("tcp", "udp"):
            name = f"{attempt}6-{suffix}"
            if address is None:
                found.append(Absent(name, SILENCE, f"this host has no IPv6 {suffix} address"))
                continue
            canary = scene.tcp(address) if attempt == "tcp" else scene.udp(address)
            family = {"family": int(socket.AF_INET6)} if attempt == "udp" else {}
            found.append(canary_probe(name, attempt, canary, host=address, port=canary.port, **family))
    return found


def doors(scene: Scene, door: int | None) -> list[Probe | Absent]:
    """*door* is a port of the session's localhost; None if the environment names it."""
    connect, socks, rebound = scene.tcp("127.0.0.1"), scene.tcp("127.0.0.1"), scene.tcp("127.0.0.1")
    own = scene.tcp(scene.host4 or "127.0.0.1")
    return [
        canary_probe("door-connect", "connect-door", connect, door=door, host="127.0.0.1", port=connect.port),
        canary_probe("door-connect-host", "connect-door", own, door=door, host=own.address, port=own.port),
        canary_probe("door-socks5", "socks-door", socks, door=door, host="127.0.0.1", port=socks.port),
        # The name and the port are allowed; the address behind them is not.
        canary_probe("door-rebinding", "connect-door", rebound, door=door, host=REBOUND_NAME, port=rebound.port),
    ]


def other_servers(scene: Scene) -> list[Probe | Absent]:
    """Queries to name servers other than the session's."""
    other = scene.other_server

    def direct(prefix: str) -> Callable[[Evidence], Judgement]:
        return lambda seen: judgement.silence(seen.answer, other.received(f"{prefix}.{DENIED_NAME}"))

    return [
        _dns_probe("dns-server-udp", other.address, other.port, f"a.{DENIED_NAME}", direct("a")),
        _dns_probe("dns-server-tcp", other.address, other.port, f"b.{DENIED_NAME}", direct("b"), tcp=True),
        _dns_probe("dns-elsewhere-udp", ELSEWHERE, DNS_PORT, f"c.{DENIED_NAME}", not_forwarded(scene, "c")),
        _dns_probe("dns-elsewhere-tcp", ELSEWHERE, DNS_PORT, f"d.{DENIED_NAME}", not_forwarded(scene, "d"), tcp=True),
    ]


def _resolver(scene: Scene) -> list[Probe | Absent]:
    def text(seen: Evidence) -> Judgement:
        return judgement.silence(seen.answer, scene.upstream.queries[CONTROL_NAME, TXT])

    return [
        _dns_probe("dns-denied-udp", "127.0.0.1", DNS_PORT, f"e.{DENIED_NAME}", not_forwarded(scene, "e")),
        _dns_probe("dns-denied-tcp", "127.0.0.1", DNS_PORT, f"f.{DENIED_NAME}", not_forwarded(scene, "f"), tcp=True),
        _dns_probe("dns-txt", "127.0.0.1", DNS_PORT, CONTROL_NAME, text, kind=TXT),
    ]


def not_forwarded(scene: Scene, prefix: str) -> Callable[[Evidence], Judgement]:
    """A query for a denied name: it must not reach the session's upstream server."""
    return lambda seen: judgement.silence(seen.answer, scene.upstream.received(f"{prefix}.{DENIED_NAME}"))


def _dns_probe(
    name: str, server: str, port: int, question: str, judge: Callable[[Evidence], Judgement], **more: Any
) -> Probe:
    return Probe(name, SILENCE, "dns-query", {"server": server, "port": port, "name": question, **more}, judge)


def _abstract(scene: Scene) -> Probe:
    abstract = scene.unix(f"\0{os.path.basename(scene.directory)}")
    return canary_probe("unix-abstract", "unix-stream", abstract, path=abstract.address)


def _own(scene: Scene) -> Probe:
    return Probe(
        "unix-own",
        INSIDE_ONLY,
        "unix-own",
        {"path": scene.served_path},
        lambda seen: judgement.own_server(seen.answer, scene.served_reached),
    )


def unix_paths(scene: Scene) -> list[Probe | Absent]:
    path, datagrams = scene.unix("before.sock"), scene.unix("datagrams.sock", socket.SOCK_DGRAM)
    return [
        canary_probe("unix-path", "unix-stream", path, path=path.address),
        canary_probe("unix-datagram", "unix-datagram", datagrams, path=datagrams.address),
        Probe(
            "unix-late",
            SILENCE,
            "unix-late",
            {"ready": scene.ready, "path": scene.late_path},
            lambda seen: judgement.silence(seen.answer, scene.late_received()),
        ),
    ]
