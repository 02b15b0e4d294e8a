"""The user's own Seatbelt rules (`[seatbelt] raw`), read strictly and written again for the session's profile. Pure.

The reader understands a small part of Seatbelt's language and refuses the rest (fail closed):

1. A rule is `(allow OPERATION… FILTER…)` or `(deny OPERATION… FILTER…)` with known operations and known filters. There
   are no definitions, imports, conditions or changes of the default, so no raw rule can change the meaning of ours.
2. The only network rules are those on Unix sockets by path, and none of these may reach the system's resolver.
3. `(allow mach-lookup …)` lists services, and none of them may be the resolver. Operations that reach programs outside
   the sandbox are refused.
4. Deny rules come last, on the operations that the text allows, so that the order of rules cannot reopen them.

The profile gets what was read, not the user's text, so the kernel reads exactly what was checked here. Our own denials
stand after the raw rules. The tests compare this reader with a full interpreter and linter of the language.
"""

from __future__ import annotations

import re

from netsandbox.backends.seatbelt.profile.mac_paths import resolved
from netsandbox.backends.seatbelt.profile.network_rules import RESOLVER_SOCKETS
from netsandbox.backends.seatbelt.profile.operations import DEFAULT, KNOWN, canonical, covers, nearest
from netsandbox.backends.seatbelt.profile.raw_filters import (
    JOINED_FILTERS,
    NAME_FILTERS,
    PATH_FILTERS,
    WORD_FILTERS,
    check_regex,
)
from netsandbox.backends.seatbelt.profile.raw_forms import Form, RawRuleError, Word, read_forms
from netsandbox.backends.seatbelt.profile.sbpl_string import quoted
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ALLOW, DENY = "allow", "deny"
NETWORK, OUTBOUND, LOOKUP = "network*", "network-outbound", "mach-lookup"
RESOLVER_SERVICES = ("com.apple.dnssd.service", "com.apple.mDNSResponder")
# Operations that start or steer programs outside the sandbox, or look services up in another way.
OUTSIDE = (
    *("appleevent-send", "job-creation", "lsopen"),
    *("mach-priv-task-port", "mach-task-special-port-set", "mach-per-user-lookup", "mach-cross-domain-lookup"),
)
SOCKET_FILTERS = ("to", "remote")
MODIFIERS = ("no-log", "no-report", "report")
_NO_NETWORK = "raw rules open no network; use allow_domains, allow_addresses or connect_host"


@frozen
class RawRules:
    """The texts for two places of a profile: rules on Unix sockets, and all other rules."""

    sockets: str = ""
    others: str = ""


@frozen
class _Rule:
    """One rule as it goes into the profile."""

    action: str
    operations: tuple[str, ...]
    text: str
    line: int


def raw_rules(texts: Iterable[tuple[str, str]], parameters: Mapping[str, str]) -> RawRules:
    """The rules of each `(text, origin)`; *parameters* are the values of `(param "NAME")`."""
    sockets, others = [], []
    for text, origin in texts:
        try:
            rules = _read_rules(text, parameters)[0]
        except RawRuleError as error:
            raise UsageError(f"{origin}: raw, line {error.line}: {error}") from None
        note = f"; Raw rules of {printable(origin)}"
        sockets += [note, *(rule.text for rule in rules if OUTBOUND in rule.operations)]
        others += [note, *(rule.text for rule in rules if OUTBOUND not in rule.operations)]
    return RawRules("\n".join(sockets), "\n".join(others))


def check_raw(text: str, parameters: Mapping[str, str]) -> list[tuple[int, str]]:
    """The warnings about a text, each with its line; a `RawRuleError` for a text that no profile takes."""
    return [
        (line, f'in "…" \\{char} is {char} alone; write \\\\{char} to keep the backslash')
        for line, char in _read_rules(text, parameters)[1]
    ]


def _read_rules(text: str, parameters: Mapping[str, str]) -> tuple[list[_Rule], list[tuple[int, str]]]:
    forms, dropped = read_forms(text, parameters)
    rules = []
    for form in forms:
        try:
            rules.append(_read_rule(form))
        except UsageError as error:
            raise error if isinstance(error, RawRuleError) else RawRuleError(str(error), form.line) from None
    _check_order(rules)
    return rules, dropped


