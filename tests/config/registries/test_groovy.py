"""Gradle's scripts are programs: only what is written out counts, and where a repository is declared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.groovy import BUILT_IN, Repository, repositories

A = "https://a.example/m2"


def urls(text: str) -> list[str]:
    return [found.url for found in repositories(text) if found.url]


@pytest.mark.parametrize(
    "text",
    [
        f'repositories {{ maven {{ url "{A}" }} }}',
        f"repositories {{ maven {{ url '{A}' }} }}",
        f'repositories {{ maven {{ url = "{A}" }} }}',
        f'repositories {{ maven {{ url = uri("{A}") }} }}',
        f'repositories {{ maven {{ url uri("{A}") }} }}',
        f'repositories {{ maven {{ setUrl("{A}") }} }}',
        f'repositories {{ maven {{ name = "x"; url = uri("{A}") }} }}',
        f'repositories {{ maven {{ credentials {{ username = "u" }}\n url "{A}" }} }}',
        f'repositories {{ ivy {{ url "{A}" }} }}',
        f'repositories {{ maven("{A}") }}',
        f'repositories {{ maven(url = "{A}") }}',
        f'repositories {{ maven(uri("{A}")) {{ name = "x" }} }}',
        f'repositories {{ mavenCentral(); maven("{A}") }}',
        f'pluginManagement {{ repositories {{ maven {{ url "{A}" }} }} }}',
        f'allprojects {{ repositories {{ /* {{ */ maven {{ // }}\n url "{A}" }} }} }}',
    ],
)
def test_a_repository_that_is_written_out_is_found(text: str) -> None:
    assert urls(text) == [A]


@pytest.mark.parametrize(
    "text",
    [
        f'maven {{ url "{A}" }}',
        f'repositories {{ // maven {{ url "{A}" }}\n }}',
        f'repositories {{ /* maven {{ url "{A}" }} */ }}',
        f'repositories {{ maven {{ url "{A}',
        f'repositories {{ maven {{ url """{A}""" }} }}',
        f'repositories {{ maven {{ name "{A}" }} }}',
        f'repositories {{ maven {{ url other("x") + "{A}" }} }}',
        f'repositories {{ maven {{ url base + "{A}" }} }}',
        'repositories { maven { url "https://$host.example" } }',
        'repositories { maven { url "https://${host}.example" } }',
        'repositories { maven { url "https://\\u0061.example" } }',
        'repositories { maven { url "http://a.example" } }',
        'repositories { maven { url "file:///m2" } }',
        f'publishing {{ repositories {{ maven {{ url "{A}" }} }} }}',
        f'publishing {{ publications {{ pom {{ url = "{A}" }} }} }}',
        f'repositories {{ maven = "{A}" }}',
        f'repositories {{ maven "{A}" }}',
        f"repositories {{ maven'{A}' }}",
        f'repositories {{ flatDir {{ url "{A}" }} }}',
    ],
)
def test_what_is_computed_or_stands_elsewhere_is_not(text: str) -> None:
    assert urls(text) == []


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_is_built_into_gradle_is_told_apart(name: str) -> None:
    assert repositories(f"repositories {{\n\n {name}()\n}}") == [Repository(3, name=name)]
    assert repositories(f"publishing {{ repositories {{ {name}() }} }} {name}()") == []


def test_each_has_its_line() -> None:
    text = f'/* a\nb */ repositories {{\n maven("{A}")\n maven {{\n url = uri("{A}/b") }} }}'
    assert repositories(text) == [Repository(3, url=A), Repository(5, url=f"{A}/b")]


WORDS = [
    "repositories",
    "maven",
    "url",
    "uri",
    " ",
    "(",
    ")",
    "{",
    "}",
    "=",
    "'",
    '"',
    '"""',
    "/*",
    "*/",
    "//",
    "\n",
    "$",
    "\\",
]


@given(st.lists(st.sampled_from(["repositories", "maven", "url", "{", "}", "(", ")", "=", f'"{A}"'])).map(" ".join))
def test_any_order_of_words_is_read(text: str) -> None:
    assert set(urls(f"repositories {{ {text}")) <= {A}


@given(st.lists(st.sampled_from([*WORDS, f'"{A}"', A])).map("".join) | st.text())
def test_any_text_is_read_and_each_address_is_in_its_line(text: str) -> None:
    lines = text.split("\n")
    for found in repositories(text):
        assert not found.url or f"{found.url}" in lines[found.number - 1]


@pytest.mark.parametrize("piece", ['\\"', "\\'", '"', "/*", '"""', "{", f'"{A}" ', "url(", "repositories{maven{"])
def test_a_hostile_script_costs_no_more_than_its_length(piece: str) -> None:
    """A reader that looks back or ahead too far would take hours for this."""
    assert repositories('"' + piece * ((1 << 20) // len(piece))) is not None
