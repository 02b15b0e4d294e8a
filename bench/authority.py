"""A name server for the benchmarks: every name is 127.0.0.1. Usage: authority.py PORT"""

from __future__ import annotations

import socket
import sys

A = 1
HEADER = 12
ANSWER = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01"


def reply(query: bytes) -> bytes:
    end = HEADER
    while query[end]:
        end += query[end] + 1
    question = query[HEADER : end + 5]
    is_address = int.from_bytes(question[-4:-2], "big") == A
    counts = b"\x00\x01" + (b"\x00\x01" if is_address else b"\x00\x00") + b"\x00\x00\x00\x00"
    return query[:2] + b"\x85\x80" + counts + question + (ANSWER if is_address else b"")


def main() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", int(sys.argv[1])))
        while True:
            query, client = sock.recvfrom(1500)
            sock.sendto(reply(query), client)


if __name__ == "__main__":
    main()
