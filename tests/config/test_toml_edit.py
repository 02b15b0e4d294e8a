"""Lists grow, and nothing else of the text changes."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config import toml_edit
from netsandbox.config.toml_edit import missing, with_items, written

ITEMS = [("a.test", ""), ("*.b.test", "5 names")]
NEW = '[network]\nallow_domains = [\n    "a.test",\n    "*.b.test",  # 5 names\n]\n'
CASES = {
    "": NEW,
    "# mine\n[audit]\nlog = 'x'": f"# mine\n[audit]\nlog = 'x'\n\n{NEW}",
    "# mine\n": f"# mine\n\n{NEW}",
    "[network] # here\nmode = 'filtered' # why\n": (
        '[network] # here\nallow_domains = [\n    "a.test",\n    "*.b.test",  # 5 names\n]\nmode = \'filtered\' # why\n'
    ),
    "[network]": NEW,
    "[network]\nallow_domains = []": '[network]\nallow_domains = ["a.test", "*.b.test"]',
    "[network]\nallow_domains = ['x.test'] # c": ('[network]\nallow_domains = [\'x.test\', "a.test", "*.b.test"] # c'),
    "[network]\nallow_domains = ['x.test', ]\n": '[network]\nallow_domains = [\'x.test\', "a.test", "*.b.test", ]\n',
    "[network]\nallow_domains = [\n  'x.test', # one, two\n  # nothing here\n]\nmode = 'filtered'\n": (
        "[network]\nallow_domains = [\n  'x.test', # one, two\n  # nothing here\n"
        '  "a.test",\n  "*.b.test",  # 5 names\n]\nmode = \'filtered\'\n'
    ),
    "[network]\nallow_domains = [\n\t'x.test' # last, so far\n]\n": (
        '[network]\nallow_domains = [\n\t\'x.test\', # last, so far\n\t"a.test",\n\t"*.b.test",  # 5 names\n]\n'
    ),
    "[network]\r\nallow_domains = [\r\n    'x.test',\r\n]\r\n": (
        '[network]\r\nallow_domains = [\r\n    \'x.test\',\r\n    "a.test",\r\n    "*.b.test",  # 5 names\r\n]\r\n'
    ),
    "[network]\nallow_domains = [\n    # none\n]\n": (
        '[network]\nallow_domains = [\n    # none\n    "a.test",\n    "*.b.test",  # 5 names\n]\n'
    ),
    "network.allow_domains = ['x.test']\n": 'network.allow_domains = [\'x.test\', "a.test", "*.b.test"]\n',
    "network = { allow_domains = ['x.test'], mode = 'filtered' }\n": (
        "network = { allow_domains = ['x.test', \"a.test\", \"*.b.test\"], mode = 'filtered' }\n"
    ),
}


@pytest.mark.parametrize(("text", "result"), CASES.items())
def test_items_are_put_where_a_person_would(text: str, result: str) -> None:
    assert with_items(text, "network", "allow_domains", ITEMS) == result


@pytest.mark.parametrize(
    "text",
    [
        "network = { mode = 'filtered' }\n",
        "network.mode = 'filtered'\n",
        "[network]\nallow_domains = 'x'\n",
        "network = 3\n",
        "[[network]]\nmode = 'filtered'\n",
        "[network\n",
    ],
)
def test_what_cannot_be_done_safely_is_not_done(text: str) -> None:
    assert with_items(text, "network", "allow_domains", ITEMS) is None


def test_an_empty_list_is_made_once() -> None:
    for text, result in (
        ("", "[filesystem]\nallow_write = []\n"),
        ("[filesystem]\n", "[filesystem]\nallow_write = []\n"),
    ):
        assert with_items(text, "filesystem", "allow_write", []) == result
        assert with_items(result, "filesystem", "allow_write", []) == result
    assert with_items("filesystem = 3\n", "filesystem", "allow_write", []) is None


@pytest.mark.parametrize(
    "text", ['"', "\\", "\x7f", "\x1b[2J", "\n", "\u202e", "\U0001f512", "\u2028", "\x85", "~/caf\u00e9/"]
)
def test_whatever_an_item_holds_is_written_in_printable_ascii(text: str) -> None:
    for before in ("", "[filesystem]\nallow_write = []\n", "[filesystem]\nallow_write = [\n]\n"):
        edited = with_items(before, "filesystem", "allow_write", [(text, "")])
        assert edited is not None
        assert tomllib.loads(edited)["filesystem"]["allow_write"] == [text]
        assert edited.replace("\n", "").isascii()
        assert edited.replace("\n", "").isprintable()


@pytest.mark.parametrize("lie", ["[network]\nallow_domains = ['a.test', '*.b.test']\nmode = 'online'\n", "[network\n"])
def test_an_edit_that_changes_more_is_thrown_away(monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    monkeypatch.setattr(toml_edit, "_edited", lambda *arguments: lie)
    assert with_items("[network]\n", "network", "allow_domains", ITEMS) is None


def test_what_is_there_already_is_not_added() -> None:
    assert missing("[network]\nallow_domains = ['a.test']\n", "network", "allow_domains", ITEMS) == ITEMS[1:]
    assert missing("", "network", "allow_domains", ITEMS) == ITEMS
    assert missing("network = 1", "network", "allow_domains", ITEMS) == ITEMS


def test_the_text_to_paste_is_a_table_of_its_own() -> None:
    assert written("network", "allow_domains", ITEMS) == NEW


QUOTED = st.sampled_from(["'a, ] # b'", '"x]\\",["', "'''m\n],'''", '"""t\n#],"""', "'p'"])
SPACE = st.sampled_from(["", " ", "\n", " # c, ]\n", "\n\t", "\n  # [x]\n  ", "\r\n"])


