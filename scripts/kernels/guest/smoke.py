"""Runs as the user: doctor, then a smoke of each backend of plan.json.

Prints a JSON object after each part, and an empty one at the end.
A check is a name and a text: empty if it held, otherwise what was seen instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from prepare import TWINS

HERE = Path(__file__).resolve().parent
NETSANDBOX = "netsandbox"
PROJECT = Path.home() / "project"
LOGS = Path.home() / "logs"
PAGE = "a page of the project"
ALLOWED, DENIED = TWINS
TWIN_PORT, HOST_PORT, DEV_PORT = 8080, 8081, 3000
DENIED_NAME = "denied.example.com"
STATUS = 7
PATIENCE = 120.0  # seconds; an emulated machine is ten to twenty times slower
MAX_TEXT = 600
REMOTE = "https://git.example.com/project.git"

Checks = dict[str, str]


class Canary(ThreadingHTTPServer):
    """A server that counts the connections it accepted."""

    def __init__(self, address: str, port: int) -> None:
        self.accepted = 0
        super().__init__((address, port), Greeting)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self) -> tuple[Any, Any]:
        self.accepted += 1
        return super().get_request()


class Greeting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"canary")

    def log_message(self, format: str, *_: object) -> None:
        """Standard error is for trouble."""


def netsandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NETSANDBOX, *arguments], cwd=PROJECT, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=2 * PATIENCE, check=False,
    )  # fmt: skip


def unless(truth: object, seen: object) -> str:
    return "" if truth else str(seen)[-MAX_TEXT:] or "nothing"


def doctor() -> dict[str, Any]:
    """How many probes hold, and what the machine lacks."""
    done = netsandbox("doctor", "--json")
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {"ok": False, "unproven": (done.stdout + done.stderr)[-MAX_TEXT:], "probes": {}, "machine": {}}
    probes: dict[str, int] = {}
    for finding in report["jail"]:
        probes[finding["status"]] = probes.get(finding["status"], 0) + 1
    return {
        "ok": report["ok"],
        "unproven": report["unproven"],
        "probes": probes,
        "not_holding": [each for each in report["jail"] if each["status"] not in ("ok", "skipped")],
        "machine": {check["name"]: f"{check['status']}: {check['found']}" for check in report["machine"]},
        "remedies": {each["name"]: each["remedy"] for each in report["machine"] if each["status"] == "MISSING"},
    }


def smoke(backend: str, checks: list[str], canaries: dict[str, Canary]) -> dict[str, Any]:
    """Whether the backend runs, refuses or is not built, and what its checks saw."""
    done = netsandbox("run", "--backend", backend, "--", "echo", "ran")
    message = done.stderr.strip()
    if done.stdout.strip() != "ran":
        state = "unbuilt" if "unknown backend" in message else "refused"
        return {"state": state, "status": done.returncode, "message": message}
    seen: Checks = {}
    before = leftovers()
    for check in (confined, dev_server, *(EXTRA[name] for name in checks)):
        try:
            seen.update(check(backend, canaries))
        except Exception as error:
            seen[check.__name__] = f"{type(error).__name__}: {error}"[-MAX_TEXT:]
    seen["nothing-left"] = nothing_left(before)
    return {"state": "ran", "status": done.returncode, "message": message, "checks": seen}


def confined(backend: str, canaries: dict[str, Canary]) -> Checks:
    """One session: two servers that it may reach, one that it may not, a denied name, and its exit status."""
    before = {name: canary.accepted for name, canary in canaries.items()}
    log = LOGS / f"{backend}.jsonl"
    done = netsandbox(
        *("run", "--backend", backend, "--audit-log", str(log), "--allow-address", f"{ALLOWED}:{TWIN_PORT}"),
        *("--connect-host", str(HOST_PORT), "--", "python3", "inside.py"),
        *(f"{ALLOWED}:{TWIN_PORT}", f"{DENIED}:{TWIN_PORT}", f"127.0.0.1:{HOST_PORT}", DENIED_NAME),
    )  # fmt: skip
    accepted = {name: canary.accepted - before[name] for name, canary in canaries.items()}
    seen = f"{done.stdout} {done.stderr}"
    try:
        inside = json.loads(done.stdout)
    except ValueError:
        return {"confined": f"status {done.returncode}: {seen}"[-MAX_TEXT:]}
    records = [json.loads(line) for line in log.read_text("ascii").splitlines()]
    refused = [(each["event"], each.get("host")) for each in records if each.get("verdict") == "deny"]
    return {
        "allowed-address": unless(inside["allowed"] == "canary" and accepted["allowed"] == 1, seen),
        "connect-host": unless(inside["host"] == "canary" and accepted["host"] == 1, seen),
        "denied-address": unless(inside["denied"] != "canary" and accepted["denied"] == 0, f"{accepted} {seen}"),
        "denied-address-recorded": unless(("egress", DENIED) in refused, refused),
        "denied-name": unless(inside["name"] == "unknown", seen),
        "denied-name-recorded": unless(("dns", DENIED_NAME) in refused, refused),
        "exit-status": unless(done.returncode == STATUS, f"status {done.returncode}"),
    }


def dev_server(backend: str, _: dict[str, Canary]) -> Checks:
    """A server inside on port 3000, reached where `netsandbox ports` says."""
    server = ["python3", "-m", "http.server", str(DEV_PORT), "--bind", "127.0.0.1"]
    command = [NETSANDBOX, "run", "--backend", backend, "--name", "dev", "--", *server]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=PROJECT, **quiet) as session:  # type: ignore[call-overload]
        ports = wait_for(lambda: published() or session.poll() is not None)
        page = fetch(ports["host_address"], ports["host_port"]) if isinstance(ports, dict) else "not published"
        stopped = netsandbox("stop", "dev")
        session.wait(PATIENCE)
    return {"dev-server": unless(page == PAGE, page), "stop": unless(stopped.returncode == 0, stopped.stderr)}


def published() -> dict[str, Any] | None:
    done = netsandbox("ports", "dev", "--json")
    if done.returncode != 0:
        return None
    return next((port for port in json.loads(done.stdout) if port["port"] == DEV_PORT), None)


def fetch(address: str, port: int) -> str:
    try:
        connection = HTTPConnection(address, port, timeout=PATIENCE)
        connection.request("GET", "/page.txt", headers={"Host": f"localhost:{port}"})
        return connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        return f"{type(error).__name__}: {error}"


def overlay(backend: str, _: dict[str, Canary]) -> Checks:
    """A change is kept apart until it is applied."""
    page = PROJECT / "page.txt"
    done = netsandbox(
        *("run", "--backend", backend, "--overlay", "--name", "kept", "--"),
        *("sh", "-c", "echo changed >page.txt && cat page.txt"),
    )
    outside = page.read_text("utf-8")
    listed = netsandbox("changes", "kept", "--json")
    applied = netsandbox("apply", "kept")
    after = page.read_text("utf-8")
    page.write_text(PAGE, "utf-8")
    return {
        "overlay-writes": unless(done.stdout == "changed\n", done.stdout + done.stderr),
        "overlay-keeps-apart": unless(outside == PAGE, outside),
        "overlay-lists": unless('"page.txt"' in listed.stdout, listed.stdout + listed.stderr),
        "overlay-applies": unless(after == "changed\n", applied.stderr),
    }


def git_configuration(backend: str, _: dict[str, Canary]) -> Checks:
    """A session changes a copy of git's configuration, which link mounts show to it; a new remote is taken over."""
    subprocess.run(["git", "init", "--quiet"], cwd=PROJECT, check=True)
    done = netsandbox("run", "--backend", backend, "--", "git", "remote", "add", "origin", REMOTE)
    config = (PROJECT / ".git" / "config").read_text("utf-8")
    shutil.rmtree(PROJECT / ".git")
    return {"git-configuration": unless(done.returncode == 0 and REMOTE in config, done.stderr + config)}


