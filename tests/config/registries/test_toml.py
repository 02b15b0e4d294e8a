from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.toml import BadToml, document, table, tables, word, words


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "a = " + "[" * 100_000,
        "a" + ".a" * 200_000 + " = 1",
        "a = " + "9" * 10_000,
        "[a]\n[a]\n",
        "a = {b = " * 5000,
    ],
    ids=["half", "deep list", "long key", "long number", "twice", "deep table"],
)
def test_a_hostile_document_is_refused(text: str) -> None:
    with pytest.raises(BadToml):
        document(text)


def test_values_of_other_types_are_not_there() -> None:
    found = document('a.b = "c"\nd = 1\n[[e]]\nf = "g"\n')
    assert word(found, "a", "b") == "c"
    assert word(found, "d") == word(found, "a") == word(found, "a", "b", "c") == word(found, "x", "y") == ""
    assert table(found, "d") == table(found, "e") == {}
    assert list(tables(found["e"])) == [{"f": "g"}]
    assert list(tables(1)) == []
    assert list(words(["a", 1, "b"])) == ["a", "b"]
    assert list(words("a")) == ["a"]
    assert list(words(None)) == []


@given(st.text())
def test_nothing_but_its_own_error_comes_out(text: str) -> None:
    try:
        assert isinstance(document(text), dict)
    except BadToml:
        pass
