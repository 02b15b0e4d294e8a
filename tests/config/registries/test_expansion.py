from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.expansion import Unexpanded, expand

VALUES = {"HOST": "a.example", "URL": "https://a.example", "SECRET": "hunter2", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("https://${HOST}/x", "https://a.example/x"),
        ("${URL}/${HOST}", "https://a.example/a.example"),
        ("${NONE?}x", "x"),
        ("${NONE-y}x", "yx"),
        ("${NONE:-y}x", "yx"),
        ("${EMPTY:-y}x", "yx"),
        ("${EMPTY-y}x", "x"),
        ("${open", "${open"),
        ("$HOST", "$HOST"),
    ],
)
def test_the_users_own_files_may_use_variables(text: str, expanded: str) -> None:
    assert expand(text, VALUES.get, project=False) == expanded


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(Unexpanded, match="NONE"):
        expand("https://${NONE}/", VALUES.get, project=False)


@pytest.mark.parametrize("text", ["https://${SECRET}.evil.example/", "${SECRET}", "https://x${URL}", "${URL}${SECRET}"])
def test_a_project_cannot_spell_a_secret_into_a_host(text: str) -> None:
    with pytest.raises(Unexpanded) as refusal:
        expand(text, VALUES.get, project=True)
    assert "hunter2" not in str(refusal.value)


def test_a_project_may_let_the_user_name_the_registry() -> None:
    assert expand("${URL}/npm/", VALUES.get, project=True) == "https://a.example/npm/"


def test_values_do_not_grow_without_end() -> None:
    with pytest.raises(Unexpanded, match="too long"):
        expand("${LONG}" * 3, {"LONG": "x" * 3000}.get, project=False)


@given(
    st.lists(st.sampled_from(["${", "}", "URL", "SECRET", "-", ":-", "?", "https://", "x"])).map("".join), st.booleans()
)
def test_nothing_but_its_own_error_comes_out(text: str, project: bool) -> None:
    try:
        expanded = expand(text, VALUES.get, project=project)
    except Unexpanded:
        return
    assert not (project and "hunter2" in expanded)
