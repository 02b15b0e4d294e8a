"""The worker's allowance: one question a direction at a time, and never more than was granted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect.allowance import AHEAD, Allowance, Way


def test_a_question_is_asked_once_and_its_answer_can_be_used_up() -> None:
    asked: list[tuple[int, int]] = []
    allowance = Allowance(lambda up, down: asked.append((up, down)))
    assert allowance.up.take(10) == allowance.up.take(12) == 0
    assert allowance.down.take(7) == 0
    assert asked == [(10, 0), (0, 7)]
    allowance.up.add(10)
    allowance.down.add(0)
    assert (allowance.up.awaits, allowance.down.awaits) == (False, True)
    assert allowance.up.take(12) == 10
    assert allowance.up.take(0) == 0
    assert asked == [(10, 0), (0, 7)]


def test_a_connection_that_passed_much_asks_ahead() -> None:
    asked: list[int] = []
    way = Way(asked.append)
    for granted in (1000, 8000, 1 << 30):
        way.take(100)
        way.add(granted)
        way.left = 0
    way.take(100)
    assert asked == [100, 250, 2250, AHEAD]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100)), max_size=50))
def test_what_is_taken_was_granted(steps: list[tuple[bool, int]]) -> None:
    open_questions: list[int] = []
    way = Way(open_questions.append)
    granted = taken = 0
    for answers, count in steps:
        if answers and open_questions:
            grant = min(open_questions.pop(0), count + 1)
            granted += grant
            way.add(grant)
        elif not answers:
            took = way.take(count)
            way.left -= took
            taken += took
        assert len(open_questions) <= 1
    assert taken <= granted
