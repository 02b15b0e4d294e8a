from __future__ import annotations

from configparser import Error, RawConfigParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.readers import (
    BadFile,
    Element,
    Line,
    npm_ini,
    pip_ini,
    table,
    tables,
    text_at,
    texts,
    toml,
    xml,
    yaml,
)

INI_PIECES = st.sampled_from(
    [
        "[global]",
        "[install]",
        "index-url",
        "=",
        " = ",
        ":",
        " ",
        "\t",
        "\n",
        "\n  ",
        "#",
        ";",
        "https://a.example",
        "x",
        '"',
        "\r",
    ]
)
DOCUMENTS = st.lists(INI_PIECES, max_size=40).map("".join)


def test_npms_lines() -> None:
    text = '; no\n# no\nregistry = https://a.example/ ; why\n"@b:registry"="https://b.example"\na[] = 1\nflag\n[s]\nx=y'
    assert list(npm_ini(text)) == [
        Line(("", "registry"), "https://a.example/", 3),
        Line(("", "@b:registry"), "https://b.example", 4),
        Line(("", "a"), "1", 5),
        Line(("s", "x"), "y", 8),
    ]


def test_pips_lines_go_on_where_they_are_indented() -> None:
    text = "[global]\nindex-url = https://a.example\nextra-index-url =\n    https://b.example\n    # no\n    https://c.example\n"
    assert list(pip_ini(text)) == [
        Line(("global", "index-url"), "https://a.example", 2),
        Line(("global", "extra-index-url"), "https://b.example https://c.example", 3),
    ]


@given(DOCUMENTS)
def test_pips_format_is_read_as_pip_reads_it(text: str) -> None:
    oracle = RawConfigParser()
    try:
        oracle.read_string(text)
    except Error:
        return  # pip would stop here
    ours = {line.keys: line.value.split() for line in pip_ini(text)}
    for section in oracle.sections():
        for key, value in oracle.items(section):
            if section != "DEFAULT" and value is not None:
                assert ours[section, key] == value.split()


@given(st.text() | DOCUMENTS)
def test_nothing_is_an_error_and_every_value_is_in_the_text(text: str) -> None:
    for line in npm_ini(text):
        assert line.value in text
    for line in pip_ini(text):
        assert all(word in text for word in line.value.split())


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
def test_a_hostile_toml_document_is_refused(text: str) -> None:
    with pytest.raises(BadFile):
        toml(text)


def test_values_of_other_types_are_not_there() -> None:
    found = toml('a.b = "c"\nd = 1\n[[e]]\nf = "g"\n')
    assert text_at(found, "a", "b") == "c"
    assert text_at(found, "d") == text_at(found, "a") == text_at(found, "a", "b", "c") == text_at(found, "x", "y") == ""
    assert table(found, "d") == table(found, "e") == {}
    assert list(tables(found["e"])) == [{"f": "g"}]
    assert list(tables(1)) == []
    assert list(texts(["a", 1, "b"])) == ["a", "b"]
    assert list(texts("a")) == ["a"]
    assert list(texts(None)) == []


@given(st.text())
def test_toml_raises_only_its_own_error(text: str) -> None:
    try:
        assert isinstance(toml(text), dict)
    except BadFile:
        pass


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'


def test_paths_texts_and_lines() -> None:
    first = b"<m><url> https://a.example </url><blocked>true</blocked></m>"
    data = b'<s xmlns="urn:x">\n' + first + b'<m:m xmlns:m="b"><m:url>c</m:url></m:m></s>'
    assert xml(data) == [
        Element(("s", "m", "url"), "https://a.example", 2, 2),
        Element(("s", "m", "blocked"), "true", 2, 2),
        Element(("s", "m", "url"), "c", 2, 5),
    ]


@pytest.mark.parametrize(
    "data",
    [
        BOMB,
        b"<a>" * 33 + b"</a>" * 33,
        b"<a><b></a>",
        b"",
        b'<?xml version="1.0" encoding="x-none"?><a/>',
        b"<a>&x;</a>",
        b"\xff\xfe<",
    ],
)
def test_a_hostile_xml_document_is_refused(data: bytes) -> None:
    with pytest.raises(BadFile):
        xml(data)


@given(st.binary() | st.text().map(lambda text: f"<a><url>{text}</url></a>".encode()))
def test_xml_raises_only_its_own_error(data: bytes) -> None:
    try:
        found = xml(data)
    except BadFile:
        return
    assert all(each.path and each.text for each in found)


YAML_PIECES = st.sampled_from(
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
    assert list(yaml(text)) == [
        Line(("npmRegistryServer",), "https://a.example", 2),
        Line(("npmScopes", "acme", "npmRegistryServer"), "https://b.example", 5),
        Line(("npmScopes", "acme", "other"), "c", 6),
        Line((":sources",), "https://d.example", 8),
        Line((":sources",), "https://e.example", 9),
        Line(("BUNDLE_MIRROR__HTTPS://X__EXAMPLE/",), "https://f.example", 10),
        Line(("BUNDLE_MIRROR__HTTPS://Y__EXAMPLE/",), "https://g.example", 11),
    ]


def test_what_is_no_plain_text_is_no_value() -> None:
    assert list(yaml("a: *b\nc: {d: e}\nf: |\ng: !x y\nh: [i]\n")) == []


def test_a_deep_document_is_cut() -> None:
    deepest = max(yaml("\n".join(" " * depth + "a: b" for depth in range(2000))), key=lambda line: len(line.keys))
    assert len(deepest.keys) == 8


@given(st.text() | st.lists(YAML_PIECES).map("".join))
def test_yaml_is_never_an_error_and_every_value_is_in_the_text(text: str) -> None:
    for line in yaml(text):
        assert line.value in text
        assert line.keys or "-" in text
