from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.yaml import Leaf, leaves

PIECES = st.sampled_from(
    [
        "npmRegistryServer",
        ":",
        ": ",
        "- ",
        "\n",
        "\n  ",
        '"',
        "'",
        "#",
        " #",
        "{",
        "&",
        "https://a.example",
        "x",
        "|",
        "---",
    ]
)


def test_maps_lists_and_quotes() -> None:
    text = """\
# settings
npmRegistryServer: "https://a.example" # mine
npmScopes:
  acme:
    npmRegistryServer: https://b.example
    other: 'c'
:sources:
- https://d.example
- "https://e.example"
"BUNDLE_MIRROR__HTTPS://X__EXAMPLE/": https://f.example
BUNDLE_MIRROR__HTTPS://Y__EXAMPLE/: https://g.example
"""
    assert list(leaves(text)) == [
        Leaf(("npmRegistryServer",), "https://a.example", 2),
        Leaf(("npmScopes", "acme", "npmRegistryServer"), "https://b.example", 5),
        Leaf(("npmScopes", "acme", "other"), "c", 6),
        Leaf((":sources",), "https://d.example", 8),
        Leaf((":sources",), "https://e.example", 9),
        Leaf(("BUNDLE_MIRROR__HTTPS://X__EXAMPLE/",), "https://f.example", 10),
        Leaf(("BUNDLE_MIRROR__HTTPS://Y__EXAMPLE/",), "https://g.example", 11),
    ]


def test_what_is_no_plain_word_is_no_value() -> None:
    assert list(leaves("a: *b\nc: {d: e}\nf: |\ng: !x y\nh: [i]\n")) == []


def test_a_deep_document_is_cut() -> None:
    deepest = max(leaves("\n".join(" " * depth + "a: b" for depth in range(2000))), key=lambda leaf: len(leaf.path))
    assert len(deepest.path) == 8


@given(st.text() | st.lists(PIECES).map("".join))
def test_nothing_is_an_error_and_every_value_is_in_the_text(text: str) -> None:
    for leaf in leaves(text):
        assert leaf.value in text
        assert leaf.path or "-" in text
