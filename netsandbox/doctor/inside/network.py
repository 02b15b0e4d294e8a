"""Attempts over the network: TCP, the door's CONNECT and SOCKS5, UDP, DNS queries, Unix sockets, listening."""

from __future__ import annotations

import base64
import os
import socket
import time
from urllib.parse import urlsplit

from netsandbox.doctor.inside import Prevented

SECONDS = 8.0  # for a door to answer; it may take long on a busy machine
ANSWER_SECONDS = 2.0  # for the server behind it
REQUEST = b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
MAX_HEAD = 16384


def tcp(host: str, port: int) -> str:
    """A connection proves nothing, because a door accepts every one. Only bytes that come back count."""
    with socket.create_connection((host, port), timeout=SECONDS) as stream:
        stream.sendall(REQUEST % b"probe.test")
        stream.settimeout(0.5)
        return _something(_receive(stream))


def connect_door(door: int | None, host: str, port: int, *, token: bool = True) -> str:
    """*door* None: the door that the environment names, with its *token* or without."""
    door, user, password = (door, "", "") if door is not None else named_door()
    with socket.create_connection(("127.0.0.1", door), timeout=SECONDS) as stream:
        target = b"%s:%d" % (host.encode("ascii"), port)
        secret = base64.b64encode(f"{user}:{password}".encode("ascii"))
        shown = b"Proxy-Authorization: Basic %s\r\n" % secret if user and token else b""
        stream.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target, target, shown))
        head = _head(stream)
        status = head.split(b" ")[1:2]
        if status != [b"200"]:
            raise Prevented(_refusal(head))
        stream.settimeout(ANSWER_SECONDS)
        stream.sendall(REQUEST % target)
        return _something(_receive(stream))


def named_door() -> tuple[int, str, str]:
    """The port, user and password of the proxy that the environment names."""
    url = urlsplit(os.environ.get("HTTP_PROXY", ""))
    if url.port is None:
        raise Prevented("the environment names no door")
    return url.port, url.username or "", url.password or ""


def socks_door(door: int | None, host: str, port: int) -> str:
    door, user, password = (door, "", "") if door is not None else named_door()
    with socket.create_connection(("127.0.0.1", door), timeout=SECONDS) as stream:
        _greet(stream, user.encode("ascii"), password.encode("ascii"))
        stream.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(host) + port.to_bytes(2, "big"))
        reply = stream.recv(10)
        if reply[1:2] != b"\x00":
            raise Prevented(f"SOCKS5 reply {reply[1]}" if len(reply) > 1 else "closed by the door")
        stream.settimeout(ANSWER_SECONDS)
        stream.sendall(REQUEST % host.encode("ascii"))
        return _something(_receive(stream))


def _greet(stream: socket.socket, user: bytes, password: bytes) -> None:
    """The SOCKS5 handshake, with a password if there is one (RFC 1929)."""
    method = b"\x02" if user else b"\x00"
    stream.sendall(b"\x05\x01" + method)
    if stream.recv(2) != b"\x05" + method:
        raise Prevented("the door speaks no SOCKS5")
    if user:
        stream.sendall(b"\x01%c%s%c%s" % (len(user), user, len(password), password))
        if stream.recv(2)[1:] != b"\x00":
            raise Prevented("the door does not take the password")


