"""A server in a session, reached from the host by its published port and by name, beside the same server outside.

`a relay in C` is a minimal relay (stream.c): its loss against a direct connection is the cost of a third process on
this machine.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass

import place
from box import Box
from figures import Result, Series
from live import published
from processes import Server, await_port, cpu_seconds, free_port
from rig import Rig
from servers import BIG, nginx_settings

DIRECT, LEAST, OURS, NAMED = "direct", "a relay in C", "published port", "by name"
INNER_HTTP, INNER_STREAM = 3000, 4000
GIGABYTE = 1e9
SECONDS = 2
WAYS = {"down": "D", "up": "U"}
CURL = ["curl", "-sS", "-f", "-o", "/dev/null", "--max-time", "30", "--noproxy", "*", "-w", "%{speed_download}"]
WRK = ["wrk", "-t1", "-c16", f"-d{SECONDS}s", "--latency"]


@dataclass(frozen=True)
class LaunchMethod:
    """The addresses of one contestant: ports on 127.0.0.1 for the stream and for HTTP, the Host, and the measured
    process."""

    stream: int | None
    http: int
    host: str
    pids: tuple[int, ...] = ()

    def processor(self) -> float:
        """The processor seconds that the relaying process has used so far."""
        return sum(cpu_seconds(pid) for pid in self.pids)


def measure(rig: Rig, rounds: int) -> Result:
    result = Result("a published server, from the host")
    with ExitStack() as stack:
        ways = _ways(rig, stack)
        _streams(rig, ways, rounds, result)
        _downloads(ways, rounds, result)
        if place.find("wrk") is None:
            result.notes.append("wrk is not installed; bench/install-peers installs it")
            return result
        _requests(ways, rounds, result, "keep-alive", [])
        _requests(ways, rounds, result, "new connections", ["-H", "Connection: close"])
    return result


def _ways(rig: Rig, stack: ExitStack) -> dict[str, LaunchMethod]:
    origin = rig.origin.port
    outside, relayed, relayed_http = free_port(), free_port(), free_port()
    _server(rig, stack, "serve", outside)
    relays = _server(rig, stack, "relay", relayed, outside), _server(rig, stack, "relay", relayed_http, origin)
    if not all(await_port(port) for port in (outside, relayed, relayed_http)):
        raise LookupError("the servers outside did not start")
    box = rig.box([])
    ports = _serve_inside(rig, box)
    address = re.fullmatch(r"http://(\D[^:]+:(\d+))/", str(ports[INNER_HTTP]["url"]))
    if address is None:
        raise LookupError(f"the session has no name: {ports[INNER_HTTP]['url']}")
    http, stream = (int(str(ports[port]["host_port"])) for port in (INNER_HTTP, INNER_STREAM))
    host = f"127.0.0.1:{http}"
    return {
        DIRECT: LaunchMethod(outside, origin, f"127.0.0.1:{origin}"),
        LEAST: LaunchMethod(relayed, relayed_http, f"127.0.0.1:{relayed_http}", relays),
        OURS: LaunchMethod(stream, http, host, (box.pid,)),
        NAMED: LaunchMethod(None, int(address[2]), address[1], (box.pid,)),
    }


def _server(rig: Rig, stack: ExitStack, *words: object) -> int:
    """The pid of a stream program outside of any session."""
    server = Server([rig.stream, *map(str, words)], {}, place.WORK / f"stream-{words[1]}.log")
    stack.callback(server.stop)
    return server.pid


def _serve_inside(rig: Rig, box: Box) -> dict[int, dict[str, object]]:
    """The same programs as outside, and their entries of `netsandbox ports`, by their ports inside."""
    folder = place.PROJECT / "nginx-inside"
    folder.mkdir()
    listens = f"listen 127.0.0.1:{INNER_HTTP} backlog=4096;"
    (folder / "nginx.conf").write_text(nginx_settings(folder, rig.origin.files, listens))
    nginx = f"{place.find('nginx')} -c {folder}/nginx.conf -p {folder} -e {folder}/errors"
    box.run(f"({nginx} >{folder}/log 2>&1 &)")
    published(rig, 1)  # the one that listens first has the session's name
    box.run(f"({rig.stream} serve {INNER_STREAM} >/dev/null 2>&1 &)")
    found = {int(str(entry["port"])): entry for entry in published(rig, 2)}
    if set(found) != {INNER_HTTP, INNER_STREAM}:
        raise LookupError(f"published are {sorted(found)}; see {folder}")
    return found


def _streams(rig: Rig, ways: dict[str, LaunchMethod], rounds: int, result: Result) -> None:
    speeds, costs = Series(), Series()
    for _ in range(rounds):
        for label, letter in WAYS.items():
            for name, way in ways.items():
                if way.stream is None:
                    continue
                argv = [rig.stream, "fetch", "127.0.0.1", str(way.stream), letter, str(BIG)]
                before = way.processor()
                done = subprocess.run(argv, env={}, capture_output=True, text=True, check=True, timeout=60)
                speeds.add(f"{name}, {label}", float(done.stdout))
                if way.pids:
                    costs.add(f"{name}, {label}, CPU", (way.processor() - before) / (BIG / GIGABYTE))
    for label in WAYS:
        for name in (DIRECT, LEAST, OURS):
            result.compare(speeds, f"{name}, {label}", "GB/s", f"{DIRECT}, {label}", DIRECT)
        for name in (LEAST, OURS):
            result.compare(costs, f"{name}, {label}, CPU", "s/GB")
        ours = speeds.ratio(f"{OURS}, {label}", f"{LEAST}, {label}")
        result.aim(f"throughput of a published port ({label}) against a relay in C", 0.95, ours, at_least=True)


def _downloads(ways: dict[str, LaunchMethod], rounds: int, result: Result) -> None:
    speeds = Series()
    for _ in range(rounds):
        for name, way in ways.items():
            argv = [*CURL, "-H", f"Host: {way.host}", f"http://127.0.0.1:{way.http}/big"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
            if done.returncode:
                result.notes.append(f"{name}, nginx to curl: {done.stderr.strip()}")
            speeds.add(f"{name}, nginx to curl", None if done.returncode else float(done.stdout) / GIGABYTE)
    for name in speeds.samples:
        result.compare(speeds, name, "GB/s", f"{DIRECT}, nginx to curl", DIRECT)
    for name in (OURS, NAMED):
        found = speeds.ratio(f"{name}, nginx to curl", f"{LEAST}, nginx to curl")
        result.aim(f"throughput of nginx to curl ({name}) against a relay in C", 0.95, found, at_least=True)


def _requests(ways: dict[str, LaunchMethod], rounds: int, result: Result, kind: str, words: list[str]) -> None:
    rates, tails, costs = Series(), Series(), Series()
    for _ in range(rounds):
        for name, way in ways.items():
            argv = [*WRK, *words, "-H", f"Host: {way.host}", f"http://127.0.0.1:{way.http}/small"]
            before = way.processor()
            done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
            rate, tail, count = read_wrk(done.stdout)
            rates.add(f"{name}, {kind}", rate)
            tails.add(f"{name}, {kind}, p99", tail)
            if way.pids and count:
                costs.add(f"{name}, {kind}, CPU", (way.processor() - before) / count * 1e6)
    for name in rates.samples:
        result.compare(rates, name, "/s", f"{DIRECT}, {kind}", DIRECT)
    found = rates.ratio(f"{NAMED}, {kind}", f"{OURS}, {kind}")
    result.aim(f"requests by name against the published port ({kind})", 0.9, found, at_least=True)
    result.table(tails, "ms")
    result.table(costs, "µs each")


def read_wrk(output: str) -> tuple[float | None, float | None, int]:
    """Requests a second, the 99th percentile in ms, and how many there were; None when some failed."""
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    tail = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", output)
    count = re.search(r"(\d+) requests in", output)
    failed = "Non-2xx" in output or "Socket errors" in output
    if rate is None or tail is None or count is None or failed:
        return None, None, 0
    return float(rate[1]), float(tail[1]) * {"us": 1e-3, "ms": 1, "s": 1e3}[tail[2]], int(count[1])
