"""Rules that a user wrote in Seatbelt's own words (`[seatbelt] raw`), as far as they may go into a session's profile.
Pure.

Rules kept: they are rules and no programs, so that none can change what ours mean: only `allow` and `deny`, with
filters that are written out. They are written anew from what was read, so that the kernel reads what was judged. None
opens a way to the network; Unix sockets are named by path. What the lint calls an error is refused. They stand before
our own denials, which win; those about sockets after the one that closes the network, and what follows from all of it
is judged anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from netsandbox.backends.seatbelt.model.filter_forms import is_filter
from netsandbox.backends.seatbelt.model.filters import All, Filter, Path, Some, UnixEnd
from netsandbox.backends.seatbelt.model.findings import ERROR
from netsandbox.backends.seatbelt.model.lint import dropped, lint
from netsandbox.backends.seatbelt.model.lint_network import network_findings
from netsandbox.backends.seatbelt.model.operations import covers
from netsandbox.backends.seatbelt.model.profile import ALLOW, DENY, Dropped, Rule, load
from netsandbox.backends.seatbelt.model.reader import read, read_noting
from netsandbox.backends.seatbelt.model.values import Datum, Form, ProfileError, Symbol
from netsandbox.backends.seatbelt.profile.sbpl_string import quoted
from netsandbox.errors import UsageError
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netsandbox.backends.seatbelt.model.findings import Finding

MAX_CHARACTERS = 64 << 10
NETWORK = "network*"
START = "(version 1) (deny default)"  # on the first line, so that lines stay what they are
_JOIN, _PARAMETER, _MODIFIER = "string-append", "param", "with"


@dataclass(frozen=True)
class RawRules:
    """Texts for two places of a profile: those about Unix sockets, and all others."""

    sockets: str = ""
    others: str = ""


def raw_rules(said: Iterable[tuple[str, str]], places: Mapping[str, str]) -> RawRules:
    """The rules of each text, which comes with its origin; *places* are the values of `(param "NAME")`."""
    sockets, others = [], []
    for text, origin in said:
        try:
            forms = _forms(text, places)
            findings = _findings(forms)
        except (ProfileError, UsageError) as slip:
            line, words = (slip.line, slip.text) if isinstance(slip, ProfileError) else (0, str(slip))
            raise UsageError(f"{origin}: raw{f', line {line}' if line else ''}: {words}") from None
        for finding in findings:
            if finding.severity == ERROR:
                raise UsageError(f"{origin}: raw, line {finding.line}: {finding.text}")
        note = f"; Raw rules of {printable(origin)}"
        sockets += [note, *(each for _, each in forms if _is_about_network(each))]
        others += [note, *(each for _, each in forms if not _is_about_network(each))]
    return RawRules("\n".join(sockets), "\n".join(others))


def raw_findings(text: str, places: Mapping[str, str]) -> list[Finding]:
    """Every finding about a text, for those who ask before they run it; a `ProfileError` where it is no rules."""
    noted = [dropped(Dropped(character, line)) for line, character in read_noting(text)[1]]
    return sorted({*noted, *_findings(_forms(text, places))}, key=lambda each: (each.line, each.severity, each.text))


def check_whole(profile: str) -> None:
    """An error if a profile with raw rules in it lets anything out, under whatever model."""
    for finding in network_findings(load(profile).checked()):
        if finding.severity == ERROR:
            raise UsageError(f"with the raw rules of [seatbelt], {finding.text}")


def _findings(forms: list[tuple[int, str]]) -> list[Finding]:
    """On the lines that they were written on."""
    lines: dict[int, list[str]] = {1: [START]}
    for line, form in forms:
        lines.setdefault(line, []).append(form)
    profile = load("\n".join(" ".join(lines.get(number, [])) for number in range(1, max(lines) + 1)))
    for fault in profile.faults:
        raise fault
    for rule in profile.rules[1:]:
        if len(set(map(_touches_network, rule.operations))) > 1:
            raise ProfileError("a raw rule is about sockets or about something else; write two", rule.line)
        if rule.action == ALLOW and _opens_network(rule):
            raise ProfileError(
                "raw rules open no network; use allow_domains, allow_addresses or connect_host", rule.line
            )
    return lint(profile)


def _forms(text: str, places: Mapping[str, str]) -> list[tuple[int, str]]:
    """The rules with their lines, without comments and with every string written out."""
    if len(text) > MAX_CHARACTERS:
        raise ProfileError(f"more than {MAX_CHARACTERS} characters; make it shorter", 1)
    forms = []
    for form in read(text):
        if not isinstance(form, Form) or form.head not in (ALLOW, DENY):
            line = form.line if isinstance(form, Form) else 1
            raise ProfileError("raw rules begin with (allow or (deny, and nothing else stands between them", line)
        forms.append((form.line, _written(form, places)))
    return forms


def _is_about_network(form: str) -> bool:
    (rule,) = load(f"{START} {form}").rules[1:]
    return any(map(_touches_network, rule.operations))


def _touches_network(name: str) -> bool:
    return covers(NETWORK, name) or covers(name, NETWORK)


def _written(datum: Datum, places: Mapping[str, str]) -> str:
    if isinstance(datum, bool):
        raise ProfileError("raw rules have no #t or #f; leave it out")
    if isinstance(datum, Symbol):
        return _symbol(datum)
    if isinstance(datum, int):
        return f"{datum:d}"
    if isinstance(datum, Form) and datum.head in (_JOIN, _PARAMETER):
        return quoted(_string(datum, places), "text")
    if isinstance(datum, Form):
        if datum.head not in (ALLOW, DENY, _MODIFIER) and not is_filter(datum.head):
            raise ProfileError(f"{datum.head[:40]!a} is no filter; raw rules are rules, not programs", datum.line)
        return f"({' '.join(_written(item, places) for item in datum.items)})"
    if isinstance(datum, str):
        return quoted(datum, "text")
    raise ProfileError("a value of this kind stands in no rule; write a name, a number or a text")


def _symbol(symbol: Symbol) -> str:
    if not symbol.name.isascii() or not symbol.name.replace("-", "").replace("_", "").replace("*", "").isalnum():
        raise ProfileError(f"{symbol.name[:40]!a} is no word of a rule; correct it", symbol.line)
    return symbol.name


def _string(datum: Datum, places: Mapping[str, str]) -> str:
    if isinstance(datum, str):
        return datum
    if isinstance(datum, Form) and datum.head == _JOIN:
        return "".join(_string(item, places) for item in datum.items[1:])
    if isinstance(datum, Form) and datum.head == _PARAMETER and len(datum.items) == 2:
        name = datum.items[1]
        if isinstance(name, str) and name in places:
            return places[name]
        raise ProfileError(f"there is no such parameter; use one of {', '.join(places)}", datum.line)
    raise ProfileError("only texts, (param …) and (string-append …) make a text here", getattr(datum, "line", 0))


def _opens_network(rule: Rule) -> bool:
    """Anything about the network that is more than Unix sockets by path."""
    if any(covers(name, "system-socket") for name in rule.operations):
        return True
    return any(map(_touches_network, rule.operations)) and (rule.filter is None or not _is_by_path(rule.filter))


def _is_by_path(filter_: Filter) -> bool:
    if isinstance(filter_, Path):
        return True
    if isinstance(filter_, (All, Some, UnixEnd)):
        return bool(filter_.parts) and all(_is_by_path(part) for part in filter_.parts)
    return False
