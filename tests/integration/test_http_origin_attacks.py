"""Section B of the catalogue, the rest: other protocols at the HTTP door, answers of origins, loops, lost clients."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from typing import Any

import pytest

from tests.rig.inside import Scene, attack, program

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.fixture
def scene(netsandbox: Any, canary: Any, authority: Any) -> Scene:
    authority.answer("*.test", "127.0.0.1")
    return Scene(canary.http(body=b"reached"), canary.http(body=b"stolen"), authority, netsandbox)


@pytest.mark.attack(34)
@pytest.mark.attack(51)
def test_34_51_the_first_byte_decides_the_protocol_for_good(scene: Scene) -> None:
    script = r"""
out["h2"] = status(say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 32))
out["first"] = [say(bytes([first]) + b"CONNECT denied.test:%d HTTP/1.1\r\n\r\n" % bad)[:4]
    for first in (0x00, 0x04, 0x16, 0x20, 0x80, 0xff)]
with dial() as sock:
    sock.sendall(b"\x05\x01\x00CONNECT denied.test:%d HTTP/1.1\r\n\r\n" % bad)
    out["socks_then_http"] = rest(sock)[2:6]
with dial() as sock:
    sock.sendall(b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % (good, good))
    until(sock, b"reached")
    sock.sendall(b"\x05\x01\x00\x05\x01\x00\x03\x0bdenied.test" + struct.pack("!H", bad) + b"\r\n\r\n")
    out["http_then_socks"] = status(rest(sock))
upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
out["h2c"] = status(get(b"allowed.test", good, extra=upgrade.replace(b"Connection: Upgrade, HTTP2-Settings\r\n", b"")))
"""
    tried = scene.attack(script)
    assert tried.out["h2"] in (0, 400, 505)
    assert all(reply == "" for reply in tried.out["first"])
    assert not tried.out["socks_then_http"].startswith("\x00\x00")
    assert tried.out["http_then_socks"] in (0, 400)
    assert tried.out["h2c"] == 200
    assert scene.bad.accepts == 0
    assert b"h2c" not in scene.good.received.lower()
    assert b"http2-settings" not in scene.good.received.lower()


@pytest.mark.attack(35)
def test_35_a_websocket_is_checked_as_any_request_and_opaque_after_101(
    netsandbox: Any, canary: Any, authority: Any
) -> None:
    def upgrade(stream: socket.socket, visit: Any) -> None:
        while b"\r\n\r\n" not in visit.data:
            visit.data += stream.recv(65536)
        stream.sendall(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        frame = stream.recv(64)
        visit.data += frame
        stream.sendall(b"echo:" + frame)

    server = canary.tcp(script=upgrade)
    authority.answer("*.test", "127.0.0.1")
    script = r"""
