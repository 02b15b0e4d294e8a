"""Which rules let a request through under some model, and under which assumptions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netsandbox.backends.seatbelt.profile.operations import DEFAULT
from tests.seatbelt_model.evaluator import Verdict, judge
from tests.seatbelt_model.models import BINDS, LOCALHOSTS, LOCALS, PATHS, PRECEDENCES, UNDECIDED
from tests.seatbelt_model.profile import Rule
from tests.seatbelt_model.request import Request


def openings(rules: Sequence[Rule], request: Request) -> Iterator[tuple[Rule, str]]:
    """Each rule that opens it, and `, if …` where not every model says so; `(allow default)` is told apart."""
    opened: dict[Rule, list[Verdict]] = {}
    for verdict in judge(rules, request):
        if verdict.allowed and verdict.rule is not None and DEFAULT not in verdict.rule.operations:
            opened.setdefault(verdict.rule, []).append(verdict)
    for rule, cases in opened.items():
        yield rule, _condition(cases)


def _condition(cases: Sequence[Verdict]) -> str:
    """Which assumptions it takes, if not every model agrees."""
    told = []
    for question in (PRECEDENCES, LOCALHOSTS, LOCALS, BINDS, PATHS, UNDECIDED):
        needed = [each for each in question if any(each in case.model.assumptions for case in cases)]
        if len(needed) < len(question):
            told.append(" or ".join(each.says for each in needed))
    return f", if {', and '.join(told)}" if told else ""
