"""Every value of a TOML file is found on its own line."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.source_lines import locate

TEXT = '''# a comment with [brackets] and "quotes"
title = "x" # = [1]
a.b = 1

[network] # the table
allow = [ # items
  "one", "two # not a comment",
  'three "quoted"', """four
over two lines""", """five\\""" still""""",

  ["nested",
   "deep"],
]
"quoted key" = 1979-05-27T07:32:00Z
inline = { x = 1, "y" = [2,
  3] }
[[list]]
k = '\\'
[a . "c d"]
z = true'''


def test_each_thing_is_on_its_line():
    assert tomllib.loads(TEXT)["network"]["allow"][4] == 'five""" still""'
    lines = locate(TEXT)
    expected = {
        ("title",): 2,
        ("a",): 3,
        ("a", "b"): 3,
        ("network",): 5,
        ("network", "allow"): 6,
        ("network", "allow", 0): 7,
        ("network", "allow", 1): 7,
        ("network", "allow", 2): 8,
        ("network", "allow", 3): 8,
        ("network", "allow", 4): 9,
        ("network", "allow", 5): 11,
        ("network", "allow", 5, 0): 11,
        ("network", "allow", 5, 1): 12,
        ("network", "quoted key"): 14,
        ("network", "inline", "y", 1): 16,
        ("list", 0): 17,
        ("list", 0, "k"): 18,
        ("a", "c d"): 19,
        ("a", "c d", "z"): 20,
    }
    assert {key: lines.get(key) for key in expected} == expected


def test_carriage_returns_do_not_count_twice():
    assert locate("a = 1\r\nb = [\r\n 'x',\r\n]\r\n")[("b", 0)] == 3


def test_an_empty_text_has_no_lines():
    assert locate("") == {}


def quoted(text: str, style: int) -> str:
    if style == 0 and "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = "".join(f"\\U{ord(char):08x}" if char in '"\\' or not char.isprintable() else char for char in text)
    return f'"{escaped}"' if style < 2 else f'"""{escaped}"""'


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            st.integers(0, 2),
            st.sampled_from(["", "\n", " # ] \" '\n", "\n\n"]),
        ),
        max_size=12,
    )
)
def test_items_of_any_list_are_counted_in_step_with_tomllib(items):
    text, line, expected = "k = [", 1, []
    for item, style, gap in items:
        text += gap
        line += gap.count("\n")
        expected.append(line)
        text += quoted(item, style) + ","
    text += "]\nlast = 1\n"
    assert tomllib.loads(text)["k"] == [item for item, _, _ in items]
    lines = locate(text)
    assert [lines[("k", index)] for index in range(len(items))] == expected
    assert lines[("last",)] == line + 1
