"""Replies to forwarded queries, rebuilt with dnslib from what was parsed: no byte is passed on unread.

Imported only when a reply to a forwarded query has arrived: importing dnslib takes 23 ms.
"""

from __future__ import annotations

import dnslib

from netsandbox_dns.upstream_reply import CNAME, Reply, follow_aliases
from netsandbox_dns.wire import Query

MAX_TTL = 300


def rebuilt(query: Query, reply: Reply) -> bytes | None:
    """The records that answer *query*, or hang on it by CNAME; None: the reply cannot be understood."""
    try:
        parsed = dnslib.DNSRecord.parse(reply.data)
        answer = dnslib.DNSRecord(
            dnslib.DNSHeader(id=query.id, qr=1, ra=1, rd=int(query.recursion_desired), rcode=reply.rcode),
            q=dnslib.DNSQuestion(dnslib.DNSLabel(list(query.labels)), query.qtype),
        )
        path = follow_aliases(reply, tuple(label.lower() for label in query.labels), query.qtype)
        if path is None:
            return None
        owners = {query.name.lower().decode("ascii"), *path.chain}
        for record in parsed.rr:
            name = str(record.rname).rstrip(".").lower()
            if record.rclass == 1 and record.rtype in (query.qtype, CNAME) and name in owners:
                record.ttl = min(record.ttl, MAX_TTL)
                answer.add_answer(record)
        if query.edns:
            answer.add_ar(dnslib.EDNS0(udp_len=query.udp_size))
        return bytes(answer.pack())
    except Exception:  # dnslib raises many kinds on hostile bytes; all mean the same: no answer (INV-1)
        return None
