"""Whether a profile lets a request through, and by which rule, under one model or under all of them. Pure.

Safety tests ask `denied_under_all`, and their twins `allowed_under_all`: neither believes any single report about
Seatbelt. Everything starts denied; a verdict without a rule is that start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from netsandbox.backends.seatbelt.profile.operations import lineage
from tests.seatbelt_model import models
from tests.seatbelt_model.models import BINDS, PRECEDENCES, UNDECIDED, Matching, Model, all_matchings
from tests.seatbelt_model.profile import ALLOW, DENY, Profile, Rule
from tests.seatbelt_model.request import Request


@dataclass(frozen=True)
class Verdict:
    """Allowed or not, the rule that decided, and the model under which it did."""

    allowed: bool
    rule: Rule | None
    model: Model

    @property
    def line(self) -> int:
        return 0 if self.rule is None else self.rule.line


def evaluate(profile: Profile, request: Request, model: Model | None = None) -> Verdict:
    """The verdict under one model; a profile with faults raises its first one."""
    model = Model() if model is None else model
    answers = _answers(profile.checked(), request, model.matching)
    return _decide(answers, request, model)


def verdicts(profile: Profile, request: Request) -> Iterator[Verdict]:
    """The verdict under every model."""
    yield from judge(profile.checked(), request)


def judge(rules: Sequence[Rule], request: Request) -> Iterator[Verdict]:
    """The same for bare rules, whatever else is wrong with their profile."""
    known: dict[object, list[tuple[Rule, bool | None]]] = {}
    for matching in all_matchings():
        told = _what_matters(request, matching)
        answers = known[told] if told in known else known.setdefault(told, _answers(rules, request, matching))
        for precedence, bind, undecided in product(PRECEDENCES, BINDS, UNDECIDED):
            yield _decide(answers, request, Model(precedence, matching, bind, undecided))


def _what_matters(request: Request, matching: Matching) -> object:
    """The part of *matching* on which a filter's answer can depend: which end is meant, only where there are ends."""
    has_ends = request.path is None and request.operation.startswith("network")
    return matching if has_ends else matching.paths


def denied_under_all(profile: Profile, request: Request) -> bool:
    return not any(_outcomes(profile.checked(), request))


def allowed_under_all(profile: Profile, request: Request) -> bool:
    return all(_outcomes(profile.checked(), request))


def _outcomes(rules: Sequence[Rule], request: Request) -> Iterator[bool]:
    """What `judge` says, each outcome once: models that differ in nothing that matters here need no second decision."""
    for matching in {_what_matters(request, matching): matching for matching in all_matchings()}.values():
        answers = _answers(rules, request, matching)
        for precedence, bind, undecided in product(PRECEDENCES, BINDS, UNDECIDED):
            yield _decide(answers, request, Model(precedence, matching, bind, undecided)).allowed


def _answers(rules: Iterable[Rule], request: Request, matching: Matching) -> list[tuple[Rule, bool | None]]:
    """The rules that match or may, in their order; those on other operations are left out."""
    line = set(lineage(request.operation))
    found: list[tuple[Rule, bool | None]] = []
    for rule in rules:
        if line.isdisjoint(rule.operations):
            continue
        answer = True if rule.filter is None else rule.filter.matches(request, matching)
        if answer is not False:
            found.append((rule, answer))
    return found


def _decide(answers: list[tuple[Rule, bool | None]], request: Request, model: Model) -> Verdict:
    line = lineage(request.operation, bind_under_inbound=model.bind is models.BIND_UNDER_INBOUND)
    lucky = ALLOW if model.undecided is models.UNDECIDED_ALLOWS else DENY
    best: tuple[int, int] | None = None
    winner: Rule | None = None
    for rule, answer in answers:
        distance = next((at for at, name in enumerate(line) if name in rule.operations), None)
        if distance is None or (answer is None and rule.action != lucky):
            continue
        rank = _rank(rule, distance, model)
        if best is None or rank >= best:
            best, winner = rank, rule
    return Verdict(winner is not None and winner.action == ALLOW, winner, model)


def _rank(rule: Rule, distance: int, model: Model) -> tuple[int, int]:
    """The higher wins; of two equals the later."""
    filtered = int(rule.filter is not None)
    if model.precedence is models.LAST_MATCH:
        return 0, 0
    if model.precedence is models.FILTERED_FIRST:
        return filtered, 0
    return -distance, (filtered if model.precedence is models.NEAREST_FILTERED else 0)
