"""The language of profiles comes to the same values as Scheme, or says what it does not understand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model import scheme
from tests.seatbelt_model.reader import read
from tests.seatbelt_model.scheme import Interpreter
from tests.seatbelt_model.values import ProfileError, ProfileSyntaxError, Symbol


def result(text: str) -> object:
    interpreter = Interpreter()
    value: object = None
    for form in read(text):
        value = interpreter.value(form, interpreter.scope)
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('(define a "x") a', "x"),
        ('(define (f a b) (string-append a "-" b)) (f "x" "y")', "x-y"),
        ("(define (f . rest) rest) (f 1 2)", (1, 2)),
        ("(define (f a . rest) (list a rest)) (f 1 2 3)", (1, (2, 3))),
        ("((lambda (a) a) 7)", 7),
        ("((lambda rest rest) 7)", (7,)),
        ("(let ((a 1) (b 2)) (list a b))", (1, 2)),
        ("(define a 1) (let ((a 2) (b a)) b)", 1),
        ("(define a 1) (let* ((a 2) (b a)) b)", 2),
        ("(define a 1) (let ((a 2)) a) a", 1),
        ("(define (outer a) (lambda (b) (list a b))) ((outer 1) 2)", (1, 2)),
        ("(if #f 1 2)", 2),
        ("(if 0 1 2)", 1),
        ("(if #f 1)", ()),
        ("(when #t 1 2)", 2),
        ("(when #f 1)", ()),
        ("(unless #f 1 2)", 2),
        ("(unless 1 2)", ()),
        ("(cond (#f 1) (#t 2) (else 3))", 2),
        ("(cond (#f 1) (else 3))", 3),
        ("(cond (#f 1) (5))", 5),
        ("(cond)", ()),
        ("(and)", True),
        ("(and 1 2)", 2),
        ("(and #f (error))", False),
        ("(or)", False),
        ("(or #f 2 (error))", 2),
        ("(begin 1 2)", 2),
        ("(define a 1) (set! a 2) a", 2),
        ("'(a 1 (b))", (Symbol("a"), 1, (Symbol("b"),))),
        ("(map (lambda (a) (+ a 1)) '(1 2))", (2, 3)),
        ("(map + '(1 2) '(3 4))", (4, 6)),
        ("(define n 0) (for-each (lambda (a) (set! n (+ n a))) '(1 2 3)) n", 6),
        ("(apply + 1 '(2 3))", 6),
        ("(let ((if 3)) if)", 3),
        ("(define (count n) (if (= n 0) 0 (+ 1 (count (+ n -1))))) (count 10)", 10),
    ],
)
def test_an_expression_has_its_value(text: str, value: object) -> None:
    assert result(text) == value


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("\nnowhere", 2, "not known"),
        ("\n(nowhere 1)", 2, "not a filter or function"),
        ("()", 1, "empty list"),
        ("(1 2)", 1, "is no function"),
        ("(define (f a)\n a)\n(f)", 3, "takes 1 arguments, not 0"),
        ("((lambda (a) a) 1 2)", 1, "takes 1 arguments, not 2"),
        ("(define 1 2)", 1, "define takes"),
        ("(define a)", 1, "define with 1 arguments"),
        ("(set! nowhere 1)", 1, "define it first"),
        ("(lambda (1) 2)", 1, "no names"),
        ("(lambda (. a b) 2)", 1, "no names"),
        ("(let (a) 1)", 1, "let takes pairs"),
        ("(cond 1)", 1, "cond takes"),
        ("(if)", 1, "if with 0"),
        ("(map +)", 1, "map and for-each"),
        ("(apply +)", 1, "apply takes"),
        ("(quote)", 1, "quote with 0"),
    ],
)
def test_what_is_not_understood_is_said_with_its_line(text: str, line: int, part: str) -> None:
    with pytest.raises(ProfileError, match=part) as caught:
        result(text)
    assert caught.value.line == line


def test_endless_calls_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProfileError, match="nested more than"):
        result("(define (f) (f)) (f)")
    monkeypatch.setattr(scheme, "MAX_STEPS", 1000)
    with pytest.raises(ProfileError, match="more than 1000 steps"):
        result("(define (f n) (map (lambda (a) (list a)) n)) " + "(f '(1 2 3 4 5))" * 300)


def test_lists_and_strings_cannot_double_their_way_through_all_memory() -> None:
    double = "(define (f x n) (if (= n 0) x (f ({} x x) (+ n -1)))) (f {} 25)"
    with pytest.raises(ProfileError, match="more than"):
        result(double.format("string-append", '"xxxxxxxx"'))
    with pytest.raises(ProfileError, match="more than"):
        result(double.format("append", "'(1 2 3 4)"))


WORDS = "define lambda let let* if cond else when unless and or not quote list car cdr map apply set! f a b + = . begin"
ATOMS = st.sampled_from([*WORDS.split(), "1", '"s"', "#t", "#f", "'a"])
FORMS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=4).map(lambda parts: f"({' '.join(parts)})"))


@given(st.lists(FORMS, max_size=5))
def test_any_forms_give_values_or_a_profile_error(forms: list[str]) -> None:
    try:
        result("\n".join(forms))
    except ProfileSyntaxError:
        raise
    except ProfileError as error:
        text = error.text
    else:
        text = "; "
    assert "; " in text
