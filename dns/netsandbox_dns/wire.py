"""DNS messages at the door: a strict parser of queries and a builder of replies. Bytes in, values out, no sockets.

Rules kept here:

1. `parse_query` never raises: what is not one plain question becomes a `BadQuery`, which says how to answer it.
2. A name with any byte that no host name has (a dot inside a label, NUL, CR, a space, UTF-8) is not `clean`; its
   `name` is escaped, so it can be logged but can never be mistaken for another name.
3. A reply repeats the question as it was spelled, so clients that randomise the case accept it.
"""

from __future__ import annotations

from _struct import Struct

from netsandbox.policy.reasons import MALFORMED, UNSUPPORTED

A, PTR, AAAA, OPT, SVCB, HTTPS = 1, 12, 28, 41, 64, 65
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16
BLOCKED = 15  # Extended DNS Error, RFC 8914
EDNS_SIZE = 1232  # what fits one unfragmented IPv6 packet
HOST_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
_CHANGED = bytes(byte if byte in HOST_BYTES else 255 - byte for byte in range(256))  # every other byte becomes another

_HEADER = Struct("!HHHHHH")
_PAIR = Struct("!HH")
_OPT = Struct("!BHHBBHH")
_RECORD = Struct("!HHHIH")
_EDE = Struct("!HHH")
_QR, _RA, _TC, _OPCODE, _KEPT = 0x8000, 0x0080, 0x0200, 0x7800, 0x0110  # RD and CD are repeated to the client
MAX_NAME = 255
_VISIBLE = frozenset(range(0x21, 0x7F)) - frozenset(b'."\\')


class Query:
    """A well-formed query: one question of class IN."""

    __slots__ = ("clean", "edns", "flags", "id", "labels", "name", "qtype", "question", "udp_size")

    def __init__(self, id: int, flags: int, labels: tuple[bytes, ...], qtype: int, question: bytes) -> None:
        self.id = id
        self.flags = flags
        self.labels = labels
        joined = b"".join(labels)
        self.clean = clean = joined != b"" and joined.translate(_CHANGED) == joined
        self.name = b".".join(labels) if clean else escaped(labels)
        self.qtype = qtype
        self.question = question
        self.edns = False
        self.udp_size = 512

    @property
    def recursion_desired(self) -> bool:
        return bool(self.flags & 0x0100)


class BadQuery:
    """Bytes that are not a query we answer. `rcode` None: no reply is sent."""

    __slots__ = ("flags", "id", "question", "rcode", "reason")

    def __init__(self, rcode: int | None, reason: str, id: int = 0, flags: int = 0, question: bytes = b"") -> None:
        self.rcode = rcode
        self.reason = reason
        self.id = id
        self.flags = flags
        self.question = question


def escaped(labels: tuple[bytes, ...]) -> bytes:
    """A name for the eye and the log: every odd byte as \\DDD, so two different names never look the same."""
    spelled = (b"".join(b"%c" % c if c in _VISIBLE else b"\\%03d" % c for c in label) for label in labels)
    return b".".join(spelled) or b"."


def parse_query(data: bytes) -> Query | BadQuery:
    size = len(data)
    if size < 12:
        return BadQuery(None, MALFORMED)
    ident, flags, questions, answers, authorities, additionals = _HEADER.unpack_from(data)
    if flags & _QR:  # two servers that answer answers never stop
        return BadQuery(None, MALFORMED)
    if flags & _OPCODE:
        return BadQuery(NOTIMP, UNSUPPORTED, ident, flags)
    if questions != 1 or answers or authorities or additionals > 1:
        return BadQuery(FORMERR, MALFORMED, ident, flags)
    if size < 17:  # no room for the shortest question
        return BadQuery(FORMERR, MALFORMED, ident, flags)
    labels = []
    at = 12
    last = min(size - 1, 12 + MAX_NAME - 1)
    while length := data[at]:
        start = at + 1
        at = start + length
        # A length over 63 is a compression pointer or a reserved form: neither belongs in a question.
        if length > 63 or at > last:
            return BadQuery(FORMERR, MALFORMED, ident, flags)
        labels.append(data[start:at])
    end = at + 5
    if end > size:
        return BadQuery(FORMERR, MALFORMED, ident, flags)
    qtype, qclass = _PAIR.unpack_from(data, at + 1)
    question = data[12:end]
    if qclass != 1:
        return BadQuery(REFUSED, UNSUPPORTED, ident, flags, question)
    query = Query(ident, flags, tuple(labels), qtype, question)
    if not additionals:
        return query if end == size else BadQuery(FORMERR, MALFORMED, ident, flags, question)
    rcode = _read_edns(query, data, end)
    return query if rcode == NOERROR else BadQuery(rcode, MALFORMED, ident, flags, question)


