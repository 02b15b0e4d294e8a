"""What an attacker has inside a session: a Python with raw sockets that knows where the doors are.

`attack(netsandbox, options, script)` runs SCRIPT in one session, after a prelude of clients that check nothing and send
exactly the bytes they are given, and hands back what the script put into `out`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.rig.command import CommandLine, Run

PRELUDE = r"""
import json, os, select, socket, struct, sys, threading, time
DOOR = ("127.0.0.1", 1008)
out = {}

def dial(to=DOOR, timeout=20):
    return socket.create_connection(to, timeout)

def until(sock, mark):
    data = b""
    try:
        while mark not in data:
            more = sock.recv(65536)
            if not more:
                break
            data += more
    except OSError:
        pass
    return data

def rest(sock):
    return until(sock, b"\0never\0")

def status(reply):
    words = reply.split(b" ", 2)
    return int(words[1]) if reply.startswith(b"HTTP/1.") and words[1].isdigit() else 0

def reason(reply):
    for line in reply.split(b"\r\n\r\n")[0].split(b"\r\n"):
        if line.lower().startswith(b"x-netsandbox-reason:"):
            return line.partition(b":")[2].strip().decode()
    return ""

def say(data, to=DOOR, timeout=20):
    # All of the reply; an empty one when the door hung up.
    try:
        with dial(to, timeout) as sock:
            sock.sendall(data)
            return rest(sock)
    except OSError:
        return b""

def connect(host, port, more=b"", timeout=20):
    # (socket, head of the reply) of a CONNECT; the caller closes.
    sock = dial(timeout=timeout)
    authority = host + b":%d" % port
    try:
        sock.sendall(b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n\r\n" + more)
        return sock, until(sock, b"\r\n\r\n")
    except OSError:
        return sock, b""

def get(host, port, path=b"/", extra=b""):
    authority = host + b":%d" % port
    head = b"GET http://" + authority + path + b" HTTP/1.1\r\nHost: " + authority + b"\r\n" + extra
    return say(head + b"Connection: close\r\n\r\n")

def socks(host, port, kind=3, command=1):
    # The reply code of SOCKS5; -1 when the door hung up. The socket is closed.
    where = bytes([len(host)]) + host if kind == 3 else host
    try:
        with dial() as sock:
            sock.sendall(b"\x05\x01\x00" + bytes([5, command, 0, kind]) + where + struct.pack("!H", port))
            greeting = sock.recv(2)
            reply = sock.recv(64) if len(greeting) == 2 else b""
            return reply[1] if len(reply) > 1 else -1
    except OSError:
        return -1

def labels(name):
    return b"".join(bytes([len(label)]) + label for label in name.split(b".") if label) + b"\0"

def question(name, qtype=1, ident=0x1234, flags=0x0100, qclass=1):
    return struct.pack("!6H", ident, flags, 1, 0, 0, 0) + labels(name) + struct.pack("!2H", qtype, qclass)

def ask(name, qtype=1, server=("127.0.0.1", 53), timeout=20, tcp=False, raw=None):
    # (response code, addresses of A records); None when nothing was said.
    data = raw if raw is not None else question(name, qtype)
    try:
        if tcp:
            with dial(server, timeout) as sock:
                sock.sendall(struct.pack("!H", len(data)) + data)
                reply = sock.recv(65536)[2:]
        else:
            family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.settimeout(timeout)
                sock.sendto(data, server)
                reply = sock.recv(65536)
    except OSError:
        return None
    return parse(reply)

def parse(reply):
    if len(reply) < 12:
        return None
    code, count = reply[3] & 15, struct.unpack("!H", reply[6:8])[0]
    at = 12
    if struct.unpack("!H", reply[4:6])[0]:
        while reply[at]:
            at += reply[at] + 1
        at += 5
    found = []
    for _ in range(count):
        while reply[at]:
            if reply[at] >= 192:
                at += 1
                break
            at += reply[at] + 1
        kind, _, _, size = struct.unpack("!HHIH", reply[at + 1 : at + 11])
        if kind == 1:
            found.append(socket.inet_ntoa(reply[at + 11 : at + 15]))
        at += 11 + size
    return code, found

def address(name):
    answer = ask(name)
    return answer[1][0] if answer and answer[1] else None

def refused(call, *arguments, **named):
    # The name of the error, or None when the call worked.
    try:
        call(*arguments, **named)
    except OSError as error:
        return type(error).__name__ if error.errno is None else __import__("errno").errorcode[error.errno]
    return None
"""
ENDING = "\nsys.stdout.write('\\0' + json.dumps(out, default=lambda data: str(data, 'latin-1')))\nsys.stdout.flush()\n"


@dataclass(frozen=True)
class Attack:
    """What the script found (`out`), and the run it was made in."""

    out: dict[str, Any]
    run: Run

    def denied(self, **fields: object) -> list[dict[str, Any]]:
        return self.run.events("egress", verdict="deny", **fields)

    def allowed(self, **fields: object) -> list[dict[str, Any]]:
        return self.run.events("egress", verdict="allow", **fields)


def program(netsandbox: CommandLine, script: str, arguments: Mapping[str, Any] | None = None) -> list[str]:
    """The command that runs SCRIPT with ARGUMENTS as its global names (bytes travel as text in Latin-1)."""
    values = json.dumps(arguments or {})
    file = netsandbox.home().work / "attack.py"
    file.write_text(f"{PRELUDE}globals().update(json.loads({values!r}))\n{script}{ENDING}")
    file.chmod(0o644)
    return [netsandbox.python, "-IS", str(file)]


def found(stdout: str) -> dict[str, Any]:
    """What a script wrote at its end."""
    result: dict[str, Any] = json.loads(stdout.rpartition("\0")[2])
    return result


def attack(
    netsandbox: CommandLine,
    options: Sequence[str],
    script: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    env: Mapping[str, str | None] | None = None,
    timeout: float = 60,
) -> Attack:
    """Run SCRIPT in a session with OPTIONS and read what it left in `out`."""
    command = program(netsandbox, script, arguments)
    run = netsandbox("run", *options, "--", *command, env=env, timeout=timeout)
    assert run.returncode == 0, run.stderr[-2000:]
    return Attack(found(run.stdout), run)


@dataclass
class Scene:
    """An origin that is allowed as allowed.test, and one that no name leads to legally."""

    good: Any
    bad: Any
    authority: Any
    netsandbox: Any

    @property
    def options(self) -> list[str]:
        rules = ["--allow-domain", f"allowed.test:{self.good.port}", "--allow-domain", f"other.test:{self.good.port}"]
        # Both addresses pass the address guard, so a denial below is the policy's or the door's, never the guard's.
        rules += ["--allow-address", f"127.0.0.1:{self.good.port}", "--allow-address", f"127.0.0.1:{self.bad.port}"]
        return [*rules, "--upstream-dns", self.authority.address]

    def attack(self, script: str, **arguments: Any) -> Attack:
        ports = {"good": self.good.port, "bad": self.bad.port}
        return attack(self.netsandbox, self.options, script, arguments={**ports, **arguments})