def _read_rule(form: Form) -> _Rule:
    if form.head not in (ALLOW, DENY):
        raise RawRuleError("raw rules begin with (allow or (deny, and nothing else stands between them", form.line)
    operations = tuple(_operation(item) for item in form.items[1:] if isinstance(item, Word))
    if not operations:
        raise RawRuleError(f"this {form.head} names no operation; write ({form.head} OPERATION FILTER …)", form.line)
    parts = [item for item in form.items[1:] if not isinstance(item, Word)]
    filters = [item for item in parts if isinstance(item, Form) and item.head != "with"]
    _check_network(form, operations, filters)
    text = " ".join((form.head, *operations, *(_written(item) for item in parts)))
    if form.head == DENY:
        _check_deny_paths(filters)
    else:
        _check_allow(form, operations, filters)
    return _Rule(form.head, operations, f"({text})", form.line)


def _operation(word: Word) -> str:
    if word.name not in KNOWN:
        near = nearest(word.name)
        advice = f"did you mean {near}?" if near else "correct it"
        raise RawRuleError(f"there is no operation {word.name[:40]}, which voids the profile; {advice}", word.line)
    return canonical(word.name)


def _check_network(form: Form, operations: Sequence[str], filters: Sequence[Form]) -> None:
    network = [name for name in operations if covers(NETWORK, name) or covers(name, NETWORK)]
    if DEFAULT in operations or (network and (set(network) != {OUTBOUND} or not filters)):
        raise RawRuleError(_NO_NETWORK, form.line)
    if network and len(network) != len(operations):
        raise RawRuleError("a raw rule is about sockets or about something else; write two", form.line)
    for each in filters if network else ():
        _check_socket_filter(each, form.head)


def _check_allow(form: Form, operations: Sequence[str], filters: Sequence[Form]) -> None:
    for name in operations:
        if covers(name, "system-socket"):
            raise RawRuleError(_NO_NETWORK, form.line)
        for outside in OUTSIDE:
            if covers(name, outside):
                text = f"{outside} reaches programs outside of the sandbox, which can act for this one; do not allow it"
                raise RawRuleError(text, form.line)
        if covers(name, LOOKUP):
            _check_services(form, filters)


def _check_socket_filter(form: Form, action: str) -> None:
    """Unix sockets by path; an allow must not name a resolver's socket or a folder above it."""
    paths = _socket_paths(form) if form.head in SOCKET_FILTERS else [form]
    for path in paths:
        if path.head not in ("literal", "subpath"):
            raise RawRuleError(_NO_NETWORK, form.line)
        for text in map(str, path.items[1:] if action == ALLOW else ()):
            # APFS usually ignores case, and so does this check.
            names = {resolved(text).casefold(), text.casefold().rstrip("/") or "/"}
            if any(is_within(socket.casefold(), name) for socket in RESOLVER_SOCKETS for name in names):
                raise RawRuleError(
                    f"{text[:80]!a} reaches the system's resolver, and any data leaves in a DNS question;"
                    " let the proxy resolve names",
                    path.line,
                )


def _socket_paths(form: Form) -> list[Form]:
    """The path filters of `(to unix-socket …)`."""
    kind, paths = form.items[1:2], [item for item in form.items[2:] if isinstance(item, Form)]
    known = kind and isinstance(kind[0], Word) and kind[0].name in ("unix", "unix-socket")
    if not known or not paths or len(paths) != len(form.items) - 2:
        raise RawRuleError(_NO_NETWORK, form.line)
    return paths


def _check_services(form: Form, filters: Sequence[Form]) -> None:
    for service in RESOLVER_SERVICES:
        if not filters or any(_may_match(each, service) for each in filters):
            raise RawRuleError(
                f"the mach service {service} is open, by which any name, and so any data, leaves in a DNS question;"
                " name the services that are needed, without it",
                form.line,
            )


def _may_match(form: Form, service: str) -> bool:
    """Whether a filter of `mach-lookup` may match *service*: yes, unless it lists other names."""
    if form.head == "require-any":
        return any(_may_match(item, service) for item in form.items[1:] if isinstance(item, Form))
    name, _, kind = form.head.partition("-name")
    texts = [item for item in form.items[1:] if isinstance(item, str)]
    if name not in ("global", "local", "xpc-service") or not texts:
        return True
    if kind == "-regex":
        return any(re.search(text, service) for text in texts)
    return any(service.startswith(text) if kind == "-prefix" else service == text for text in texts)


