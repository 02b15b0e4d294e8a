"""Findings about rules that contradict one another. Pure.

Which of two matching rules wins is disputed: the last one, the one with a filter, the one on the nearer operation. A
deny that holds under one of these answers only is no deny, and an allow after a deny takes it back under most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netsandbox.backends.seatbelt.profile.operations import DEFAULT
from tests.seatbelt_model.coverage import covers, speaks_for
from tests.seatbelt_model.filters import Filter, Some
from tests.seatbelt_model.findings import Finding, error, warning
from tests.seatbelt_model.profile import ALLOW, DENY, Rule

MAX_COMPARISONS = 2_000_000  # a few seconds; 3,000 paths with 600 exceptions stay below


def order_findings(rules: Sequence[Rule]) -> list[Finding]:
    found = list(_repeated(rules))
    left = MAX_COMPARISONS
    sides = {action: [at for at, rule in enumerate(rules) if rule.action == action] for action in (ALLOW, DENY)}
    for at, rule in enumerate(rules):
        others = sides[DENY if rule.action == ALLOW else ALLOW]
        rivals = [other for other in others if other > at and _answers(rules[other], rule)]
        nearer = [(rules[other], names) for other in others if (names := _allowed_below(rules[other], rule))]
        compared = [*(rules[other] for other in rivals), *(other for other, _ in nearer)]
        left -= len(others) + len(_pieces(rule)) * sum(len(_pieces(other)) for other in compared)
        if left < 0:
            text = "there are too many rules to compare each with all others; keep paths together in fewer rules"
            return [*found, warning(rule.line, "not-compared", text, rule.source)]
        found += _overridden(rule, rivals, rules)
        found += _too_high(rule, nearer, rules)
    return found


def _pieces(rule: Rule) -> list[Filter | None]:
    """The alternatives of a rule's filter, each of which can be overridden alone."""
    return [None] if rule.filter is None else _alternatives(rule.filter)


def _alternatives(filter_: Filter) -> list[Filter | None]:
    if not isinstance(filter_, Some):
        return [filter_]
    return [piece for part in filter_.parts for piece in _alternatives(part)]


def _repeated(rules: Sequence[Rule]) -> Iterator[Finding]:
    """Only whole rules: that two of them overlap is how profiles are put together."""
    last: dict[tuple[str, tuple[str, ...], Filter | None], Rule] = {}
    for rule in reversed(rules):
        key = (rule.action, rule.operations, rule.filter)
        if key in last:
            text = f"{_place(last[key], rule)} says this again; remove one of them"
            yield warning(rule.line, "repeated", text, rule.source)
        last[key] = rule


def _overridden(rule: Rule, rivals: Sequence[int], rules: Sequence[Rule]) -> Iterator[Finding]:
    for piece in _pieces(rule) if rivals else ():
        for at in rivals:
            if covers(rules[at].filter, piece) and not _denied_again(rule, piece, rules[at + 1 :]):
                yield _contradiction(rule, piece, rules[at])
                break


def _answers(later: Rule, rule: Rule) -> bool:
    """For a deny it is bad enough if one of its operations is opened again; of an allow all must be taken back."""
    if rule.action == ALLOW:
        return speaks_for(later, rule.operations)
    return any(speaks_for(later, (name,)) for name in rule.operations)


def _denied_again(rule: Rule, piece: Filter | None, later: Sequence[Rule]) -> bool:
    denies = (other for other in later if rule.action == other.action == DENY)
    return any(speaks_for(other, rule.operations) and covers(other.filter, piece) for other in denies)


def _contradiction(rule: Rule, piece: Filter | None, later: Rule) -> Finding:
    line, place = _line(rule, piece), _place(later, rule)
    if rule.action == DENY:
        text = f"the allow in {place} comes after this deny and opens it again; put the deny last"
        return error(line, "reopened", text, rule.source)
    if later.filter is None and piece is not None:
        text = f"the deny in {place} takes this back if the last rule wins, and not if filtered rules do; remove one"
        return warning(line, "disputed", text, rule.source)
    text = f"the deny in {place} takes this back, so it does nothing; remove it or put it after the deny"
    return warning(line, "overridden", text, rule.source)


def _line(rule: Rule, piece: Filter | None) -> int:
    return rule.line if piece is None else piece.line


def _place(rule: Rule, seen_from: Rule) -> str:
    return f"line {rule.line}" + ("" if rule.source == seen_from.source else f" of {rule.source or 'the profile'}")


def _too_high(rule: Rule, nearer: Sequence[tuple[Rule, list[str]]], rules: Sequence[Rule]) -> Iterator[Finding]:
    """A deny on an operation, while one below it is allowed by name: the nearer rule has been seen to win."""
    for piece in _pieces(rule) if nearer else ():
        for other, names in nearer:
            if piece is not None and covers(other.filter, piece) and not _denied_nearer(names, piece, rules):
                text = (
                    f"{_place(other, rule)} allows {names[0]} by name, which has been seen to win over this deny on "
                    f"{', '.join(rule.operations)}; deny {' '.join(names)} here too"
                )
                yield error(piece.line, "deny-too-high", text, rule.source)
                break


def _allowed_below(other: Rule, rule: Rule) -> list[str]:
    """The operations of an allow that are below those of a deny."""
    if rule.action != DENY or DEFAULT in rule.operations:
        return []
    return [name for name in other.operations if name not in rule.operations and speaks_for(rule, (name,))]


def _denied_nearer(names: Sequence[str], piece: Filter, rules: Sequence[Rule]) -> bool:
    """Some other deny names the same operations for the same thing."""
    denies = [rule for rule in rules if rule.action == DENY]
    return all(any(name in rule.operations and covers(rule.filter, piece) for rule in denies) for name in names)
