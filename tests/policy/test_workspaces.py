"""Workspaces: the manifests of npm, Cargo and uv as their tools read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.shown_files import MANIFESTS
from netsandbox.policy.workspaces import is_member, is_root


@pytest.mark.parametrize(
    ("patterns", "member", "expected"),
    [
        (["packages/*"], "packages/a", True),
        (["./packages/*/"], "packages/a", True),
        (["packages/*"], "packages/a/src/deep", True),
        (["packages/*"], "packages", False),
        (["packages/*"], "apps/a", False),
        (["packages/**"], "packages/x/y", True),
        (["**/lib"], "a/b/lib", True),
        (["**/lib"], "a/b/bin", False),
        (["apps/web"], "apps/web", True),
        (["apps/web"], "apps/webs", False),
        (["packages/*", "!packages/old"], "packages/old", False),
        (["packages/*", "!packages/old"], "packages/old/src", False),
        (["packages/*", "!packages/old"], "packages/new", True),
        (["{apps,libs}/*"], "apps/a", True),
        (["../*"], "packages/a", False),
        ([], "packages/a", False),
    ],
)
def test_members_are_those_that_a_pattern_fits(patterns: list[str], member: str, *, expected: bool) -> None:
    assert is_member(member, patterns) is expected
    for listed in (patterns, {"packages": patterns}):
        assert is_root("package.json", json.dumps({"name": "x", "workspaces": listed}), member) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"workspaces": 3}',
        '{"workspaces": {"nohoist": ["*"]}}',
        '{"workspaces": [3, null]}',
        '"workspaces"',
    ],
)
def test_what_lists_no_members_is_no_root(text: str) -> None:
    assert not is_root("package.json", text, "a")


@pytest.mark.parametrize(
    ("manifest", "text", "expected"),
    [
        ("Cargo.toml", '[workspace]\nmembers = ["a"]\n', True),
        ("Cargo.toml", "[workspace.dependencies]\n", True),
        ("Cargo.toml", '[package]\nname = "workspace"\n', False),
        ("Cargo.toml", "# [workspace]\n", False),
        ("pyproject.toml", '[project]\nname = "x"\n\n[tool.uv.workspace]\nmembers = ["packages/*"]\n', True),
        ("pyproject.toml", "[tool.uv]\n", False),
        ("pyproject.toml", "[workspace]\n", False),
    ],
)
def test_a_table_makes_a_root_of_cargo_and_uv(manifest: str, text: str, *, expected: bool) -> None:
    assert is_root(manifest, text, "crates/a") is expected


NAMES = st.text("ab*!{}./", min_size=1, max_size=12)


@given(st.sampled_from(MANIFESTS), st.text(max_size=60), NAMES)
def test_any_text_has_an_answer(manifest: str, text: str, member: str) -> None:
    assert is_root(manifest, text, member) in (True, False)


@given(
    st.lists(st.text("ab*", min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=4),
)
def test_what_a_pattern_fits_stays_fitted_with_stars_around(parts: list[str], names: list[str]) -> None:
    member, pattern = "/".join(names), "/".join(parts)
    if is_member(member, [pattern]):
        assert is_member(member, ["**"])
        assert is_member(f"x/{member}", [f"**/{pattern}"])
        assert not is_member(member, [pattern, "!**"])
