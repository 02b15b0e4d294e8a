"""The functions of the language, and what they say to wrong arguments."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.procedures import PROCEDURES
from tests.seatbelt_model.values import ProfileError, Symbol

A = Symbol("a")


@pytest.mark.parametrize(
    ("name", "values", "answer"),
    [
        ("string-append", [], ""),
        ("string-append", ["a", "b"], "ab"),
        ("append", [(1,), (2,)], (1, 2)),
        ("list", [1, 2], (1, 2)),
        ("+", [1, 2, 3], 6),
        ("=", [1, 1, 1], True),
        ("<", [1, 2, 2], False),
        (">", [3, 2], True),
        ("not", [False], True),
        ("not", [()], False),
        ("equal?", ["a", "a"], True),
        ("equal?", ["a", A], False),
        ("equal?", [1, True], False),
        ("eq?", [A, Symbol("a", 7)], True),
        ("eqv?", [(1,), (1,)], True),
        ("string=?", ["a", "b"], False),
        ("string-length", ["abc"], 3),
        ("cons", [1, (2,)], (1, 2)),
        ("car", [(1, 2)], 1),
        ("cdr", [(1, 2)], (2,)),
        ("length", [(1, 2)], 2),
        ("reverse", [(1, 2)], (2, 1)),
        ("member", [2, (1, 2, 3)], (2, 3)),
        ("member", [4, (1, 2, 3)], False),
        ("null?", [()], True),
        ("pair?", [()], False),
        ("pair?", [(1,)], True),
        ("list?", [()], True),
        ("string?", ["a"], True),
        ("symbol?", [A], True),
        ("boolean?", [False], True),
        ("number?", [True], False),
        ("number?", [1.5], True),
    ],
)
def test_a_procedure_returns_what_scheme_returns(name: str, values: list[object], answer: object) -> None:
    assert PROCEDURES[name].call(values) == answer


@pytest.mark.parametrize(
    ("name", "values", "part"),
    [
        ("string-append", ["a", False], "takes strings, not #f"),
        ("string-append", ["a" * 70_000], "more than"),
        ("+", [True], "takes numbers, not #t"),
        ("append", [(1,), 2], "takes a list, not 2"),
        ("append", [(1,) * 15_000] * 2, "more than"),
        ("car", [()], "empty list"),
        ("cdr", [()], "empty list"),
        ("cons", [1, 2], "takes a list"),
        ("not", [], "takes 1 arguments, not 0"),
        ("equal?", [1], "takes 2 arguments, not 1"),
    ],
)
def test_wrong_arguments(name: str, values: list[object], part: str) -> None:
    with pytest.raises(ProfileError, match=part):
        PROCEDURES[name].call(values)
