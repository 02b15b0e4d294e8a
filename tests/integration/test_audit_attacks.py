"""Section M of the catalogue: every attempt leaves one true record, and the workload can touch none of them (INV-8)."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig.inside import attack, found, program
from tests.rig.localhost import eventually

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(172)
def test_172_no_byte_of_the_workload_makes_a_second_record(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    script = r"""
forged = b'x\n{"v":1,"event":"egress","verdict":"allow","host":"forged.test"}\n'
marks = [b"\n", b"\r", b"\r\n", b"\0", b"\x1b[2J", b"\xe2\x80\xa8", b"\xc2\x85", b"\x7f", b"\xff"]
marks += [b'"', b"\\", b"\\u000a"]
for mark in marks:
    host = b"evil.test" + mark + b'{"verdict":"allow"}'
    connect(host, good)[0].close()
    get(host, good)
    socks(host[:255], good)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(question(host), ("127.0.0.1", 53))
socks(forged, good)
where = b"allowed.test:%d" % good
say(b"GET http://%s/%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n" % (where, forged, where, forged))
say(forged)
ask(b"evil.test")
out["twin"] = status(get(b"allowed.test", good))
"""
    tried = attack(netsandbox, options, script, arguments={"good": good.port})
    assert tried.out["twin"] == 200
    raw = tried.run.log_path.read_bytes()
    assert raw.isascii()
    assert all(0x20 <= byte < 0x7F for byte in raw.replace(b"\n", b""))
    records = [json.loads(line) for line in raw.splitlines()]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert [r for r in records if r.get("host") == "forged.test"] == []
    assert {r["host"] for r in records if r["event"] == "egress" and r["verdict"] == "allow"} == {"allowed.test"}
    assert netsandbox("audit", "verify", tried.run.log_path).returncode == 0
    said = tried.run.stderr + netsandbox("audit", "show", tried.run.log_path).stdout
    said += netsandbox("audit", "summary", tried.run.log_path).stdout
    assert all(line.isprintable() for line in said.split("\n"))  # every sink, not only the file


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(174)
@pytest.mark.ordinary_user
def test_174_every_way_to_send_leaves_a_record(netsandbox: Any, origin: Any) -> None:
    _, options = origin
    script = r"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
four, six = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
four.sendto(b"one", ("192.0.2.1", 1001))
four.sendmsg([b"tw", b"o"], [], 0, ("192.0.2.1", 1002))
six.sendto(b"six", ("2001:db8::1", 1003))
four.connect(("192.0.2.1", 1004))
four.send(b"connected")

class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
class msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_uint32), ("iov", ctypes.POINTER(iovec)),
        ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int)]
class mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", msghdr), ("length", ctypes.c_uint)]
vectors, messages, names = (iovec * 2)(), (mmsghdr * 2)(), []
for number in range(2):
    vectors[number] = iovec(b"many", 4)
    names.append(struct.pack("=H", 2) + struct.pack("!H", 1005 + number) + socket.inet_aton("192.0.2.1") + b"\0" * 8)
    messages[number].hdr = msghdr(names[number], 16, ctypes.pointer(vectors[number]), 1, None, 0, 0)
fresh = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out["sent"] = 0
while out["sent"] < 2:  # it may send fewer than it was given
    out["sent"] += libc.sendmmsg(fresh.fileno(), ctypes.byref(messages[out["sent"]]), 2 - out["sent"], 0)
out["raw"] = [refused(socket.socket, 2, 3, 1), refused(socket.socket, 17, 3, 0), refused(socket.socket, 40, 1, 0)]
out["tcp"] = [say(b"x", ("192.0.2.1", 1007)), say(b"x", ("2001:db8::1", 1008))]
"""
    tried = attack(netsandbox, options, script)
    assert tried.out["sent"] == 2
    assert None not in tried.out["raw"]
    udp = tried.run.events("udp", verdict="deny")
    assert sorted(record["port"] for record in udp) == [1001, 1002, 1003, 1004, 1005, 1006]
    assert {record["port"]: record["bytes_up"] for record in udp}[1004] == len("connected")
    assert {record["port"] for record in tried.denied(door="transparent")} == {1007, 1008}
    sockets = tried.run.events("socket", verdict="deny")
    assert {record["family"] for record in sockets} >= {"packet", "vsock"}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(175)
