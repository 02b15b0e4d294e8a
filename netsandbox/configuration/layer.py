"""What one file says, checked, each value with the lines it stands on."""

from __future__ import annotations

from netsandbox.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

Place = tuple[str, str]  # table and key


@record
class Said:
    """A checked value; `items` are its parts as they were written, with `FILE:LINE` each: one part if it is no list."""

    value: object
    items: tuple[tuple[object, str], ...]

    @property
    def origin(self) -> str:
        """Of its first part: what opens anything has one."""
        return self.items[0][1]


@record
class Layer:
    """`trusted`: whether it may open anything (`Key.widens`)."""

    path: str
    values: Mapping[Place, Said]
    trusted: bool = True
