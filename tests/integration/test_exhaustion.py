"""Section O of the catalogue: what runs out is refused, never let through, and the others go on.

Bounds on time are generous: they tell starvation from service, not one machine from another.
"""

from __future__ import annotations

import resource
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.rig.inside import attack, found, program

pytestmark = pytest.mark.usefixtures("user_namespaces")

MANY = """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
"""
MEGABYTE = 1024  # in the kilobytes of /proc


@pytest.fixture
def scene(canary: Any, authority: Any) -> tuple[Any, Any, list[str]]:
    """An allowed origin, a forbidden one, and the options."""
    good, bad = canary.http(body=b"reached"), canary.http(body=b"stolen")
    authority.answer("*.test", "127.0.0.1")
    options = ["-q", "--allow-domain", f"allowed.test:{good.port}", "--upstream-dns", authority.address]
    return good, bad, [*options, "--allow-address", "127.0.0.1:*"]


def resident(pid: int) -> int:
    """Kilobytes that a process holds in memory."""
    fields = Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()
    return int(fields[0])


def staged(netsandbox: Any, options: list[str], script: str, arguments: dict[str, Any]) -> Any:
    """A session whose script calls `stage(word)` and waits there until the test says go on."""
    stage = "def stage(word):\n    print(word, flush=True)\n    sys.stdin.readline()\n"
    command = program(netsandbox, stage + script, arguments)
    return netsandbox.spawn("run", *options, "--", *command, stdin=subprocess.PIPE)


def go_on(running: Any) -> None:
    running.process.stdin.write(b"go\n")
    running.process.stdin.flush()


def outcome(running: Any, timeout: float = 60) -> dict[str, Any]:
    stdout, _ = running.process.communicate(timeout=timeout)
    return found(stdout.decode())


@pytest.mark.attack(192)
def test_192_a_thousand_slow_clients_do_not_slow_the_others(netsandbox: Any, scene: Any) -> None:
    good, _, options = scene
    script = (
        MANY
        + r"""
def timed():
    began = time.monotonic()
    code = status(get(b"allowed.test", good))
    return [code, time.monotonic() - began]
out["before"] = timed()
slow = [dial() for _ in range(1000)]
parts = (b"GET http://allowed.test/ HTTP/1.1\r\nHost: a", b"CONNECT allowed", b"\x05", b"\x05\x01\x00\x05")
for number, sock in enumerate(slow):
    sock.sendall(parts[number % 4])
out["during"] = [timed() for _ in range(20)]
"""
    )
    tried = attack(netsandbox, options, script, arguments={"good": good.port})
    assert tried.out["before"][0] == 200
    assert [code for code, _ in tried.out["during"]] == [200] * 20
    assert max(seconds for _, seconds in tried.out["during"]) < 1.0


@pytest.mark.attack(192)
@pytest.mark.attack(194)
def test_192_194_who_does_not_finish_is_hung_up_on_in_ten_seconds(netsandbox: Any, scene: Any) -> None:
    good, _, options = scene
    script = r"""
def hung_up(*pieces):
    began = time.monotonic()
    with dial(timeout=20) as sock:
        for piece in pieces:
            sock.sendall(piece)
            if piece is not pieces[-1]:
                sock.recv(4096)
        ended = threading.Event()
        def drip():  # a byte now and then does not buy more time
            while pieces and not ended.wait(1):
                try:
                    sock.sendall(b"a")
                except OSError:
                    return
        threading.Thread(target=drip, daemon=True).start()
        rest(sock)
        ended.set()
    return time.monotonic() - began

whole = b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % (good, good)
openings = {"silence": [], "half a head": [whole[:20]], "greeting": [b"\x05\x01\x00", b"\x05\x01\x00\x03\xff"],
    "half a hello": [whole, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"], "tunnel without a word": [whole]}
threads = [threading.Thread(target=lambda n=n, p=p: out.update({n: hung_up(*p)})) for n, p in openings.items()]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    tried = attack(netsandbox, options, script, arguments={"good": good.port})
    late = {name: seconds for name, seconds in tried.out.items() if not seconds < 18}
    assert not late
    assert len(tried.out) == 5
    assert tried.denied(reason="deadline")


@pytest.mark.attack(193)
def test_193_past_the_limit_newcomers_get_a_clear_answer_and_then_their_turn(netsandbox: Any, scene: Any) -> None:
    good, _, options = scene
    script = (
        MANY
        + r"""
