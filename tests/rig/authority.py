"""An upstream name server on loopback, over UDP and TCP, that remembers every question it is asked.

It plays the host's recursive resolver: pass `authority.address` as `--upstream-dns`. What it does not know is NXDOMAIN.
Names are looked up in lower case; `queries` keeps them exactly as they came, so a test can prove what got out.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import asyncio_dgram
import dnslib
import pytest

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

Record = tuple[str, str]
Reply = Callable[[bytes], list[bytes]]


@dataclass(frozen=True)
class Question:
    """One question as it reached the server."""

    name: str
    type: str
    transport: str
    raw: bytes


@dataclass
class Entry:
    """What the server says about a name. `turns` are given one after another per type, the last for ever."""

    turns: list[list[Record]]
    rcode: str = "NOERROR"
    delay: float = 0
    silent: bool = False
    truncated: bool = False
    ttl: int = 60
    reply: Reply | None = None
    asked: Counter[str] = field(default_factory=Counter)

    def turn(self, kind: str) -> list[Record]:
        """The records for this question; A and AAAA of one lookup get the same turn."""
        number = min(self.asked[kind], len(self.turns) - 1)
        self.asked[kind] += 1
        return self.turns[number]


class Authority:
    """The server and its zone; every method that sets a name replaces what was said about it before."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.port = 0
        self.queries: list[Question] = []
        self._zone: dict[str, Entry] = {}
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(20) or not self.port:
            raise RuntimeError("the test name server did not start")

    @property
    def address(self) -> str:
        """HOST:PORT for --upstream-dns."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def names(self) -> list[str]:
        """The names asked for, in order, lower case, without the final dot."""
        return [query.name.lower().rstrip(".") for query in self.queries]

    def count(self, name: str) -> int:
        return self.names.count(name)

    def under(self, suffix: str) -> list[str]:
        """Every name asked for that is SUFFIX or below it."""
        return [name for name in self.names if name == suffix or name.endswith(f".{suffix}")]

    def answer(self, name: str, *addresses: str, ttl: int = 60, delay: float = 0) -> None:
        """NAME (or `*.parent`) has these addresses, after DELAY seconds."""
        self._zone[name] = Entry([[_address(a) for a in addresses]], ttl=ttl, delay=delay)

    def records(self, name: str, *records: Record, ttl: int = 60) -> None:
        """NAME has these records, as (type, text in zone-file form): ("TXT", '"hello"'), ("MX", "10 mail.test.")."""
        self._zone[name] = Entry([list(records)], ttl=ttl)

    def alias(self, name: str, target: str) -> None:
        """NAME is a CNAME of TARGET; the chain is followed as a recursive resolver would."""
        self._zone[name] = Entry([[("CNAME", f"{target}.")]])

    def rebind(self, name: str, *turns: list[str], ttl: int = 0) -> None:
        """NAME has another list of addresses at each question; the last list stays."""
        self._zone[name] = Entry([[_address(a) for a in turn] for turn in turns], ttl=ttl)

    def fail(self, name: str, rcode: str = "SERVFAIL") -> None:
        self._zone[name] = Entry([[]], rcode=rcode)

    def silence(self, name: str) -> None:
        """Questions for NAME get no answer."""
        self._zone[name] = Entry([[]], silent=True)

    def truncate(self, name: str, *addresses: str) -> None:
        """Over UDP the answer is empty and truncated; over TCP it is whole."""
        self._zone[name] = Entry([[_address(a) for a in addresses]], truncated=True)

    def reply(self, name: str, reply: Reply) -> None:
        """REPLY(query bytes) gives the messages to send back, well-formed or not."""
        self._zone[name] = Entry([[]], reply=reply)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        server, stream = await self._bind()
        self._begin(self._datagrams(stream))
        self._ready.set()
        await self._stop.wait()
        while arriving := asyncio.all_tasks() - self._tasks - {asyncio.current_task()}:
            await asyncio.wait(arriving)  # connections that are just being accepted: cut off here they would stay open
        server.close()
        stream.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bind(self) -> tuple[asyncio.Server, asyncio_dgram.DatagramServer]:
        for _ in range(20):
            stream = await asyncio_dgram.bind((self.host, 0))
            port = stream.sockname[1]
            try:
                server = await asyncio.start_server(self._connected, self.host, port)
            except OSError:  # the port is free for UDP only
                stream.close()
                continue
            self.port = port
            return server, stream
        raise RuntimeError("no port is free for both UDP and TCP")

    async def _datagrams(self, stream: asyncio_dgram.DatagramServer) -> None:
        while True:
            try:
                data, peer = await stream.recv()
            except asyncio_dgram.TransportClosed:
                return
            self._begin(self._datagram(stream, data, peer))

    async def _datagram(self, stream: asyncio_dgram.DatagramServer, data: bytes, peer: Any) -> None:
        for message in await self._respond(data, "udp"):
            with contextlib.suppress(asyncio_dgram.TransportClosed, OSError):
                await stream.send(message, peer)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known from its first moment: a task that is cancelled before it begins closes nothing."""
        self._writers.add(writer)
        self._begin(self._connection(reader, writer))

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                for message in await self._respond(await reader.readexactly(length), "tcp"):
                    writer.write(struct.pack("!H", len(message)) + message)
                await writer.drain()
        writer.close()

    async def _respond(self, data: bytes, transport: str) -> list[bytes]:
        try:
            query = dnslib.DNSRecord.parse(data)
        except dnslib.DNSError:
            self.queries.append(Question("", "malformed", transport, data))
            return []
        question = Question(str(query.q.qname), dnslib.QTYPE.get(query.q.qtype), transport, data)
        self.queries.append(question)
        entry = self._find(question.name.lower().rstrip("."))
        if entry is None:
            return [_with_rcode(query, "NXDOMAIN")]
        await asyncio.sleep(entry.delay)
        if entry.silent:
            return []
        if entry.reply is not None:
            return entry.reply(data)
        return [self._message(query, question, entry)]

    def _find(self, name: str) -> Entry | None:
        if name in self._zone:
            return self._zone[name]
        labels = name.split(".")
        parents = ("*." + ".".join(labels[n:]) for n in range(1, len(labels)))
        return next((self._zone[parent] for parent in parents if parent in self._zone), None)

    def _message(self, query: dnslib.DNSRecord, question: Question, entry: Entry) -> bytes:
        if entry.rcode != "NOERROR":
            return _with_rcode(query, entry.rcode)
        answer = query.reply()
        if entry.truncated and question.transport == "udp":
            answer.header.tc = 1
            return bytes(answer.pack())
        owner, hops = question.name, 0
        turn = entry.turn(question.type)
        while True:
            for kind, text in turn:
                if kind in (question.type, "CNAME"):
                    answer.add_answer(*dnslib.RR.fromZone(f"{owner} {entry.ttl} {kind} {text}"))
            target = next((text for kind, text in turn if kind == "CNAME"), None)
            following = self._find(target.lower().rstrip(".")) if target else None
            hops += 1
            if target is None or following is None or hops > 16:
                return bytes(answer.pack())
            owner, turn = target, following.turn(question.type)


def _address(text: str) -> Record:
    return ("A" if ipaddress.ip_address(text).version == 4 else "AAAA", text)


def _with_rcode(query: dnslib.DNSRecord, rcode: str) -> bytes:
    answer = query.reply()
    answer.header.rcode = getattr(dnslib.RCODE, rcode)
    return bytes(answer.pack())


@pytest.fixture
def authority() -> Iterator[Authority]:
    """A name server with an empty zone."""
    server = Authority()
    yield server
    server.close()
