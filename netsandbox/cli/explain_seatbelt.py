"""`netsandbox explain --backend seatbelt WORD`: what the profile of these options says to a host, a path or a service.

Works on any system and asks the same text that `run --dry-run --backend seatbelt` prints: a line named here is a line
there. How Seatbelt decides is disputed, so every model is asked; what not all of them allow is not allowed (INV-1).
Exit status: that of the first question, which is connecting, reading or asking: 0 allowed, 1 denied or disputed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from itertools import groupby

from netsandbox.backends.namespaces.own_addresses import OwnAddresses
from netsandbox.backends.seatbelt.model.evaluator import Verdict, verdicts
from netsandbox.backends.seatbelt.model.filters import Some
from netsandbox.backends.seatbelt.model.models import all_models
from netsandbox.backends.seatbelt.model.profile import Profile, load
from netsandbox.backends.seatbelt.model.request import UDP, Request, bind, connect, connect_unix, file, listen, lookup
from netsandbox.backends.seatbelt.model.values import printable
from netsandbox.backends.seatbelt.profile_inputs import has_door
from netsandbox.backends.seatbelt.verbose_notice import is_protected
from netsandbox.cli.dry_run import dry_profile
from netsandbox.cli.explain import explain, read_target
from netsandbox.cli.options import Parsed
from netsandbox.cli.output import put
from netsandbox.errors import UsageError
from netsandbox.policy.names import Host
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP
from netsandbox.settings import RunSettings

SERVICE = "mach:"
ALLOWED, DENIED, DISPUTED = "allowed", "denied", "disputed"
OUTSIDE = "203.0.113.7"  # stands for every address that is not this machine's: a profile cannot tell them apart
NAMES = "a profile knows no names; an address outside was asked about, and to a profile all of these are alike"
DOOR = "no program gets there by itself: the way out is a door on localhost, where the policy says"
NO_DOOR = "nothing is allowed out, so there is no door either; --allow-domain makes one"
WINDOW = (
    "servers listen in the session's window, which the first lines of the printed profile name; whoever asks for"
    " another port gets one of it by the library (rewire-port, the default on macOS) or is refused (fail)"
)
NO_PORT = "without a port 80 and 443 are asked; write localhost:3000 for another"
A_SERVICE = "this was taken for a host; for a service write mach: before it"
SYSTEM = "a program of the system: if it is run, then without the preload library"
A_TITLE = 40  # characters that a heading of the profile stays below
UNPROVEN = "judged by a model of Seatbelt, not by a Mac"


@dataclass(frozen=True)
class Ground:
    """A rule that decides, its filter that matches, under how many models, and what these models assume."""

    line: int
    rule: str
    filter_line: int  # 0: the rule has no filter
    filter: str
    allowed: bool
    models: int
    where: tuple[str, ...]
    why: str  # the profile's own words on it


@dataclass(frozen=True)
class Answer:
    """What the models say to one question."""

    question: str
    verdict: str
    grounds: tuple[Ground, ...]


def answer(parsed: Parsed, policy: Policy, settings: RunSettings) -> int:
    """Print what the profile says; the exit status."""
    if not parsed.words:
        raise UsageError(
            "explain --backend seatbelt needs a host, a path or mach:SERVICE;"
            " for the whole profile, use `netsandbox run --dry-run --backend seatbelt`"
        )
    word = parsed.words[0]
    asked, notes = questions(word, policy)
    answers = explained(dry_profile(policy, settings), asked)
    allowed = answers[0].verdict == ALLOWED
    if "json" in parsed.flags:
        put(json.dumps(as_json(word, answers, notes, allowed=allowed), indent=2))
    else:
        put("\n".join([printable(word, 400), *lines(answers), *(f"  note: {note}" for note in notes)]))
    return 0 if allowed else 1


def questions(word: str, policy: Policy) -> tuple[list[tuple[str, Request]], list[str]]:
    """What to ask about *word*, the question that counts first, and what the reader should know."""
    if word.startswith(SERVICE):
        name = word.removeprefix(SERVICE)
        if not name or not name.isascii() or not name.isprintable() or " " in name:
            raise UsageError(f"{printable(word)} names no service; write mach:com.apple.trustd.agent")
        return [("ask", lookup(name))], [UNPROVEN]
    if word.startswith(("/", "./", "../")):
        if "\0" in word:
            raise UsageError(f"{printable(word)} is no path; write one without a NUL")
        path = os.path.realpath(word)
        return _of_path(path), [SYSTEM, UNPROVEN] if is_protected(path) else [UNPROVEN]
    try:
        host, port = read_target(word)
    except UsageError as slip:
        raise _meant(word) or slip from None
    return _of_host(word, host, port, policy)


def _meant(word: str) -> UsageError | None:
    """What somebody wanted who wrote a file's name or a number for a host."""
    number = word.removeprefix(":")
    if number.isascii() and number.isdigit():
        return UsageError(f"{printable(word)} names no host; for a port of this machine write localhost:{number[:5]}")
    if "://" not in word and ("/" in word or word.startswith(".")):
        return UsageError(f"{printable(word)} is no host; for a file write ./{printable(word)}")
    return None


