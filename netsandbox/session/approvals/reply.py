"""The user's answer as it is sent to the session: one line with exactly one spelling. Pure.

Rule: a line is accepted only if encoding the parsed answer gives the same bytes, so no second spelling can be
interpreted differently (attack 185).
"""

from __future__ import annotations

from netsandbox.frozen import copy_with, frozen
from netsandbox.session.approvals.file_places import MAX_ABOVE

APPROVE, DENY = "approve", "deny"
ONCE, SESSION, PROJECT, USER = "once", "session", "project", "user"
SCOPES = (ONCE, SESSION, PROJECT, USER)
MAX_SECONDS = 366 * 86400
_OPENINGS = {APPROVE: b'{"op":"approve","id":', DENY: b'{"op":"deny","id":'}
_SCOPE, _TTL, _ABOVE, _END = b',"scope":"', b'","ttl":', b',"above":', b"}"

# The session's responses.
DONE = b'{"ok":true}\n'
NOT_PENDING = b'{"error":"not pending"}\n'
NOBODY_WAITS = b'{"error":"nobody waits"}\n'
UNWRITABLE = b'{"error":"audit-unwritable"}\n'
GONE = b'{"error":"gone"}\n'
TOO_WIDE = b'{"error":"too wide"}\n'


@frozen
class Reply:
    """The answer to the question *number*. `ttl`: seconds for which it applies; 0 means the rest of the session.
    `above`: for a file, how many names are left off its path, so that the answer is about a folder."""

    op: str
    number: int
    scope: str = SESSION
    ttl: int = 0
    above: int = 0


def written(reply: Reply) -> bytes:
    """The line of *reply*, without the newline."""
    opening = _OPENINGS[reply.op] + b"%d" % reply.number
    end = (_ABOVE + b"%d" % reply.above if reply.above else b"") + _END
    if reply.op == DENY:
        return opening + end
    return opening + _SCOPE + reply.scope.encode("ascii") + _TTL + b"%d" % reply.ttl + end


def read(line: bytes) -> Reply | None:
    """The reply in *line*, or None if it is not one."""
    for op, opening in _OPENINGS.items():
        if line.startswith(opening):
            rest, _, above = line[len(opening) : -1].partition(_ABOVE)
            number, _, rest = rest.partition(_SCOPE)
            scope, _, ttl = rest.partition(_TTL)
            reply = _checked(op, _count(number), scope.decode("ascii", "replace"), _count(ttl))
            reply = reply and copy_with(reply, above=min(_count(above) or 0, MAX_ABOVE))
            return reply if reply is not None and written(reply) == line else None
    return None


def _checked(op: str, number: int | None, scope: str, ttl: int | None) -> Reply | None:
    if number is None:
        return None
    if op == DENY:
        return Reply(op, number)
    if scope not in SCOPES or ttl is None or ttl > MAX_SECONDS or (ttl and scope == ONCE):
        return None
    return Reply(op, number, scope, ttl)


def _count(digits: bytes) -> int | None:
    return int(digits) if digits.isdigit() and len(digits) < 10 else None