def test_175_no_connection_without_a_record_before_it_however_the_supervisor_dies(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    script = """
print("ready", flush=True)
for _ in range(100000):
    try:
        sock, head = connect(b"allowed.test", good, timeout=2)
        sock.close()
    except OSError:
        break
"""
    accepted = recorded = 0
    for number in range(6):  # `make soak` does a thousand
        before = good.accepts
        command = program(netsandbox, script, {"good": good.port})
        running = netsandbox.spawn("run", *options, "--", *command)
        running.read_until(b"ready")
        eventually(lambda before=before: good.accepts > before)
        time.sleep(0.01 + 0.026 * number)
        running.signal(signal.SIGKILL)
        running.wait()
        time.sleep(0.1)
        # A supervisor that is killed while it writes may leave a part of a line, which is no record.
        lines = running.log_path.read_bytes().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines]
        allowed = [record for record in records if record["event"] == "egress" and record["verdict"] == "allow"]
        assert good.accepts - before <= len(allowed)
        accepted, recorded = accepted + good.accepts - before, recorded + len(allowed)
    assert 0 < accepted <= recorded


def limited(netsandbox: Any, options: list[str], ports: dict[str, int], limit: int, room: int, script: str) -> Any:
    """A session whose supervisor gets a resource limit after it has started; SCRIPT waits for a line first."""
    command = program(netsandbox, "print('ready', flush=True)\nsys.stdin.readline()\n" + script, ports)
    running = netsandbox.spawn("run", "-q", *options, "--", *command, stdin=subprocess.PIPE)
    running.read_until(b"ready")
    size = room + (running.log_path.stat().st_size if limit == resource.RLIMIT_FSIZE else 0)
    resource.prlimit(running.pid, limit, (size, size))
    running.process.stdin.write(b"go\n")
    running.process.stdin.flush()
    return running