def _check_deny_paths(filters: Iterable[Form]) -> None:
    """A deny on a path that the kernel never sees denies nothing."""
    leaves = [leaf for each in filters for leaf in _leaves(each) if leaf.head in PATH_FILTERS]
    texts = {text for leaf in leaves for text in leaf.items[1:]}
    for leaf in leaves:
        for text in map(str, leaf.items[1:]):
            if "regex" in leaf.head:
                linked = re.match(r"\^?(/(?:tmp|var|etc))(?![A-Za-z0-9_.-])", text)
                if linked:
                    advice = f"/private{linked[1]}"
                    raise RawRuleError(f"{linked[1]} is a link, so this matches nothing; write {advice}", leaf.line)
            elif resolved(text) != text and resolved(text) not in texts:
                advice = quoted(resolved(text))
                raise RawRuleError(f"{quoted(text)} is not resolved and may match nothing; write {advice}", leaf.line)


def _leaves(form: Form) -> Iterable[Form]:
    if form.head in PATH_FILTERS:
        yield form
    for item in form.items[1:]:
        if isinstance(item, Form):
            yield from _leaves(item)


def _check_order(rules: Sequence[_Rule]) -> None:
    """No allow follows a deny, and no deny is on an operation above an allowed one: the more specific rule may win."""
    denied: list[_Rule] = []
    allowed: list[_Rule] = []
    for rule in rules:
        if rule.action == ALLOW and denied:
            text = f"this allow comes after the deny in line {denied[0].line} and may open it again; put the deny last"
            raise RawRuleError(text, rule.line)
        (allowed if rule.action == ALLOW else denied).append(rule)
    for deny in denied:
        for allow in allowed:
            for name in allow.operations:
                if name not in deny.operations and any(covers(upper, name) for upper in deny.operations):
                    text = f"line {allow.line} allows {name} by name, which may win over this deny; deny {name} here"
                    raise RawRuleError(text, deny.line)


def _written(item: Form | Word | str) -> str:
    """A filter or modifier as text, checked."""
    if not isinstance(item, Form):
        raise RawRuleError("a string alone is not a filter; write one, such as (literal …)")
    if item.head == "with":
        name = item.items[1].name if len(item.items) == 2 and isinstance(item.items[1], Word) else ""
        if name == "no-sandbox":
            raise RawRuleError("(with no-sandbox) starts programs without any sandbox; remove it", item.line)
        if name not in MODIFIERS:
            raise RawRuleError("this modifier is not taken here; write (with no-log) or (with report)", item.line)
        return f"(with {name})"
    return f"({' '.join((item.head, *_filter_values(item)))})"


def _filter_values(form: Form) -> list[str]:
    head, values = form.head, form.items[1:]
    if head in JOINED_FILTERS:
        inner = [item for item in values if isinstance(item, Form) and item.head != "with"]
        if not inner or len(inner) != len(values):
            raise RawRuleError(f"{head} takes filters and at least one; write ({head} (literal …) …)", form.line)
        return [_written(item) for item in inner]
    if head in SOCKET_FILTERS:
        return ["unix-socket", *map(_written, _socket_paths(form))]
    if head in WORD_FILTERS:
        return [item.name if isinstance(item, Word) else _text(form, item) for item in values]
    if head not in PATH_FILTERS and head not in NAME_FILTERS:
        raise RawRuleError(f"{head[:40]!a} is not a filter; raw rules are rules, not programs", form.line)
    if not values and head in PATH_FILTERS:
        raise RawRuleError(f"{head} takes strings, not nothing; name a path", form.line)
    return [_text(form, item) for item in values]


def _text(form: Form, item: Form | Word | str) -> str:
    if not isinstance(item, str):
        raise RawRuleError(
            f'{form.head} takes texts; only "…", (param …) and (string-append …) make a text here', form.line
        )
    if form.head.endswith("regex"):
        check_regex(item, form.line)
    elif form.head in PATH_FILTERS and not item.startswith("/"):
        raise RawRuleError(
            f"{quoted(item)} is not an absolute path and matches nothing; join the parts of a path with string-append",
            form.line,
        )
    return quoted(item, "text")
