"""Replies to forwarded queries, rebuilt with dnslib from what was parsed: no byte is passed on unread.

Imported only when a reply to a forwarded query has arrived: importing dnslib takes 23 ms. It bounds neither names nor
counts, so its reads are counted here, names are read by our own parser, and only the answer section is read.
"""

from __future__ import annotations

import dnslib
from dnslib.buffer import BufferError as ReadError
from dnslib.label import DNSBuffer

from netsandbox_dns.upstream_reply import CNAME, MAX_RECORDS, Reply, follow_aliases, read_labels
from netsandbox_dns.wire import Query

MAX_TTL = 300
MAX_READS = 8192  # fields and labels of one reply


class BoundedBuffer(DNSBuffer):  # type: ignore[misc]  # dnslib has no types
    """Ends the parsing after `MAX_READS`."""

    offset: int
    reads = 0

    def get(self, length: int) -> bytes:
        self._count(1)
        return bytes(super().get(length))

    def decode_name(self, last: int = -1) -> dnslib.DNSLabel:
        found = read_labels(self.data, self.offset)
        if found is None:
            raise ReadError("no name")
        self._count(len(found[0]) + 1)
        self.offset = found[1]
        return dnslib.DNSLabel([bytes(label) for label in found[0]])

    def _count(self, reads: int) -> None:
        self.reads += reads
        if self.reads > MAX_READS:
            raise ReadError("too many fields")


def _answers(data: bytes) -> list[dnslib.RR]:
    buffer = BoundedBuffer(data)
    header = dnslib.DNSHeader.parse(buffer)
    dnslib.DNSQuestion.parse(buffer)  # a reply has one
    return [dnslib.RR.parse(buffer) for _ in range(min(header.a, MAX_RECORDS))]


def rebuilt(query: Query, reply: Reply) -> bytes | None:
    """The records that answer *query*, or hang on it by CNAME; None: the reply cannot be understood."""
    try:
        answer = dnslib.DNSRecord(
            dnslib.DNSHeader(id=query.id, qr=1, ra=1, rd=int(query.recursion_desired), rcode=reply.rcode),
            q=dnslib.DNSQuestion(dnslib.DNSLabel(list(query.labels)), query.qtype),
        )
        path = follow_aliases(reply, tuple(label.lower() for label in query.labels), query.qtype)
        if path is None:
            return None
        owners = {query.name.lower().decode("ascii"), *path.chain}
        for record in _answers(reply.data):
            name = str(record.rname).rstrip(".").lower()
            if record.rclass == 1 and record.rtype in (query.qtype, CNAME) and name in owners:
                record.ttl = min(record.ttl, MAX_TTL)
                answer.add_answer(record)
        if query.edns:
            answer.add_ar(dnslib.EDNS0(udp_len=query.udp_size))
        return bytes(answer.pack())
    except Exception:  # dnslib raises many kinds on hostile bytes; all mean the same: no answer (INV-1)
        return None