held = []
for _ in range(4096 + 50):
    held.append(dial())
time.sleep(0.2)
late = held[-1]
out["late"] = rest(late)
for sock in held:
    sock.close()
deadline = time.monotonic() + 15
while (code := status(get(b"allowed.test", good))) != 200 and time.monotonic() < deadline:
    time.sleep(0.1)
out["after"] = code
"""
    )
    tried = attack(netsandbox, options, script, arguments={"good": good.port})
    assert tried.out["late"].startswith("HTTP/1.1 503")
    assert tried.out["after"] == 200
    assert tried.denied(reason="limit")


@pytest.mark.attack(195)
def test_195_without_descriptors_nothing_is_let_through_and_service_comes_back(netsandbox: Any, scene: Any) -> None:
    good, bad, options = scene
    script = (
        MANY
        + r"""
stage("ready")
held = []
for number in range(300):
    sock = dial()
    sock.sendall((b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % (good, good)) if number % 2
        else b"CONNECT denied.test:%d HTTP/1.1\r\nHost: denied.test:%d\r\n\r\n" % (bad, bad))
    sock.settimeout(0.01)
    held.append(sock)
codes = []
for sock in held:
    try:
        codes.append(status(sock.recv(4096)))
    except OSError:
        pass
out["codes"] = sorted(set(codes))
out["wire"] = [refused(dial, ("192.0.2.1", 80), 1)]
for sock in held:
    sock.close()
deadline = time.monotonic() + 20
while (code := status(get(b"allowed.test", good))) != 200 and time.monotonic() < deadline:
    time.sleep(0.1)
out["after"] = code
out["denied"] = status(get(b"denied.test", bad))
"""
    )
    running = staged(netsandbox, options, script, {"good": good.port, "bad": bad.port})
    running.read_until(b"ready")
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (64, 64))
    go_on(running)
    result = outcome(running)
    assert set(result["codes"]) <= {0, 200, 403, 500, 502, 503}
    assert (result["after"], result["denied"]) == (200, 403)
    assert bad.accepts == 0


@pytest.mark.attack(196)
def test_196_slow_decisions_do_not_become_yes(netsandbox: Any, canary: Any, authority: Any, scene: Any) -> None:
    good, bad, options = scene
    authority.answer("*.slow.test", "127.0.0.1", delay=1.5)
    names = [f"n{number}.slow.test" for number in range(300)]
    rules = [word for name in names for word in ("--allow-domain", f"{name}:{good.port}")]
    script = (
        MANY
        + r"""
get(b"allowed.test", good)  # known from here on, so it needs no lookup in the crowd
held = []
for name in names:
    sock = dial()
    sock.sendall(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (name.encode(), good, name.encode(), good))
    held.append(sock)
began = time.monotonic()
out["meanwhile"] = [status(get(b"denied.test", bad)), status(get(b"allowed.test", good)), time.monotonic() - began]
for sock in held:
    sock.settimeout(20)
out["codes"] = [status(until(sock, b"\r\n\r\n")) for sock in held]
"""
    )
    ports = {"good": good.port, "bad": bad.port, "names": names}
    tried = attack(netsandbox, [*options, *rules], script, arguments=ports)
    assert tried.out["meanwhile"][:2] == [403, 200]
    assert set(tried.out["codes"]) == {200, 502}  # past 256 lookups at once the answer is no
    assert bad.accepts == 0
    assert good.accepts == tried.out["codes"].count(200) + 2
    assert len(tried.allowed()) == good.accepts


@pytest.mark.attack(197)
def test_197_memory_stays_bounded_over_ten_thousand_names(netsandbox: Any, scene: Any) -> None:
    good, _, options = scene
    script = r"""
