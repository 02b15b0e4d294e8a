"""What changes under a running session opens nothing: our own files, the host's addresses, its resolver."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.account import PACKAGES
from tests.rig.workshop import ROOT
from tests.rig.world import ALLOWED, DENIED, World, need

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces")]


@pytest.mark.attack(211)
@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_session_whose_files_change_keeps_its_code_or_closes(world: World, short_tmp: Path, change: str) -> None:
    """An upgrade under a running session: whatever it has yet to load may be gone; then nothing gets out."""
    need("curl", "curl")
    site = short_tmp / "site"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, site / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    allowed, forbidden = world.canary.http(), world.forbidden
    options = world.options(allowed.port)
    script = f"""
    echo ready; read line
    curl -sS --max-time 3 http://{DENIED}:{forbidden.port}/
    curl -sS --noproxy '*' --max-time 3 http://{DENIED}:{forbidden.port}/
    curl -sS --max-time 3 http://{ALLOWED}:{allowed.port}/
    exit 5
    """
    running = world.netsandbox.spawn(
        "run", *options, "--", "sh", "-c", script, env={"PYTHONPATH": str(site)}, stdin=subprocess.PIPE
    )
    running.read_until(b"ready")
    for file in [file for file in site.rglob("*") if file.is_file()]:
        file.unlink()
        if change == "replaced":
            file.write_text("def decide(*_): return True\nraise RuntimeError('another version')\n")
    with contextlib.suppress(BrokenPipeError):  # it has closed already
        running.process.stdin.write(b"go\n")
        running.process.stdin.close()
    assert running.wait(60) in (5, 1, -signal.SIGKILL, 128 + signal.SIGKILL)
    assert forbidden.accepts == 0


HOST = """
import os, socket, subprocess, sys, threading, time
import dnslib

def serve(address, answer):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, 53))
    while True:
        data, peer = sock.recvfrom(512)
        query = dnslib.DNSRecord.parse(data)
        reply = query.reply()
        if query.q.qtype == dnslib.QTYPE.A:
            reply.add_answer(*dnslib.RR.fromZone(f"{query.q.qname} 1 A {answer}"))
        sock.sendto(reply.pack(), peer)

def listen(address):
    server = socket.create_server((address, 80))
    while True:
        server.accept()[0].sendall(b"HTTP/1.0 200 OK\\r\\ncontent-length: 5\\r\\n\\r\\nheard")
        print("accepted at", address, flush=True)

def run(*words):
    subprocess.run(words, check=True)

def start(target, *words):
    threading.Thread(target=target, args=words, daemon=True).start()

run("ip", "link", "set", "lo", "up")
for address in ("127.0.0.2", "127.0.0.3"):
    start(serve, address, "192.0.2.9")
with open("resolv.conf", "w") as file:
    file.write("nameserver 127.0.0.2\\n")
run("mount", "--bind", "resolv.conf", "/etc/resolv.conf")
command = [sys.executable, "-m", "netsandbox", "run", "--allow-domain", "allowed.test", "--", "sh", "-c",
    "while read line; do curl -sS --max-time 5 http://$line/; echo; echo done; done"]
session = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

def ask(name):
    print("?", name, flush=True)
    session.stdin.write(name + "\\n")
    session.stdin.flush()
    while (line := session.stdout.readline()) not in ("done\\n", ""):
        print(line, end="", flush=True)

ask("allowed.test")  # leads to an address that nobody has: fails
run("ip", "address", "add", "192.0.2.9/32", "dev", "lo")  # now it is one of the host's own
start(listen, "192.0.2.9")
time.sleep(float(sys.argv[1]))
ask("allowed.test")
with open("resolv.conf", "w") as file:
    file.write("nameserver 127.0.0.3\\n")
ask("denied.test")
session.stdin.close()
print("status", session.wait(), flush=True)
"""


@pytest.mark.attack(210)
def test_a_host_that_changes_under_a_session_opens_nothing(netsandbox: Any) -> None:
    """In a host of our own (namespaces): an allowed name's address becomes the host's own, the resolver changes."""
    need("ip", "iproute2")
    need("curl", "curl")
    home = netsandbox.home()
    inside = [home.identity.python, "-c", HOST, "6"]
    command = ["unshare", "--user", "--map-root-user", "--net", "--mount", *inside]
    done = subprocess.run(
        command, env=home.environment(None), cwd=home.work, capture_output=True, text=True, timeout=180, check=False
    )
    assert "status 0" in done.stdout, (done.stdout, done.stderr)
    assert "accepted" not in done.stdout
    assert "heard" not in done.stdout
    log = "".join(file.read_text() for file in home.logs())
    assert '"reason":"address-guard"' in log