def _of_path(path: str) -> list[tuple[str, Request]]:
    return [
        ("read", file("file-read-data", path)),
        ("write", file("file-write-data", path)),
        ("create", file("file-write-create", path)),
        ("delete", file("file-write-unlink", path)),
        ("run", file("process-exec*", path)),
        ("connect to it", connect_unix(path)),
    ]


def _of_host(word: str, host: Host, port: int | None, policy: Policy) -> tuple[list[tuple[str, Request]], list[str]]:
    ports = policy.default_ports if port is None else (port,)
    address, own, notes = _address(word, host)
    near = own or ip_address(address).is_loopback or _is_mapped(address)
    if near:
        notes += [WINDOW] if port is not None else [NO_PORT, WINDOW]
    else:
        notes += [_by_the_door(host, port, policy)]
    asked = [(f"connect tcp {number}", connect(address, number, own=own)) for number in ports]
    for number in ports:
        asked.append((f"send udp {number}", connect(address, number, UDP, own=own)))
        if near:
            asked += [(f"bind {number}", bind(address, number)), (f"listen {number}", listen(address, number))]
    return asked, [*notes, UNPROVEN]


def _by_the_door(host: Host, port: int | None, policy: Policy) -> str:
    """What becomes of it where everything goes that leaves."""
    if not has_door(policy):
        return NO_DOOR
    told = [
        f"tcp {each.verdict.port} {ALLOWED if each.verdict.allowed else DENIED}"
        for kind, each in explain(policy, host, port, OwnAddresses(lambda: 0.0)())
        if kind == TCP
    ]
    return f"{DOOR}: {', '.join(told)}; `netsandbox explain` without --backend has the reasons"


def _address(word: str, host: Host) -> tuple[str, bool, list[str]]:
    """The address to ask about as the program would write it, whether it is this machine's, and what to say of it."""
    if host.text == "localhost" or host.text.endswith(".localhost"):
        return "127.0.0.1", False, []
    if host.address is None:
        return OUTSIDE, False, [A_SERVICE, NAMES] if host.text.startswith("com.apple.") else [NAMES]
    bare = word.partition("://")[2] or word
    written = bare[1:].partition("]")[0] if bare.startswith("[") else bare
    if _is_mapped(written):  # another address to Seatbelt, though the doors take it for the same
        return written, False, []
    return host.text, host.address in OwnAddresses(lambda: 0.0)(), []


