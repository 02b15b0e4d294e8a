"""One setting as somebody said it, and whose word counts.

The stronger word comes first. A project's word may hide the user's, and must not: it is not believed until the user
says so. So where the project wins, the strongest word that is not the project's is kept beside it.
"""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


@frozen
class Setting:
    """A value of a setting. The text may hold credentials: it is never stored, shown or logged."""

    key: str
    text: str
    origin: str
    project: bool


def settle(said: Iterable[Setting]) -> list[Setting]:
    """For each key the first word, and the first that is not the project's."""
    settled: dict[tuple[str, bool], Setting] = {}
    for each in said:
        if (each.key, False) not in settled:
            settled.setdefault((each.key, each.project), each)
    return list(settled.values())


def believed(said: Iterable[Setting], *keys: str) -> bool:
    """Whether anyone but the project says something about one of *keys*."""
    return any(each.key in keys and not each.project for each in said)


def split(said: Iterable[Setting], separators: str = "") -> list[Setting]:
    """Each word of each text on its own; words end at blank space and at *separators*."""
    table = str.maketrans(separators, " " * len(separators))
    return [
        Setting(each.key, word, each.origin, each.project)
        for each in said
        for word in each.text.translate(table).split()
    ]
