"""Reads Seatbelt's refusals from the system's log. Pure: bytes of `log stream` in, violations and audit fields out.

The kernel writes one message for each refusal, `Sandbox: NAME(PID) deny(1) OPERATION TARGET`, or counts repetitions, `3
duplicate reports for Sandbox: …`. The text of a profile's `(with message …)` follows on a separate line. This format, a
first line that is no record and a last line that counts them come from published descriptions; this project has not
observed them on macOS. Rules kept here:

1. Only messages of the kernel are trusted: any program can write such a text to the log, but not as process 0 (attack
   172). With a tag, only messages that end in it count: those of one session's profile, for all lines in names or
   paths.
2. The command chooses names and paths, which may look like the rest of a message. Every possible reading is kept; if
   there are several, no process is named, and the refusal belongs to every session it may belong to.
3. Everything is bounded. A line that is too long or no record is counted, never waited for.
4. Nothing is denied or allowed because of this log. The kernel is reported to omit messages, so a violation that is not
   in the log may still have happened.
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile.log_record import MAX_BYTES, members
from netsandbox.backends.seatbelt.profile.operations import DEFAULT, KNOWN
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.policy.ip import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "/usr/bin/log"
SENDER = "/Sandbox"
KERNEL = "/kernel"
PREFIX = "Sandbox: "
DENY = ") deny("
MAX_NAME = 32  # of a process, as the kernel truncates it
MAX_PID = 99_999_999
MAX_TARGET = 1024
OPERATIONS = KNOWN - {DEFAULT}
UNCLEAR = "unclear"
_BANNER = b"Filtering the log data using "


@frozen
class Violation:
    """One refusal. `target` is as the kernel wrote it; `pids` has several members if the process is ambiguous."""

    operation: str
    target: str
    program: str
    pids: tuple[int, ...]
    count: int = 1

    def fields(self) -> dict[str, object]:
        """For the audit log: target, process and count. Each text is one line of printable characters."""
        found: dict[str, object] = {"verdict": "deny", "operation": self.operation, **wanted(self)}
        if len(self.pids) == 1:
            found["pid"] = self.pids[0]
        if self.program:
            found["exe"] = escaped(self.program)
        if self.count != 1:
            found["count"] = self.count
        return found


class Reader:
    """Takes the output of `log stream` in pieces of any size."""

    __slots__ = ("_held", "_skipping", "_tag", "dropped")

    def __init__(self, tag: str = "") -> None:
        """With *tag*, only violations of the profile that has it; otherwise all."""
        self._tag = tag
        self._held = b""
        self._skipping = False
        self.dropped = 0  # lines that were too long or no record of the log

    def feed(self, data: bytes) -> list[Violation]:
        """The violations that *data* completes."""
        found = []
        *whole, rest = (self._held + data).split(b"\n")
        for line in whole:
            violation = None if self._skipping else self._read(line)
            self._skipping = False
            if violation is not None:
                found.append(violation)
        if len(rest) > MAX_BYTES:
            self.dropped += not self._skipping
            self._skipping, rest = True, b""
        self._held = b"" if self._skipping else rest
        return found

    def _read(self, line: bytes) -> Violation | None:
        if len(line) <= MAX_BYTES and (not line.strip() or line.startswith(_BANNER)):
            return None
        found = members(line)
        if found is None:
            self.dropped += 1
            return None
        return violation_of(found, self._tag)


def violation_of(found: dict[str, object], tag: str = "") -> Violation | None:
    """The violation in a record of the log; None for any other record, and for one without *tag*."""
    process, sender, message = found.get("processID"), found.get("senderImagePath"), found.get("eventMessage")
    if type(process) is not int or process != 0 or found.get("processImagePath") != KERNEL:
        return None
    if not isinstance(sender, str) or not sender.endswith(SENDER) or not isinstance(message, str):
        return None
    if not tag:
        return read_message(message)
    text, _, last = message.rpartition("\n")
    return read_message(text) if last == tag else None


def read_message(message: str) -> Violation | None:
    """The violation in a message of the kernel."""
    count, text = _counted(message)
    if not text.startswith(PREFIX):
        return None
    readings = list(_readings(text[len(PREFIX) :]))
    if not readings:
        return None
    program, pid, operation, target = readings[0]
    if len(readings) == 1:
        return Violation(operation, target[:MAX_TARGET], program, (pid,), count)
    operations = {each[2] for each in readings}
    pids = tuple(dict.fromkeys(each[1] for each in readings))
    agreed = operation if len(operations) == 1 else UNCLEAR
    return Violation(agreed, text[len(PREFIX) :][:MAX_TARGET], "", pids, count)


def _counted(message: str) -> tuple[int, str]:
    number, blank, rest = message.partition(" ")
    for words in ("duplicate reports for ", "duplicate report for "):
        if blank and rest.startswith(words) and _whole(number) > 0:
            return int(number), rest[len(words) :]
    return 1, message


def _readings(text: str) -> Iterator[tuple[str, int, str, str]]:
    """Each way to parse NAME(PID) deny(N) OPERATION TARGET, the shortest name first."""
    at = text.find(DENY)
    while at >= 0:
        opening = text.rfind("(", 0, at)
        if opening > MAX_NAME:
            return
        pid = _whole(text[opening + 1 : at])
        number, closing, rest = text[at + len(DENY) :].partition(") ")
        operation, _, target = rest.partition(" ")
        if opening > 0 and 0 < pid <= MAX_PID and closing and _whole(number) >= 0 and operation in OPERATIONS:
            yield text[:opening], pid, operation, target
        at = text.find(DENY, at + 1)


def _whole(digits: str) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1


def wanted(violation: Violation) -> dict[str, object]:
    """The target by its kind: a path, an address with its port, or else the kernel's text."""
    target = violation.target
    if not target:
        return {}
    if violation.program and target.startswith("/"):
        return {"path": escaped(target)}
    end = _end(target) if violation.program and violation.operation.startswith("network") else {}
    return end or {"target": escaped(target)}


def _end(target: str) -> dict[str, object]:
    """`remote:*:443`, `local:*:3000`, `203.0.113.7:443`, `[2001:db8::7]:443`; `*` is an unknown address."""
    side, colon, rest = target.partition(":")
    host, _, number = (rest if colon and side in ("remote", "local") else target).rpartition(":")
    port = _whole(number)
    address = parse(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    if not 0 <= port <= 65535 or (address is None and host != "*"):
        return {}
    found: dict[str, object] = {"port": port} if port else {}
    return found if address is None else {"address": address.text, **found}


def escaped(text: str) -> str:
    """One line of printable ASCII with a single interpretation."""
    return "".join(
        "\\\\" if char == "\\" else char if " " <= char <= "~" else ascii(char)[1:-1] for char in text[:MAX_TARGET]
    )


def command(containing: str = "", program: str = LOG) -> list[str]:
    """The program that reports violations as they happen, by its path: `log` is a builtin of some shells."""
    return [program, "stream", "--style", "ndjson", "--predicate", predicate(containing)]


def predicate(containing: str = "") -> str:
    """The predicate for the log; with *containing*, only messages with that text."""
    asked = ['process == "kernel"', 'sender == "Sandbox"', 'eventMessage CONTAINS ") deny("']
    if containing:
        asked.append(f"eventMessage CONTAINS {_literal(containing)}")
    return " AND ".join(asked)


def _literal(text: str) -> str:
    """*text* as one string of a predicate; text that would need an escape is refused."""
    if len(text) > MAX_TARGET or not text.isprintable():
        raise UsageError(f"the log cannot be asked for {text[:80]!a}; use a short text of printable characters")
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'