@st.composite
def lists(draw: st.DrawFn) -> str:
    count = draw(st.integers(0, 3))
    parts = [draw(SPACE)]
    for number in range(count):
        comma = "," if number < count - 1 or draw(st.booleans()) else ""
        parts += [draw(QUOTED), draw(SPACE), comma, draw(SPACE)]
    return "[" + "".join(parts) + "]"


@given(
    st.sampled_from(["", "# c\n", "top = 1\n", "[audit]\nlog = 'x'\n"]),
    st.sampled_from(["[network]\n", "[network] # [x]\n", "[ network ]\n", "['network']\n"]),
    st.none() | lists(),
    st.sampled_from(["", "mode = 'filtered'\n", "# last", "[localhost]\nbase = 1\n"]),
    st.lists(st.tuples(st.text('abc.*-"\\#]\u00e9', min_size=1, max_size=8), st.sampled_from(["", "why"])), max_size=3),
)
def test_whatever_the_text_only_the_list_grows(
    head: str, table: str, given_list: str | None, tail: str, items: list[tuple[str, str]]
) -> None:
    text = head + table + (f"allow_domains = {given_list} # c\n" if given_list is not None else "") + tail
    before = tomllib.loads(text)
    edited = with_items(text, "network", "allow_domains", items)
    if edited is None:
        assert given_list is None  # a header in an unusual spelling is left to the user
        assert table in ("[ network ]\n", "['network']\n")
        return
    after = tomllib.loads(edited)
    assert after["network"].pop("allow_domains", []) == [
        *before["network"].pop("allow_domains", []),
        *(item for item, _ in items),
    ]
    assert after == before
    rest = iter(edited)
    assert all(char in rest for char in text)  # nothing was taken away


@given(st.text("[network]allow_domains='\"#,\n =x{}.", max_size=60))
def test_no_text_makes_it_raise_or_lose_anything(text: str) -> None:
    edited = with_items(text, "network", "allow_domains", ITEMS)
    if edited is not None:
        assert len(edited) > len(text)