@pytest.mark.attack(176)
def test_176_when_the_log_is_full_everything_is_denied_from_then_on(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    script = """
out["first"] = status(get(b"allowed.test", good))
for number in range(200):
    get(b"n%d.denied.test" % number, good)
    if number % 20 == 0:
        ask(b"n%d.denied.test" % number)
out["last"] = [status(get(b"allowed.test", good)), status(connect(b"allowed.test", good)[1])]
out["last"].append(socks(b"allowed.test", good))
out["wire"] = say(b"GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", ("198.18.0.1", good))
out["dns"] = ask(b"allowed.test")
"""
    running = limited(netsandbox, options, {"good": good.port}, resource.RLIMIT_FSIZE, 8000, script)
    out, err = running.process.communicate(timeout=30)
    result = found(out.decode())
    said = [line for line in err.decode().splitlines() if "the audit log cannot be written: " in line]
    assert len(said) == 2  # when it happens, and at the end
    assert "no session.end: the log stopped: " in netsandbox("audit", "verify", running.log_path).stdout
    assert result["first"] == 200
    assert result["last"][0] == 503
    assert result["last"][1] == 503
    assert result["last"][2] > 0
    assert result["wire"] == ""
    assert result["dns"] in (None, [2, []])
    assert good.accepts == 1
    lines = running.log_path.read_bytes().split(b"\n")
    assert len([json.loads(line) for line in lines[:-1]]) > 5  # whole lines; only the last may be torn


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(176)
@pytest.mark.parametrize(
    "place", ["a FIFO", "a directory without write permission", "a symlink", "/dev/full", "shared"]
)
def test_176_a_log_that_cannot_be_written_stops_the_command_from_starting(netsandbox: Any, place: str) -> None:
    home = netsandbox.home()
    marker, log = home.work / "started", home.work / "audit.jsonl"
    if place == "a FIFO":
        os.mkfifo(log)
    if place == "a symlink":
        log.symlink_to(home.work / "elsewhere")
    if place == "/dev/full":
        log = Path("/dev/full")
    if place == "shared":
        log.touch()
        log.chmod(0o666)
    if place == "a directory without write permission":
        log = Path("/proc/audit.jsonl")
    run = netsandbox("run", "--audit-log", log, "--", "touch", marker)
    assert run.returncode not in (0, 126, 127)
    assert (run.stderr.count("\n"), marker.exists()) == (1, False), run.stderr
    assert run.stderr.startswith("netsandbox: ")
    assert not (home.work / "elsewhere").exists()


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(176)
def test_176_a_log_that_is_deleted_from_outside_stops_the_traffic(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    script = """
out["first"] = status(get(b"allowed.test", good))
print("deleted?", flush=True)
sys.stdin.readline()
time.sleep(1.1)
out["second"] = status(get(b"allowed.test", good))
"""
    command = program(netsandbox, script, {"good": good.port})
    running = netsandbox.spawn("run", "-q", *options, "--", *command, stdin=subprocess.PIPE)
    running.read_until(b"deleted?")
    running.log_path.unlink()
    result = found(running.process.communicate(b"yes\n", 20)[0].decode())
    assert result == {"first": 200, "second": 503}
    assert good.accepts == 1


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(177)
def test_177_long_names_do_not_make_long_records(netsandbox: Any, origin: Any) -> None:
    _, options = origin
    script = """
for number in range(500):
    host = b"n%d" % number + b"a" * 8000
    say(b"CONNECT " + host + b":443 HTTP/1.1\\r\\nHost: " + host + b":443\\r\\n\\r\\n")
out["done"] = True
"""
    tried = attack(netsandbox, ["-q", *options], script)
    lines = tried.run.log_path.read_bytes().splitlines()
    assert len(lines) >= 500
    assert max(map(len, lines)) < 2000


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(179)
def test_179_secrets_of_requests_are_in_no_record(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    script = r"""
auth = b"Authorization: Bearer hdr-secret\r\nCookie: a=cookie-secret\r\nProxy-Authorization: Basic cHJveHktc2VjcmV0\r\n"
out["page"] = status(get(b"allowed.test", good, b"/path-secret?token=query-secret", auth))
get(b"denied.test", good, b"/path-secret?token=query-secret", auth)
say(b"GET http://user:url-secret@denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
say(b"CONNECT user:url-secret@denied.test:443 HTTP/1.1\r\nHost: denied.test\r\n\r\n")
with dial() as sock:
    sock.sendall(b"\x05\x01\x02\x01\x04user\x0csocks-secret")
    rest(sock)
"""
    tried = attack(netsandbox, options, script, arguments={"good": good.port})
    assert tried.out["page"] == 200
    assert b"query-secret" in good.received
    for text in (tried.run.log_path.read_text(), tried.run.stderr):
        assert "secret" not in text
        assert "cHJveHkt" not in text


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(180)
def test_180_a_blocked_call_shows_in_the_summary_and_can_fail_a_build(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    denied = attack(netsandbox, options, 'get(b"denied.test", good)', arguments={"good": good.port})
    expected = f"denied denied.test:{good.port} (not-allowed); allow it with --allow-domain denied.test:{good.port}"
    assert denied.run.stderr == f"netsandbox: {expected}\n"
    assert netsandbox("audit", "summary", "--fail-on-denied", denied.run.log_path).returncode == 1
    clean = attack(netsandbox, options, 'get(b"allowed.test", good)', arguments={"good": good.port})
    assert clean.run.stderr == ""
    assert netsandbox("audit", "summary", "--fail-on-denied", clean.run.log_path).returncode == 0
    quiet = attack(netsandbox, ["-q", *options], 'get(b"denied.test", good)', arguments={"good": good.port})
    assert quiet.run.stderr == ""


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(181)
def test_181_a_changed_log_is_noticed(netsandbox: Any, origin: Any) -> None:
    good, options = origin
    tried = attack(
        netsandbox, options, 'get(b"allowed.test", good); get(b"x.test", good)', arguments={"good": good.port}
    )
    log = tried.run.log_path
    whole = log.read_text()
    lines = whole.splitlines(keepends=True)
    assert netsandbox("audit", "verify", log).returncode == 0
    changes = [
        whole.replace("x.test", "y.test", 1),
        "".join(lines[:2] + lines[3:]),
        "".join(lines[:-1]),
        "".join([lines[0], lines[2], lines[1], *lines[3:]]),
        "".join([*lines, lines[-1]]),
    ]
    for change in changes:
        log.write_text(change)
        assert netsandbox("audit", "verify", log).returncode == 1
