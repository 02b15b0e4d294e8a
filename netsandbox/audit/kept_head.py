"""Keeps the head of the chain of each log that the user placed, where no session reaches it.

A process that can write a placed log can also rewrite it with new hashes, replace it, or cut it at a seal: the chain
has no key. So the number and the hash of the last line are kept in the state home, which no session sees (INV-8), and
`audit verify` compares them with the log.

    <state home>/log-heads/<hash of the log's path>    number and hash of its last record, and `open` or `done`
                                                       the session that wrote it
                                                       `-`, or what an earlier session's log met: `gone` or `changed`
                                                       the log's path

The first line is written in place: when the session begins, about once a second while it writes, and when it ends.
"""

from __future__ import annotations

import os

from netsandbox.audit.record_line import GENESIS
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import made_state_home, state_home
from netsandbox.runtime.private_file import content, digest, make_room, replace

OPEN, DONE = "open", "done"
GONE, CHANGED, NOTHING = "gone", "changed", "-"
MAX_HEADS = 1000
MAX_RUNNING = 64  # each is a mount in every session
HEADS = "log-heads"  # in the state home
_SIZE_LIMIT = 8192


@frozen
class Head:
    """The last line of a log as a session left it. `fate` is what happened to the log before that session."""

    seq: int
    hash: str
    is_done: bool
    session: str
    fate: str
    path: str


class HeadKeeper:
    """Keeps the head of one log. What cannot be kept is missing in `audit verify`, which says so."""

    def __init__(self, path: str, session: str, tail: str) -> None:
        """*tail* is the hash that the next line of the log must name."""
        self.fate = NOTHING
        self._fd = -1
        self._last = (0, tail)
        try:
            folder = os.path.join(made_state_home(), HEADS)
            os.makedirs(folder, 0o700, exist_ok=True)
            make_room(folder, MAX_HEADS)
            place = os.path.join(folder, _name(path))
            self.fate = _fate(_read(place), tail)
            rest = f"{session}\n{self.fate}\n".encode() + os.fsencode(path)
            replace(place, _first_line(0, tail, OPEN) + rest)
            self._fd = os.open(place, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (OSError, NetsandboxError):
            pass

    @property
    def change(self) -> str:
        """What happened to the log since an earlier session left it, for people; empty if nothing did."""
        fate, _, session = self.fate.partition(" ")
        found = f"the log of session {session} at this path is {fate}; `netsandbox audit verify` says more"
        return "" if fate == NOTHING else found

    def keep(self, seq: int, head: str, *, state: str = OPEN) -> None:
        if self._fd < 0 or ((seq, head) == self._last and state == OPEN):
            return
        self._last = (seq, head)
        try:
            os.pwrite(self._fd, _first_line(seq, head, state), 0)
        except OSError:
            pass

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def kept_heads() -> list[Head]:
    """Every head that is kept."""
    try:
        folder = os.path.join(state_home(), HEADS)
        found = [_read(os.path.join(folder, name)) for name in os.listdir(folder)]
    except (OSError, NetsandboxError):
        return []
    return [head for head in found if head is not None]


def running_logs() -> list[str]:
    """Placed logs of sessions that have not ended, or were killed: no other session may write them."""
    found = [head.path for head in kept_heads() if not head.is_done and os.path.isfile(head.path)]
    return found[:MAX_RUNNING]


def parse(data: bytes) -> Head | None:
    """A kept head, or None for any other bytes."""
    first, _, rest = os.fsdecode(data).partition("\n")
    session, _, rest = rest.partition("\n")
    fate, _, path = rest.partition("\n")
    seq, _, line = first.partition(" ")
    head, _, state = line.partition(" ")
    is_number = seq.isascii() and seq.isdigit() and len(seq) == 20
    if not is_number or len(head) != 64 or state not in (OPEN, DONE) or not path.startswith("/"):
        return None
    return Head(int(seq), head, state == DONE, session, fate, path)


def _fate(earlier: Head | None, tail: str) -> str:
    """What happened to the log since an earlier session left it, as its next session finds it."""
    if earlier is None:
        return NOTHING
    if tail == GENESIS:
        return f"{GONE} {earlier.session}" if earlier.seq else NOTHING
    if earlier.is_done and earlier.hash != tail:
        return f"{CHANGED} {earlier.session}"
    return earlier.fate


def _read(place: str) -> Head | None:
    try:
        return parse(content(place, _SIZE_LIMIT))
    except OSError:
        return None


def _first_line(seq: int, head: str, state: str) -> bytes:
    return f"{seq:020d} {head} {state}\n".encode("ascii")


def _name(path: str) -> str:
    return digest(os.fsencode(path))[:32]
