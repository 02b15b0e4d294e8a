"""A session by its name, with real servers behind and real clients in front."""

from __future__ import annotations

import base64
import hashlib
import http.client
import http.server
import json
import shutil
import socket
import struct
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.rig.by_name import NAME, ask


@pytest.mark.parametrize("host", [NAME, "3000.shop.localhost", "SHOP.localhost."])
@pytest.mark.parametrize("face", ["127.0.0.1", "::1"])
def test_a_page_by_name(door: Any, pages: int, host: str, face: str) -> None:
    connection = http.client.HTTPConnection(face, door.port, timeout=20)
    connection.request("GET", "/page", headers={"Host": f"{host}:{door.port}"})
    response = connection.getresponse()
    assert json.load(response) == {"host": "localhost:3000", "path": "/page"}
    connection.close()


def test_keep_alive_head_post_and_chunks_on_one_connection(door: Any, pages: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=20)
    head = {"Host": NAME}
    for method, path, body, expected in [
        ("GET", "/chunks", None, b"onetwo"),
        ("HEAD", "/", None, b""),
        ("POST", "/", b"x" * 300_000, b"x" * 300_000),
        ("GET", "/chunks", None, b"onetwo"),
    ]:
        connection.request(method, path, body, head)
        first = connection.sock
        assert connection.getresponse().read() == expected
        assert connection.sock is first
    connection.close()


def test_100_continue_passes(rig: Any, door: Any, pages: int, speak: Any) -> None:
    client = rig.client(door.port)
    head = f"POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    client.sendall(head.encode())
    assert client.recv(100).startswith(b"HTTP/1.1 100 ")
    client.sendall(b"hello")
    assert speak.read_all(client).endswith(b"hello")


def test_events_arrive_one_by_one(rig: Any, door: Any) -> None:
    """The server sends the next event only when the last was read: a door that buffers would block forever."""
    read = threading.Semaphore(0)

    def serve(peer: socket.socket) -> None:
        peer.recv(4096)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in range(3):
            peer.sendall(b"data: %d\n\n" % number)
            read.acquire(timeout=60)

    door.book.publish(3000, rig.server(serve).port)
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=20)
    connection.request("GET", "/events", headers={"Host": NAME})
    response = connection.getresponse()
    for number in range(3):
        assert (response.readline(), response.readline()) == (b"data: %d\n" % number, b"\n")
        read.release()
    assert response.read() == b""
    connection.close()


def test_a_head_that_comes_byte_by_byte(rig: Any, door: Any, pages: int, speak: Any) -> None:
    client = rig.client(door.port)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in f"GET /slow HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode():
        client.sendall(bytes([byte]))
    assert b'"/slow"' in speak.read_all(client)


GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def websocket_echo(peer: socket.socket) -> None:
    """One text frame at a time, unmasked on the way back."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += peer.recv(65536)
    key = next(line[18:].strip() for line in data.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    peer.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )
    with peer.makefile("rb") as stream:
        while start := stream.read(2):
            opcode, length = start
            mask = stream.read(4)
            text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(stream.read(length & 127)))
            peer.sendall(struct.pack("!BB", opcode, len(text)) + text)
            if opcode == 0x88:
                return


def test_a_websocket_is_upgraded_and_talks_both_ways(rig: Any, door: Any) -> None:
    door.book.publish(3000, rig.server(websocket_echo).port)
    client = rig.client(door.port)
    client.sendall(
        f"GET /hmr HTTP/1.1\r\nHost: {NAME}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    answer = client.recv(4096)
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer
    for text in (b"update", b"full-reload"):
        client.sendall(struct.pack("!BB", 0x81, 0x80 | len(text)) + bytes(4) + text)
        assert client.recv(100) == struct.pack("!BB", 0x81, len(text)) + text


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_finds_the_name_by_itself(door: Any, pages: int) -> None:
    url = f"http://3000.{NAME}:{door.port}/from-curl"
    done = subprocess.run(["curl", "-sS", "--noproxy", "*", url], capture_output=True, check=False, timeout=60)
    assert json.loads(done.stdout) == {"host": "localhost:3000", "path": "/from-curl"}


NODE = """
const [port, name] = process.argv.slice(1);
const agent = new (require('http').Agent)({keepAlive: true, maxSockets: 1});
const get = (path) => new Promise((resolve, reject) => require('http').get(
  {host: '127.0.0.1', port, path, agent, headers: {Host: name}},
  (response) => { let data = ''; response.on('data', (d) => data += d); response.on('end', () => resolve(data)); },
).on('error', reject));
(async () => { console.log(await get('/chunks')); console.log(await get('/events')); agent.destroy(); })();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_keeps_its_connection_and_reads_events(door: Any, pages: int) -> None:
    done = subprocess.run(["node", "-e", NODE, str(door.port), NAME], capture_output=True, check=False, timeout=60)
    assert done.stdout == b"onetwo\ndata: 0\n\ndata: 1\n\ndata: 2\n\n\n"


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Quiet."""


def test_pythons_own_file_server(rig: Any, door: Any, tmp_path: Path, speak: Any) -> None:
    (tmp_path / "index.html").write_text("<p>files</p>")
    with http.server.HTTPServer(("127.0.0.1", 0), partial(Files, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        door.book.publish(3000, server.server_port)
        assert b"<p>files</p>" in ask(rig, speak, door.port, f"GET / HTTP/1.0\r\nHost: {NAME}\r\n\r\n".encode())
        thread.join()
