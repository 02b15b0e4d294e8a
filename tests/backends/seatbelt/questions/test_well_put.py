"""On any system: each question can be read by the evaluator, and settles just what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rig.mac_questions import ALLOWED, BY_KEY, DENIED, OTHERS, QUESTIONS, Question, left_by
from tests.seatbelt_model.evaluator import evaluate
from tests.seatbelt_model.models import all_models
from tests.seatbelt_model.profile import load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]


@pytest.mark.parametrize("question", QUESTIONS, ids=BY_KEY)
def test_a_question_is_well_put(question: Question) -> None:
    """Its profile can be read, and its answer settles just what it says."""
    profile = load(question.profile)
    assert profile.faults == ()
    for model in all_models():
        assert evaluate(profile, question.request, model).allowed == question.allows(model), model.name


def test_every_disputed_answer_is_asked_for() -> None:
    """Each measured, the answers leave models that differ only in what a request does not say."""
    for wanted in all_models():
        answers = {question.key: ALLOWED if question.allows(wanted) else DENIED for question in QUESTIONS}
        assert wanted in left_by(answers)
        assert len({model.assumptions[:-1] for model in left_by(answers)}) == 1


def test_the_page_on_macos_names_every_question_and_no_other() -> None:
    page = (ROOT / "docs/platform-macos.md").read_text("utf-8")
    table = page.partition("| question | key |")[2].partition("\n\n")[0]
    assert set(re.findall(r"\| `([a-z0-9-]+)` \|", table)) == set(BY_KEY) | set(OTHERS)


def test_every_question_has_its_measurement() -> None:
    text = "".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    tests = {name.replace("_", "-") for name in re.findall(r"^def test_(\w+)\(", text, re.MULTILINE)}
    assert set(OTHERS) <= tests
    assert all(f'answer("{key}", ' in text for key in OTHERS)