def limits(backend: str, _: dict[str, Canary]) -> Checks:
    """A cgroup holds the limits: without one `cpu` is an error, and memory would be counted for each process."""
    limited = ("run", "--backend", backend, "--limit", "memory=64M,processes=40,cpu=150%", "--")
    within = netsandbox(*limited, "echo", "within")
    beyond = netsandbox(*limited, "python3", "-c", "bytearray(200 << 20)")
    return {
        "limits-within": unless(within.stdout == "within\n", within.stderr),
        "limit-of-memory": unless(beyond.returncode in (-9, 137), f"status {beyond.returncode}: {beyond.stderr}"),
    }


EXTRA: dict[str, Callable[[str, dict[str, Canary]], Checks]] = {
    "overlay": overlay,
    "git-configuration": git_configuration,
    "limits": limits,
}


def leftovers() -> dict[str, set[str]]:
    """What a session could leave on the machine."""
    tables = ("/proc/net/tcp", "/proc/net/tcp6")
    sockets = [line.split() for table in tables for line in Path(table).read_text("ascii").splitlines()[1:]]
    return {
        "processes": {path.name for path in Path("/proc").glob("[0-9]*") if is_ours(path)},
        "mounts": set(Path("/proc/self/mountinfo").read_text("utf-8").splitlines()),
        "listeners": {fields[1] for fields in sockets if fields[3] == "0A"},
        "interfaces": set(os.listdir("/sys/class/net")),
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").rglob("netsandbox-*")},
        "sessions": {str(session["name"]) for session in json.loads(netsandbox("ps", "--json").stdout)},
    }


def is_ours(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.getuid()
    except OSError:
        return False


def nothing_left(before: dict[str, set[str]]) -> str:
    added: dict[str, set[str]] = {}

    def gone() -> bool:
        added.clear()
        added.update({name: found - before[name] for name, found in leftovers().items() if found - before[name]})
        return not added

    return "" if wait_for(gone, PATIENCE / 4) else str(added)[:MAX_TEXT]


Found = TypeVar("Found")


def wait_for(look: Callable[[], Found], patience: float = PATIENCE) -> Found:
    """What *look* returns once it is true, or at last."""
    until = time.monotonic() + patience
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.5)
    return found


def report(**part: object) -> None:
    print(json.dumps(part), flush=True)


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    PROJECT.mkdir()
    LOGS.mkdir()
    (PROJECT / "page.txt").write_text(PAGE, "utf-8")
    shutil.copy(HERE / "inside.py", PROJECT)
    canaries = {
        "allowed": Canary(ALLOWED, TWIN_PORT),
        "denied": Canary(DENIED, TWIN_PORT),
        "host": Canary("127.0.0.1", HOST_PORT),
    }
    report(doctor=doctor())
    backends = {}
    for backend in plan["backends"]:
        backends[backend] = smoke(backend, plan["checks"], canaries)
        report(backends=backends)
    report()


if __name__ == "__main__":
    main()
