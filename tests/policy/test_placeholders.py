"""Placeholders of secrets."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.placeholders import MAX_LENGTH, fault_of, placeholder

VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=200).filter(
    lambda text: fault_of(text.encode()) is None
)


def kinds(text: str) -> str:
    return "".join(
        "a" if each.islower() else "A" if each.isupper() else "0" if each.isdigit() else each for each in text
    )


@given(VALUES)
def test_it_has_the_same_shape_and_is_another_text(value: str) -> None:
    made = placeholder(value, os.urandom)
    assert made != value
    assert kinds(made) == kinds(value)


@pytest.mark.parametrize(
    "prefix", ["ghp_", "github_pat_", "sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-", "npm_", "AIza", "glpat-"]
)
def test_a_known_prefix_is_kept(prefix: str) -> None:
    value = prefix + "A1b2" * 5
    made = {placeholder(value, os.urandom) for _ in range(20)}
    assert len(made) == 20
    assert all(each.startswith(prefix) for each in made)


def test_a_prefix_that_leaves_too_little_is_not_kept() -> None:
    made = [placeholder("sk-ant-1", os.urandom) for _ in range(20)]
    assert not all(each.startswith("sk-ant-") for each in made)


def test_no_letter_is_favoured() -> None:
    numbers = iter([255, 254, 250, 249] + [0] * 20)
    assert placeholder("12345678", lambda count: bytes(next(numbers) for _ in range(count))) == "90000000"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"", "is empty"),
        (b"short", "fewer than 8"),
        (b"----------1", "fewer than 8"),
        (b"two words and more", "no header carries"),
        (b"line-ends-here\n", "no header carries"),
        ("päßwörter-123456".encode(), "no header carries"),
        (b"a" * (MAX_LENGTH + 1), "longer than"),
        (b"a" * MAX_LENGTH, ""),
        (b"12345678", ""),
    ],
)
def test_what_can_be_a_secret(value: bytes, fault: str) -> None:
    assert fault in (fault_of(value) or "")
    assert bool(fault) == (fault_of(value) is not None)
