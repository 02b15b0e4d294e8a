"""`@record` is a frozen dataclass that costs nothing to import: the same construction, equality, hash and repr."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.frozen import copy_with, frozen


@frozen
class Point:
    x: int
    y: int = 0
    name: str | None = None


@dataclass(frozen=True)
class Model:
    x: int
    y: int = 0
    name: str | None = None


@given(st.integers(), st.integers(), st.none() | st.text(max_size=5))
def test_it_behaves_as_the_dataclass_of_the_same_fields(x: int, y: int, name: str | None) -> None:
    mine, model = Point(x, y, name), Model(x, y, name)
    assert (mine.x, mine.y, mine.name) == (model.x, model.y, model.name)
    assert repr(mine) == repr(model).replace("Model", "Point")
    assert mine == Point(x=x, y=y, name=name)
    assert hash(mine) == hash(Point(x, name=name, y=y))
    assert mine != Point(x + 1, y, name)


def test_defaults_stand_in_for_what_is_not_given() -> None:
    assert Point(1) == Point(1, 0, None)
    assert Point(1, name="a") == Point(1, 0, "a")
    assert [list(vars(Point(*given))) for given in ((1,), (1, 2), (1, 2, "a"))] == [["x", "y", "name"]] * 3
    assert list(vars(Point(name="a", x=1))) == ["x", "y", "name"]


def test_a_copy_has_the_fields_that_were_replaced_and_leaves_the_first_as_it_was() -> None:
    first = Point(1, 2, "a")
    assert copy_with(first, y=3) == Point(1, 3, "a")
    assert first == Point(1, 2, "a")
    with pytest.raises(TypeError, match="unknown"):
        copy_with(first, z=3)


def test_a_value_does_not_change() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        Point(1).x = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1, 2, "a", 4), {}), ((1,), {"z": 2}), ((), {"y": 1}), ((1, 2, "a"), {"z": 1})]
)
def test_what_a_dataclass_refuses_is_refused(positional: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Point(*positional, **named)  # type: ignore[arg-type]


def test_records_of_another_class_are_not_equal_and_can_be_matched() -> None:
    @frozen
    class Other:
        x: int
        y: int = 0
        name: str | None = None

    assert Point(1) != Other(1)
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
