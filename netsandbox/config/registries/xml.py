"""XML of strangers as paths and texts (pure). A document type is refused: settings have none, and bombs need one."""

from __future__ import annotations

from netsandbox.frozen import frozen

_DEEPEST = 32


class BadXml(ValueError):
    """Not a document that is read. The message is one line."""


@frozen
class Element:
    """An element that holds text only: its path without name spaces, its text, and where it ends."""

    path: tuple[str, ...]
    text: str
    number: int
    parent: int  # the same for the children of one element


def elements(data: bytes) -> list[Element]:
    """The elements of *data* with text in them, in the order in which they end."""
    from xml.parsers import expat

    found: list[Element] = []
    path: list[str] = []
    opening = 0
    parents = [0]
    texts: list[str] = []

    def opened(name: str, _: dict[str, str]) -> None:
        nonlocal opening
        opening += 1
        parents.append(opening)
        path.append(name.rpartition(":")[2])
        texts.clear()
        if len(path) > _DEEPEST:
            raise BadXml("is nested too deeply")

    def closed(_: str) -> None:
        text = "".join(texts).strip()
        parents.pop()
        if text:
            found.append(Element(tuple(path), text, parser.CurrentLineNumber, parents[-1]))
        path.pop()
        texts.clear()

    def refused(*_: object) -> None:
        raise BadXml("has a document type")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refused
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = texts.append
    try:
        parser.Parse(data, True)  # noqa: FBT003 (its second argument has no name)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise error if isinstance(error, BadXml) else BadXml("is no valid XML") from None
    return found