def _is_mapped(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def explained(text: str, asked: Sequence[tuple[str, Request]]) -> list[Answer]:
    """What every model says to every question, by which lines of *text*."""
    profile = load(text)
    source = text.splitlines()
    return [_answer(question, request, profile, source) for question, request in asked]


def _answer(question: str, request: Request, profile: Profile, source: Sequence[str]) -> Answer:
    groups: dict[tuple[int, int, bool], list[Verdict]] = {}
    for verdict in verdicts(profile, request):
        groups.setdefault((verdict.line, _filter_line(verdict, request), verdict.allowed), []).append(verdict)
    texts = ("", *(each.strip() for each in source))
    grounds = [
        Ground(line, texts[line], at, texts[at], allowed, len(group), _where(group), why(texts, line, at))
        for (line, at, allowed), group in groups.items()
    ]
    said = {ground.allowed for ground in grounds}
    together = DISPUTED if len(said) > 1 else ALLOWED if True in said else DENIED
    return Answer(question, together, tuple(sorted(grounds, key=lambda ground: (-ground.models, ground.line))))


def _filter_line(verdict: Verdict, request: Request) -> int:
    """Where the filter stands that matched; 0 for a rule without one."""
    filter_ = verdict.rule.filter if verdict.rule is not None else None
    if filter_ is None:
        return 0
    parts = filter_.parts if isinstance(filter_, Some) else (filter_,)
    return next(part.line for part in parts if part.matches(request, verdict.model.matching) is not False)


def _where(group: Sequence[Verdict]) -> tuple[str, ...]:
    """The assumptions that tell these models from the others; of a question that does not matter, nothing."""
    every = zip(*(model.assumptions for model in all_models()), strict=True)
    found = zip(*(verdict.model.assumptions for verdict in group), strict=True)
    told = []
    for answers, known in zip(found, every, strict=True):
        names = dict.fromkeys(each.name for each in answers)
        if len(names) < len(set(known)):
            told.append(" or ".join(names))
    return tuple(told)


def why(texts: Sequence[str], line: int, filter_line: int) -> str:
    """The first sentence of the nearest comment above the filter or its rule, in the same block of lines."""
    at = max(line, filter_line, 1) - 1
    while texts[at] and not texts[at].startswith(";"):
        at -= 1
    comment: list[str] = []
    while texts[at].startswith(";"):
        comment.insert(0, texts[at].lstrip("; "))
        at -= 1
    if len(comment) > 1 and len(comment[0]) < A_TITLE and not comment[0].endswith("."):
        del comment[0]
    sentence, dot, _ = " ".join(comment).partition(". ")
    return sentence + dot.strip()


def lines(answers: Sequence[Answer]) -> list[str]:
    """For people: one line for all questions that the same rules decide, and below it these rules and their reasons."""
    told = []
    for (_, grounds), group in groupby(answers, lambda each: (each.verdict, each.grounds)):
        alike = list(group)
        each = alike[0]
        told.append(f"  {', '.join(one.question for one in alike):<18}  {each.verdict}")
        for ground in grounds:
            verb = f"{ALLOWED if ground.allowed else DENIED} " if each.verdict == DISPUTED else ""
            under = "every model" if len(each.grounds) == 1 else f"{ground.models} models"
            where = f": {', '.join(ground.where)}" if ground.where else ""
            told.append(f"      {verb}by {_place(ground)} ({under}{where})")
            if ground.why:
                told.append(f"      {ground.why}")
    return told


def _place(ground: Ground) -> str:
    if not ground.line:
        return "no rule"
    rule = f"line {ground.line}, {printable(ground.rule)}"
    if ground.filter_line in (0, ground.line):
        return rule
    return f"{rule} … line {ground.filter_line}, {printable(ground.filter)}"


def as_json(word: str, answers: Sequence[Answer], notes: list[str], *, allowed: bool) -> dict[str, object]:
    """For programs."""
    told = [
        {
            "question": each.question,
            "verdict": each.verdict,
            "rules": [{**vars(ground), "where": list(ground.where)} for ground in each.grounds],
        }
        for each in answers
    ]
    return {"v": 1, "backend": "seatbelt", "target": word, "allowed": allowed, "verdicts": told, "notes": notes}
