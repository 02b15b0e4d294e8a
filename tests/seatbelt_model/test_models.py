"""Every disputed question is answered both ways, in every combination."""

from __future__ import annotations

from tests.seatbelt_model import models
from tests.seatbelt_model.models import Model, all_models

QUESTIONS = (models.PRECEDENCES, models.LOCALHOSTS, models.LOCALS, models.BINDS, models.PATHS, models.UNDECIDED)


def test_all_models_are_all_combinations_and_no_two_are_the_same() -> None:
    every = list(all_models())
    expected = 1
    for question in QUESTIONS:
        expected *= len(question)
    assert len(every) == len(set(every)) == len({model.name for model in every}) == expected


def test_every_assumption_occurs_and_says_where_it_comes_from() -> None:
    used = {assumption for model in all_models() for assumption in model.assumptions}
    assert used == {assumption for question in QUESTIONS for assumption in question}
    assert len({assumption.name for assumption in used}) == len(used)
    for assumption in used:
        assert assumption.says
        assert assumption.reported.startswith(("rep", "?", "how requests are judged"))


def test_the_default_is_what_is_reported_most() -> None:
    assert Model() in set(all_models())
    assert Model().precedence is models.LAST_MATCH
