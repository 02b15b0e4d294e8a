"""The checked settings of one file, each with its lines."""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

KeyPath = tuple[str, str]  # table and key


@frozen
class Setting:
    """A checked value. `items` has its parts as written, each with `FILE:LINE`; a value that is not a list is one part.
    `empties`: the origins of empty lists, which have no part but still have a meaning."""

    value: object
    items: tuple[tuple[object, str], ...]
    empties: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[tuple[object, str], ...]:
        """Every written value, with its origin."""
        return (*self.items, *(([], place) for place in self.empties))

    @property
    def origin(self) -> str:
        """Of what was written first."""
        return self.written[0][1]


@frozen
class Layer:
    """`trusted`: whether the file may widen the policy (`Key.widens`). `bounds`: whether no higher layer may have wider
    modes: the organisation's file."""

    path: str
    values: Mapping[KeyPath, Setting]
    trusted: bool = True
    bounds: bool = False


def joined(lower: Setting | None, higher: Setting) -> Setting:
    """The values of two lists, one behind the other."""
    if lower is None:
        return higher
    first: Any = lower.value
    second: Any = higher.value
    return Setting((*first, *second), (*lower.items, *higher.items), (*lower.empties, *higher.empties))