def names(prefix):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        for number in range(10_000):
            sock.sendto(question(b"%s%d.denied.test" % (prefix, number)), ("127.0.0.1", 53))
            if number % 50 == 49:
                for _ in range(50):
                    try:
                        sock.recv(512)
                    except OSError:
                        break
def hosts(prefix):
    for number in range(1000):
        get(b"%s%d.elsewhere.test" % (prefix, number), good)
names(b"a"); hosts(b"a")
stage("warm")
names(b"b"); names(b"c"); hosts(b"b")
stage("full")
out["twin"] = status(get(b"allowed.test", good))
"""
    running = staged(netsandbox, options, script, {"good": good.port})
    running.read_until(b"warm", timeout=180)
    warm = resident(running.pid)
    go_on(running)
    running.read_until(b"full", timeout=180)
    full = resident(running.pid)
    go_on(running)
    assert outcome(running)["twin"] == 200
    assert full - warm < 24 * MEGABYTE
    assert full < 160 * MEGABYTE


@pytest.mark.attack(199)
def test_199_a_flood_of_questions_leaves_room_for_others(netsandbox: Any, scene: Any) -> None:
    good, _, options = scene
    script = r"""
def flood():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        number = 0
        while not over.is_set():
            number += 1
            sock.sendto(question(b"n%d.denied.test" % number), ("127.0.0.1", 53))
over = threading.Event()
threads = [threading.Thread(target=flood, daemon=True) for _ in range(2)]
[thread.start() for thread in threads]
out["times"] = []
for _ in range(10):
    began = time.monotonic()
    page = status(get(b"allowed.test", good))
    out["times"].append([page, time.monotonic() - began])
    time.sleep(0.1)
over.set()
[thread.join() for thread in threads]
time.sleep(0.3)
out["after"] = ask(b"allowed.test")
"""
    tried = attack(netsandbox, options, script, arguments={"good": good.port})
    assert [code for code, _ in tried.out["times"]] == [200] * 10
    assert max(seconds for _, seconds in tried.out["times"]) < 3
    assert tried.out["after"][0] == 0


@pytest.mark.attack(202)
def test_202_who_does_not_read_is_waited_for_not_buffered_for(netsandbox: Any, canary: Any, authority: Any) -> None:
    def pour(stream: Any, visit: Any) -> None:
        visit.data += stream.recv(16)
        block = b"x" * 65536
        for _ in range(2000):  # 125 megabytes, if somebody took them
            stream.sendall(block)
            visit.data += b"."

    def deaf(stream: Any, visit: Any) -> None:
        visit.data += stream.recv(16)
        stop.wait(30)

    stop = threading.Event()
    source, sink = canary.tcp(script=pour), canary.tcp(script=deaf)
    authority.answer("*.test", "127.0.0.1")
    script = r"""
def tunnel(port):
    sock, head = connect(b"allowed.test", port)
    sock.sendall(b"\x00\x01 opaque data!")
    return sock
lazy = [tunnel(source) for _ in range(4)]
stage("begun")
eager = tunnel(sink)
eager.settimeout(2)
sent = 0
try:
    for _ in range(2000):
        sent += eager.send(b"y" * 65536)
except OSError:
    pass
out["sent"] = sent
stage("stuck")
"""
    options = ["-q", "--allow-domain", "allowed.test:*", "--allow-address", "127.0.0.1:*"]
    options += ["--upstream-dns", authority.address]
    running = staged(netsandbox, options, script, {"source": source.port, "sink": sink.port})
    running.read_until(b"begun")
    before = resident(running.pid)
    go_on(running)
    running.read_until(b"stuck")
    assert resident(running.pid) - before < 16 * MEGABYTE
    poured = max(bytes(visit.data).count(b".") for visit in source.visits)
    assert poured < 1000  # the origin was made to wait
    stop.set()
    go_on(running)
    assert outcome(running)["sent"] < 100 * 1024 * 1024