def _read_edns(query: Query, data: bytes, at: int) -> int:
    """Read the one record that may follow the question; it must be a well-formed OPT that ends with the message."""
    if at + 11 > len(data):
        return FORMERR
    root, kind, udp_size, _extended, version, _flags, length = _OPT.unpack_from(data, at)
    end = at + 11 + length
    if root or kind != OPT or end != len(data):
        return FORMERR
    if version:
        return BADVERS
    at += 11
    while at < end:
        if at + 4 > end:
            return FORMERR
        at += 4 + _PAIR.unpack_from(data, at)[1]
    if at != end:
        return FORMERR
    query.edns = True
    query.udp_size = min(max(udp_size, 512), EDNS_SIZE)
    return NOERROR


def address_answer(query: Query, packed: bytes, ttl: int) -> bytes:
    """The one address of the name in the question: four bytes for A, sixteen for AAAA."""
    kind = A if len(packed) == 4 else AAAA
    return _reply(query, NOERROR, _RECORD.pack(0xC00C, kind, 1, ttl, len(packed)) + packed)


def pointer_answer(query: Query, name: str, ttl: int) -> bytes:
    target = encode_name(name)
    return _reply(query, NOERROR, _RECORD.pack(0xC00C, PTR, 1, ttl, len(target)) + target)


def nodata(query: Query) -> bytes:
    """The name exists and has no such record. No SOA: nothing here may be cached beyond the moment."""
    return _reply(query, NOERROR)


def nxdomain(query: Query, reason: str) -> bytes:
    return _reply(query, NXDOMAIN, options=_blocked(reason) if query.edns else b"")


def refused(query: Query, reason: str) -> bytes:
    return _reply(query, REFUSED, options=_blocked(reason) if query.edns else b"")


def servfail(query: Query) -> bytes:
    return _reply(query, SERVFAIL)


def truncated(query: Query) -> bytes:
    """The reply does not fit a datagram: the client should repeat its query over TCP."""
    return _reply(query, NOERROR, bits=_TC)


def bad_query_answer(query: BadQuery) -> bytes | None:
    """The reply to bytes that are no query we answer; None: no reply is sent."""
    if query.rcode is None:
        return None
    bits = _QR | _RA | (query.flags & (_OPCODE | _KEPT)) | (query.rcode & 15)
    tail = b"" if query.rcode < 16 else _OPT.pack(0, OPT, EDNS_SIZE, query.rcode >> 4, 0, 0, 0)
    header = _HEADER.pack(query.id, bits, 1 if query.question else 0, 0, 0, 1 if tail else 0)
    return header + query.question + tail


def encode_name(name: str) -> bytes:
    """A canonical name (ASCII, labels of 1 to 63 bytes) in wire form."""
    return b"".join(bytes((len(label),)) + label for label in name.encode("ascii").split(b".")) + b"\0"


def _blocked(reason: str) -> bytes:
    text = f"netsandbox: {reason}".encode("ascii", "replace")[:80]
    return _EDE.pack(15, len(text) + 2, BLOCKED) + text


def _reply(query: Query, rcode: int, answer: bytes = b"", options: bytes = b"", bits: int = 0) -> bytes:
    bits |= _QR | _RA | (query.flags & _KEPT) | rcode
    count = 1 if answer else 0
    if not query.edns:  # a client that did not speak EDNS must not be sent any
        return _HEADER.pack(query.id, bits, 1, count, 0, 0) + query.question + answer
    tail = _OPT.pack(0, OPT, EDNS_SIZE, 0, 0, 0, len(options)) + options
    return _HEADER.pack(query.id, bits, 1, count, 0, 1) + query.question + answer + tail
