from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.xml import BadXml, Element, elements

BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'


def test_paths_texts_and_lines() -> None:
    first = b"<m><url> https://a.example </url><blocked>true</blocked></m>"
    data = b'<s xmlns="urn:x">\n' + first + b'<m:m xmlns:m="b"><m:url>c</m:url></m:m></s>'
    assert elements(data) == [
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
def test_a_hostile_document_is_refused(data: bytes) -> None:
    with pytest.raises(BadXml):
        elements(data)


@given(st.binary() | st.text().map(lambda text: f"<a><url>{text}</url></a>".encode()))
def test_nothing_but_its_own_error_comes_out(data: bytes) -> None:
    try:
        found = elements(data)
    except BadXml:
        return
    assert all(each.path and each.text for each in found)
