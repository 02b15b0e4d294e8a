"""A name server that counts what it is asked: one is the session's upstream, another a canary for direct questions."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable

from netsandbox_dns.wire import A, Query, address_answer, nodata, nxdomain, parse_query

SECONDS = 1.0
TTL = 60
LOOPBACK = bytes([127, 0, 0, 1])


class NameServer:
    """Answers *names* with 127.0.0.1, by UDP and by TCP on one port. `asked` counts (name, type)."""

    def __init__(self, names: Iterable[str], address: str = "127.0.0.1") -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        self.address = address
        self._names = frozenset(names)
        self.stream = socket.create_server((address, 0))
        self.stream.settimeout(0)
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.datagrams.bind((address, self.port))
        except OSError:
            self.close()
            raise
        self.datagrams.settimeout(0)

    @property
    def port(self) -> int:
        port: int = self.stream.getsockname()[1]
        return port

    @property
    def total(self) -> int:
        return sum(self.asked.values())

    def heard(self, name: str) -> int:
        return sum(count for (asked, _), count in self.asked.items() if asked == name)

    def serve_datagram(self) -> None:
        data, client = self.datagrams.recvfrom(4096)
        reply = self._reply(data)
        if reply is not None:
            self.datagrams.sendto(reply, client)

    def serve_stream(self) -> None:
        with self.stream.accept()[0] as client:
            client.settimeout(SECONDS)
            data = client.recv(4096)
            reply = self._reply(data[2:])
            if reply is not None:
                client.sendall(len(reply).to_bytes(2, "big") + reply)

    def close(self) -> None:
        self.stream.close()
        self.datagrams.close()

    def _reply(self, data: bytes) -> bytes | None:
        query = parse_query(data)
        if not isinstance(query, Query):
            self.asked["?", 0] += 1
            return None
        name = query.name.decode("ascii").lower()
        self.asked[name, query.qtype] += 1
        if name not in self._names:
            return nxdomain(query, "")
        return address_answer(query, LOOPBACK, TTL) if query.qtype == A else nodata(query)
