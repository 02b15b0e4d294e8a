"""The functions of the language that need nothing but their arguments. Pure.

A list is a Python tuple. What makes new text or lists is bounded, because a few nested calls could otherwise double
their way through all memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tests.seatbelt_model.values import Procedure, ProfileError, Symbol, written

MAX_TEXT = 64 << 10
MAX_LIST = 20_000


def truth(value: object) -> bool:
    """Everything but #f is true."""
    return value is not False


def same(left: object, right: object) -> bool:
    """`equal?`: #t is not 1, and a symbol is not a string."""
    return type(left) is type(right) and left == right


def text(value: object, form: str) -> str:
    if not isinstance(value, str):
        raise ProfileError(f"{form} takes strings, not {written(value)}; give each parameter a value")
    return value


def number(value: object, form: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ProfileError(f"{form} takes numbers, not {written(value)}; mend the argument")
    return value


def sequence(value: object, form: str) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        raise ProfileError(f"{form} takes a list, not {written(value)}; mend the argument")
    return value


def bounded(items: Sequence[object]) -> tuple[object, ...]:
    if len(items) > MAX_LIST:
        raise ProfileError(f"a list of more than {MAX_LIST} items; make it shorter")
    return tuple(items)


def _string_append(values: list[object]) -> str:
    parts = [text(value, "string-append") for value in values]
    if sum(map(len, parts)) > MAX_TEXT:
        raise ProfileError(f"a string of more than {MAX_TEXT} characters; make it shorter")
    return "".join(parts)


def _append(values: list[object]) -> tuple[object, ...]:
    return bounded([item for value in values for item in sequence(value, "append")])


def _first(value: object, form: str) -> tuple[object, ...]:
    items = sequence(value, form)
    if not items:
        raise ProfileError(f"{form} of an empty list; ask null? first")
    return items


def _member(values: list[object]) -> object:
    items = sequence(values[1], "member")
    found = [at for at, item in enumerate(items) if same(item, values[0])]
    return items[found[0] :] if found else False


def _add(values: list[object]) -> float:
    return sum(number(value, "+") for value in values)


def _ordered(form: str, holds: Callable[[float, float], bool]) -> Callable[[list[object]], object]:
    def call(values: list[object]) -> bool:
        numbers = [number(value, form) for value in values]
        return all(holds(left, right) for left, right in pairwise(numbers))

    return call


def _exactly(count: int, name: str, call: Callable[[list[object]], object]) -> Procedure:
    def checked(values: list[object]) -> object:
        if len(values) != count:
            raise ProfileError(f"{name} takes {count} arguments, not {len(values)}; mend the call")
        return call(values)

    return Procedure(name, checked)


_ANY_NUMBER: dict[str, Callable[[list[object]], object]] = {
    "string-append": _string_append,
    "append": _append,
    "list": bounded,
    "+": _add,
    "=": _ordered("=", lambda left, right: left == right),
    "<": _ordered("<", lambda left, right: left < right),
    ">": _ordered(">", lambda left, right: left > right),
}
_COUNTED: dict[str, tuple[int, Callable[[list[object]], object]]] = {
    "not": (1, lambda values: not truth(values[0])),
    "equal?": (2, lambda values: same(values[0], values[1])),
    "eq?": (2, lambda values: same(values[0], values[1])),
    "eqv?": (2, lambda values: same(values[0], values[1])),
    "string=?": (2, lambda values: text(values[0], "string=?") == text(values[1], "string=?")),
    "string-length": (1, lambda values: len(text(values[0], "string-length"))),
    "cons": (2, lambda values: bounded((values[0], *sequence(values[1], "cons")))),
    "car": (1, lambda values: _first(values[0], "car")[0]),
    "cdr": (1, lambda values: _first(values[0], "cdr")[1:]),
    "length": (1, lambda values: len(sequence(values[0], "length"))),
    "reverse": (1, lambda values: sequence(values[0], "reverse")[::-1]),
    "member": (2, _member),
    "null?": (1, lambda values: values[0] == ()),
    "pair?": (1, lambda values: isinstance(values[0], tuple) and values[0] != ()),
    "list?": (1, lambda values: isinstance(values[0], tuple)),
    "string?": (1, lambda values: isinstance(values[0], str)),
    "symbol?": (1, lambda values: isinstance(values[0], Symbol)),
    "boolean?": (1, lambda values: isinstance(values[0], bool)),
    "number?": (1, lambda values: isinstance(values[0], (int, float)) and not isinstance(values[0], bool)),
}
PROCEDURES = {
    **{name: Procedure(name, call) for name, call in _ANY_NUMBER.items()},
    **{name: _exactly(count, name, call) for name, (count, call) in _COUNTED.items()},
}
