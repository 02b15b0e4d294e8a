"""Sends datagrams by every call there is: `datagrams.py PORT`, where PORT is a server of the host.

First between two sockets of this session, on ports 5300 and 5400, there and back; then to the host and to the world.
"""

import ctypes
import json
import socket
import struct
import sys

HOST = ("127.0.0.1", int(sys.argv[1]))
RAW = ((socket.SOCK_RAW, 1), (socket.SOCK_DGRAM, 1), (socket.SOCK_RAW, 255), (socket.SOCK_SEQPACKET, 132))
libc = ctypes.CDLL(None, use_errno=True)


def send_many(sock, data, host, port):
    """sendmmsg(2) with one message."""
    packed = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)
    name, text = ctypes.create_string_buffer(packed, 16), ctypes.create_string_buffer(data, len(data))
    vector = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(text), len(data)))
    head = struct.pack("PIxxxxPNPNixxxx", ctypes.addressof(name), 16, ctypes.addressof(vector), 1, 0, 0, 0)
    message = ctypes.create_string_buffer(head + bytes(8))
    if libc.sendmmsg(sock.fileno(), message, 1, 0) != 1:
        raise OSError(ctypes.get_errno(), "sendmmsg")


def send_connected(sock, data, host, port):
    sock.connect((host, port))
    sock.send(data)


WAYS = {
    "sendto": lambda sock, data, host, port: sock.sendto(data, (host, port)),
    "sendmsg": lambda sock, data, host, port: sock.sendmsg([data], [], 0, (host, port)),
    "sendmmsg": send_many,
    "connect": send_connected,
}


def there_and_back(server, way):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.bind(("127.0.0.1", 5400))
        WAYS[way](client, way.encode(), "127.0.0.1", 5300)
        data, source = server.recvfrom(100)
        server.sendto(b"back " + data, source)
        answer, answerer = client.recvfrom(100)
        return [data.decode(), source, answer.decode(), answerer]


def made(kind, protocol):
    try:
        socket.socket(socket.AF_INET, kind, protocol).close()
    except OSError:
        return False
    return True


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("127.0.0.1", 5300))
    receiver.settimeout(10)
    out = {"name": receiver.getsockname(), "raw": [kind for kind in RAW if made(*kind)]}
    out.update({way: there_and_back(receiver, way) for way in WAYS})
for send in WAYS.values():
    for place in (HOST, ("203.0.113.9", 53535)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            try:
                send(sender, b"leak", *place)
            except OSError:
                pass
print(json.dumps(out))
