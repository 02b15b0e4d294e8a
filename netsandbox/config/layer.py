"""The checked settings of one file, each with its lines."""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

Place = tuple[str, str]  # table and key


@frozen
class Setting:
    """A checked value; `items` are its parts as they were written, with `FILE:LINE` each: one part if it is no list.
    `empties`: where it was set to an empty list, which has no part and still means something."""

    value: object
    items: tuple[tuple[object, str], ...]
    empties: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[tuple[object, str], ...]:
        """Everything that was written, each with its origin."""
        return (*self.items, *(([], place) for place in self.empties))

    @property
    def origin(self) -> str:
        """Of what was written first."""
        return self.written[0][1]


@frozen
class Layer:
    """`trusted`: whether it may open anything (`Key.widens`)."""

    path: str
    values: Mapping[Place, Setting]
    trusted: bool = True