def visit(name: str, port: int) -> str:
    """Like an ordinary program: look the name up, connect, send a request, read."""
    address = str(socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    with socket.create_connection((address, port), timeout=SECONDS) as stream:
        stream.sendall(REQUEST % name.encode("ascii"))
        return _something(_receive(stream))


def _receive(stream: socket.socket) -> bytes:
    data = b""
    try:
        while len(data) < MAX_HEAD and (piece := stream.recv(4096)):
            data += piece
    except TimeoutError:
        if not data:
            raise Prevented("no answer") from None
    return data


def _something(data: bytes) -> str:
    if not data:
        raise Prevented("closed by the door")
    first = data.split(b"\r\n")[0].decode("ascii", "replace")
    if first.startswith("HTTP/1.1 403"):  # a door answers plain HTTP itself
        raise Prevented(_refusal(data))
    return f"answered {first[:60]!a}"


def _head(stream: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and len(data) < MAX_HEAD and (piece := stream.recv(4096)):
        data += piece
    return data


def _refusal(head: bytes) -> str:
    lines = head.partition(b"\r\n\r\n")[0].decode("ascii", "replace").split("\r\n")
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() == "x-netsandbox-reason":
            return f"{lines[0].partition(' ')[2][:3]} {value.strip()}"
    return lines[0][:60] or "closed by the door"


DNS_SECONDS = 0.5
CODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
RECURSION_DESIRED = 0x0100


def udp(host: str, port: int, family: int = socket.AF_INET) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0.2)
        sender.sendto(b"probe", (host, port))
        try:
            return f"answered {sender.recv(512)!a}"
        except TimeoutError:
            raise Prevented("sent, no answer") from None


def query(server: str, port: int, name: str, kind: int = 1, *, tcp: bool = False) -> str:
    """One DNS query. Any reply other than NOERROR with records achieves nothing."""
    query = encode_query(name, kind)
    try:
        reply = _by_tcp(server, port, query) if tcp else _by_udp(server, port, query)
    except TimeoutError:
        raise Prevented("no answer") from None
    if len(reply) < 12 or reply[:2] != query[:2]:
        raise Prevented("no answer")
    code = CODES.get(reply[3] & 15, str(reply[3] & 15))
    records = int.from_bytes(reply[6:8], "big")
    if code != "NOERROR" or not records:
        raise Prevented(code if code != "NOERROR" else "NOERROR without a record")
    return f"{records} records"


def lookup(name: str) -> str:
    """Look a name up with the system's resolver, as ordinary programs do."""
    try:
        found = socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)
    except socket.gaierror as error:  # its numbers are not those of errno
        raise Prevented(error.strerror or "not found") from None
    return f"found {found[0][4][0]}"


def encode_query(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("ascii").split(b"."))
    header = os.urandom(2) + RECURSION_DESIRED.to_bytes(2, "big") + b"\0\1\0\0\0\0\0\0"
    return header + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\1"


def _by_udp(server: str, port: int, query: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(DNS_SECONDS)
        sender.sendto(query, (server, port))
        return sender.recv(4096)


def _by_tcp(server: str, port: int, query: bytes) -> bytes:
    with socket.create_connection((server, port), timeout=DNS_SECONDS) as stream:
        stream.sendall(len(query).to_bytes(2, "big") + query)
        data = b""
        while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
            piece = stream.recv(4096)
            if not piece:
                break
            data += piece
        return data[2:]


def unix_stream(path: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)
        client.sendall(b"probe")
    return "connected"


def late_unix_stream(ready: str, path: str) -> str:
    """Request a socket outside that did not exist when the session started, then connect to it."""
    os.close(os.open(ready, os.O_CREAT | os.O_WRONLY, 0o600))
    for _ in range(600):
        if os.path.exists(path):
            return unix_stream(path)
        time.sleep(0.005)
    raise Prevented("the socket never appeared")


def own_unix_stream(path: str) -> str:
    """Talk to a server inside, then wait until a program outside has tried it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()
        unix_stream(path)
        with server.accept()[0] as peer:
            peer.settimeout(ANSWER_SECONDS)
            if peer.recv(5) != b"probe":
                raise Prevented("nothing came from the session's own program")
        os.close(os.open(f"{path}.ready", os.O_CREAT | os.O_WRONLY, 0o600))
        for _ in range(600):
            if os.path.exists(f"{path}.tried"):
                return "talked to itself"
            time.sleep(0.005)
    raise Prevented("nobody outside tried")


def unix_datagram(path: str) -> str:
    """One end of a datagram socket pair can be connected to any path, without a call to socket(2)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendto(b"probe", path)
    return "sent"


def listen(address: str, port: int | None) -> str:
    """*port* None: the first of the session's window."""
    wanted = int(os.environ["LISTENING_BASE_PORT"]) if port is None else port
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind((address, wanted))
        server.listen()
        return f"listens on port {server.getsockname()[1]}"