def websocket(host):
    with dial() as sock:
        where = host + b":%d" % port
        sock.sendall(b"GET http://" + where + b"/ HTTP/1.1\r\nHost: " + where + b"\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        head = until(sock, b"\r\n\r\n")
        if status(head) != 101:
            return [status(head), b""]
        sock.sendall(b"\x81\x05hello")
        return [101, rest(sock)]

out["allowed"], out["denied"] = websocket(b"allowed.test"), websocket(b"denied.test")
"""
    options = ["--allow-domain", f"allowed.test:{server.port}", "--allow-address", f"127.0.0.1:{server.port}"]
    options += ["--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert tried.out["allowed"] == [101, "echo:\x81\x05hello"]
    assert tried.out["denied"][0] == 403
    assert server.accepts == 1


@pytest.mark.attack(36)
@pytest.mark.attack(43)
def test_36_43_what_an_origin_answers_is_passed_on_never_followed_or_trusted(
    netsandbox: Any, canary: Any, authority: Any
) -> None:
    bad = canary.http(body=b"stolen")
    answers = {
        "redirect": b"HTTP/1.1 302 Go\r\nLocation: http://denied.test:%d/\r\nContent-Length: 0\r\n\r\n" % bad.port,
        "garbage": b"\x00\xff\x13 no http at all \r\n\r\n",
        "early close": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 5\r\n\r\nabcde",
        "many interim": b"HTTP/1.1 102 Wait\r\n\r\n" * 200 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200_000,
        "second answer": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra",
        "nothing": b"",
    }

    def script_for(answer: bytes) -> Any:
        def speak(stream: socket.socket, visit: Any) -> None:
            while b"\r\n\r\n" not in visit.data:
                data = stream.recv(65536)
                if not data:
                    return
                visit.data += data
            stream.sendall(answer)

        return speak

    ports = {name: canary.tcp(script=script_for(answer)).port for name, answer in answers.items()}
    good = canary.http(body=b"reached")
    authority.answer("*.test", "127.0.0.1")
    script = r"""
out["replies"] = {name: get(b"allowed.test", port)[:2000] for name, port in ports.items()}
with dial() as sock:
    for port in (ports["second answer"], good):
        sock.sendall(b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n" % (port, port))
        last = until(sock, b"reached" if port == good else b"ok")
    out["next"] = last
out["alive"] = get(b"allowed.test", good)
"""
    options = [
        "--allow-domain",
        "allowed.test:*",
        "--allow-address",
        "127.0.0.1:*",
        "--upstream-dns",
        authority.address,
    ]
    tried = attack(netsandbox, options, script, arguments={"ports": ports, "good": good.port})
    replies = tried.out["replies"]
    assert replies["redirect"].startswith("HTTP/1.1 302")
    for name in ("garbage", "two lengths", "endless head", "nothing"):
        assert replies[name].startswith("HTTP/1.1 502"), (name, replies[name][:200])
    assert "extra" not in replies["second answer"]
    assert "extra" not in tried.out["next"]
    assert "reached" in tried.out["alive"]
    assert bad.accepts == 0


@pytest.mark.attack(38)
@pytest.mark.attack(39)
def test_38_39_headers_meant_for_a_proxy_reach_neither_a_socket_nor_the_origin(scene: Scene, canary: Any) -> None:
    local = canary.unix()
    extra = (
        f"X-Unix-Socket: {local.path}\r\nProxy-Authorization: Basic c2VjcmV0OnRva2Vu\r\n"
        "Proxy-Connection: keep-alive\r\n"
        "X-Netsandbox-Session: forged\r\nX-Forwarded-Host: denied.test\r\n"
    )
    script = """
out["allowed"] = status(get(b"allowed.test", good, extra=extra.encode()))
out["denied"] = status(get(b"denied.test", bad, extra=extra.encode()))
"""
    tried = scene.attack(script, extra=extra)
    assert tried.out == {"allowed": 200, "denied": 403}
    seen = scene.good.received.lower()
    for word in (b"proxy-", b"c2vjcmv0", b"x-netsandbox", b"x-unix-socket"):
        assert word not in seen
    assert local.accepts == 0
    assert "c2VjcmV0" not in tried.run.log_path.read_text()


@pytest.mark.attack(40)
def test_40_the_doors_do_not_lead_to_themselves(netsandbox: Any, canary: Any) -> None:
    server = canary.http(body=b"reached")
    script = """
hosts = (b"127.0.0.1", b"localhost", b"[::1]", b"0.0.0.0", b"[::]")
out["codes"] = [status(connect(host, 1008)[1]) for host in hosts]
own = [name.encode() for name in os.environ["HOST_ADDRESSES"].split()]
out["own"] = [reason(connect(host, 1008)[1]) for host in own]
sock, head = connect(b"127.0.0.1", port)
out["twin"] = status(head)
"""
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    options = ["--allow-domain", "allowed.test", "--allow-address", f"127.0.0.1:{server.port}"]
    env = {"HOST_ADDRESSES": " ".join(sorted(map(str, addresses)))}
    tried = attack(netsandbox, options, script, arguments={"port": server.port}, env=env)
    assert set(tried.out["codes"]) == {403}
    assert set(tried.out["own"]) <= {"address-guard", "address-literal"}
    assert tried.out["twin"] == 200


@pytest.mark.attack(41)
def test_41_a_relay_inside_the_session_gives_no_other_verdict(scene: Scene) -> None:
    script = r"""
listener = socket.create_server(("127.0.0.1", 0))
def relay():
    for _ in range(2):
        client, _ = listener.accept()
        with client, dial() as door:
            door.sendall(client.recv(65536))
            client.sendall(until(door, b"\r\n\r\n"))
threading.Thread(target=relay, daemon=True).start()
def through(host, port):
    return status(say(b"CONNECT %s:%d HTTP/1.0\r\n\r\n" % (host, port), listener.getsockname()))
out["denied"], out["allowed"] = through(b"denied.test", bad), through(b"allowed.test", good)
"""
    tried = scene.attack(script)
    assert tried.out == {"denied": 403, "allowed": 200}
    assert scene.bad.accepts == 0


@pytest.mark.open_files
@pytest.mark.attack(41)
def test_41_a_session_inside_a_session_is_no_way_round(netsandbox: Any) -> None:
    inner = [netsandbox.python, "-m", "netsandbox", "run", "--online", "--", "true"]
    run = netsandbox("run", "--allow-domain", "allowed.test", "--", *inner)
    assert run.returncode != 0
    assert "netsandbox: " in run.stderr


@pytest.mark.attack(44)
def test_44_clients_that_leave_at_any_moment_leak_nothing(scene: Scene) -> None:
    script = r"""
def leave(data, *, reset):
    sock = dial()
    sock.sendall(data)
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()

head = b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test:%d\r\n" % (good, good)
whole = b"CONNECT allowed.test:%d HTTP/1.1\r\n\r\n" % good
for number in range(100):
    for data in (head[:20], head, head + b"Content-Length: 9\r\n\r\nabc", whole, whole + b"GET / HTTP", b"\x05\x01"):
        leave(data, reset=number % 2 == 0)
out["twin"] = status(get(b"allowed.test", good))
print("ready", flush=True)
sys.stdin.read()
"""
    ports = {"good": scene.good.port, "bad": scene.bad.port}
    command = program(scene.netsandbox, script, ports)
    running = scene.netsandbox.spawn("run", *scene.options, "--", *command, stdin=subprocess.PIPE)
    running.read_until(b"ready", timeout=60)
    descriptors = wait_for_few_descriptors(running.pid)
    assert descriptors < 40, f"{descriptors} descriptors are still open in the supervisor"
    running.process.stdin.close()
    running.read_until(b'{"twin": 200}')
    assert running.wait() == 0


def wait_for_few_descriptors(pid: int) -> int:
    """The supervisor's open descriptors once its flows have ended."""
    deadline = time.monotonic() + 60
    while (count := len(os.listdir(f"/proc/{pid}/fd"))) >= 40 and time.monotonic() < deadline:
        time.sleep(0.2)
    return count
