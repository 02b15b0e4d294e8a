"""Replies of upstream servers: a parser that trusts nothing, and the walk from a name along its aliases to addresses.

Rules kept here:

1. `parse_reply` never raises and takes a bounded number of steps: compression pointers go strictly backwards, a name
   follows few of them, and the names of a reply have a bounded number of labels in all.
2. Only the answer section is read, and of it only what the question leads to by an unbroken chain of CNAMEs; a record
   for any other name, however helpful, is not seen.
"""

from __future__ import annotations

from _struct import Struct

from netsandbox_dns.wire import escaped

CNAME = 5
MAX_CHAIN = 8
MAX_ADDRESSES = 32
MAX_RECORDS = 256
MAX_JUMPS = 16  # pointers in one name; servers use one or two
MAX_LABELS = 8192  # that are read in one reply
_HEADER = Struct("!HHHHHH")
_RECORD = Struct("!HHIH")
_SIZES = {1: 4, 28: 16}


class Record:
    """One record of class IN. Names (the owner, a CNAME's target) are tuples of lower-case labels."""

    __slots__ = ("data", "kind", "owner", "target", "ttl")

    def __init__(self, owner: tuple[bytes, ...], kind: int, ttl: int, data: bytes, target: tuple[bytes, ...]) -> None:
        self.owner = owner
        self.kind = kind
        self.ttl = ttl
        self.data = data
        self.target = target


class Reply:
    """A well-formed reply to one query."""

    __slots__ = ("data", "id", "question", "rcode", "records", "truncated")

    def __init__(self, data: bytes, id: int, flags: int, question: bytes, records: list[Record]) -> None:
        self.data = data
        self.id = id
        self.rcode = flags & 15
        self.truncated = bool(flags & 0x0200)
        self.question = question
        self.records = records


class Answer:
    """The aliases that a name led to, and the addresses of the last one."""

    __slots__ = ("addresses", "chain", "ttl")

    def __init__(self, addresses: list[bytes], chain: list[str], ttl: int) -> None:
        self.addresses = addresses
        self.chain = chain
        self.ttl = ttl


def parse_reply(data: bytes) -> Reply | None:
    if len(data) < 12:
        return None
    ident, flags, questions, answers, _authorities, _additionals = _HEADER.unpack_from(data)
    if not flags & 0x8000 or flags & 0x7800 or questions != 1:
        return None
    name = read_name(data, 12)
    if name is None or name[1] + 4 > len(data):
        return None
    at = name[1] + 4
    question = data[12:at]
    if flags & 0x0200:  # truncated: the rest is ignored
        return Reply(data, ident, flags, question, [])
    records = _read_records(data, at, min(answers, MAX_RECORDS))
    return None if records is None else Reply(data, ident, flags, question, records)


def _read_records(data: bytes, at: int, count: int) -> list[Record] | None:
    records = []
    labels = 0
    for _ in range(count):
        owner = read_name(data, at)
        if owner is None or owner[1] + 10 > len(data) or labels > MAX_LABELS:
            return None
        kind, klass, ttl, length = _RECORD.unpack_from(data, owner[1])
        at = owner[1] + 10 + length
        if at > len(data):
            return None
        target: tuple[bytes, ...] = ()
        if kind == CNAME:
            alias = read_name(data, at - length)
            if alias is None or alias[1] != at:
                return None
            target = alias[0]
        labels += len(owner[0]) + len(target)
        if klass == 1:
            records.append(Record(owner[0], kind, ttl if ttl < 1 << 31 else 0, data[at - length : at], target))
    return records


def read_name(data: bytes, at: int) -> tuple[tuple[bytes, ...], int] | None:
    """The lower-case labels of the name at *at* and where the bytes after it begin, or None."""
    found = read_labels(data, at)
    return None if found is None else (tuple(label.lower() for label in found[0]), found[1])


def read_labels(data: bytes, at: int) -> tuple[list[bytes], int] | None:
    """The same as they are spelled."""
    labels: list[bytes] = []
    size = 1
    after = jumps = 0
    floor = at  # every pointer must go below all that was read so far, so none can loop
    while at < len(data):
        length = data[at]
        if length == 0:
            return labels, after or at + 1
        if length >= 0xC0:
            jumps += 1
            if at + 2 > len(data) or jumps > MAX_JUMPS:
                return None
            target = (length & 0x3F) << 8 | data[at + 1]
            if target >= floor:
                return None
            after = after or at + 2
            at = floor = target
            continue
        size += length + 1
        if length > 63 or size > 255 or at + 1 + length > len(data):
            return None
        labels.append(data[at + 1 : at + 1 + length])
        at += length + 1
    return None


def follow_aliases(reply: Reply, labels: tuple[bytes, ...], qtype: int) -> Answer | None:
    """Walk from *labels* to its addresses; None: the chain loops or is longer than `MAX_CHAIN`."""
    here = labels
    chain: list[str] = []
    passed = {labels}
    ttl = 1 << 31
    while alias := next((r for r in reply.records if r.kind == CNAME and r.owner == here), None):
        here = alias.target
        if here in passed or len(chain) >= MAX_CHAIN:
            return None
        passed.add(here)
        chain.append(escaped(here).decode("ascii"))
        ttl = min(ttl, alias.ttl)
    ends = [r for r in reply.records if r.kind == qtype and r.owner == here and len(r.data) == _SIZES.get(qtype)]
    ends = ends[:MAX_ADDRESSES]
    return Answer([r.data for r in ends], chain, min([ttl, *(r.ttl for r in ends)]))
