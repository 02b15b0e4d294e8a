"""What a key of a configuration file is: its reader, its kind of value, and which of its values open something."""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.policy import LOCALHOST, OFFLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.config.located_value import Entry

TEXT: dict[str, object] = {"type": "string", "minLength": 1}
TEXTS: dict[str, object] = {"type": "array", "items": TEXT}
TRUTH: dict[str, object] = {"type": "boolean"}
PORT: dict[str, object] = {"type": "integer", "minimum": 1, "maximum": 65535}
PORTS: dict[str, object] = {"type": "array", "items": PORT}


def always(value: object) -> bool:
    """Whatever it says, it could open something."""
    return True


def never(value: object) -> bool:
    """Whatever it says, it opens nothing."""
    return False


@frozen
class Key:
    """One key of a file.

    `field`: the field of `FileSettings`; '' where the value is used up before. `widens(value)`: whether a project's
    file needs the user's trust to set it; an empty list opens nothing. `adds`: the lists of several files are joined;
    otherwise the highest file's value is taken. `stacks`: each file's value is kept, with its rank. `options`: those of
    `run` that set the same. `unsaid`: the default in words, where the field's own default does not tell it.
    """

    field: str
    read: Callable[[Entry], object]
    about: str
    schema: dict[str, object]
    widens: Callable[[object], bool]
    adds: bool = False
    stacks: bool = False
    means: tuple[str, str] | None = None  # another spelling of that table's key
    options: tuple[str, ...] = ()
    unsaid: str = ""


HARMLESS_PROFILES = ("base", OFFLINE, LOCALHOST)


def names_opening(profiles: object) -> bool:
    """Whether any of them could open something."""
    return not isinstance(profiles, tuple) or any(name not in HARMLESS_PROFILES for name, _ in profiles)


def leaves_the_user_out(inherits: object) -> bool:
    """What the user's own file forbids would no longer hold."""
    return not inherits


def opens_the_network(mode: object) -> bool:
    """Whether anything could leave."""
    return mode not in (OFFLINE, LOCALHOST)
