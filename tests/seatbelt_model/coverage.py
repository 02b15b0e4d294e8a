"""Whether one filter matches at least everything that another does. Pure.

The answer True is certain, False means "not shown": enough to find rules that contradict one another, too little to
prove that none do.
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile.operations import covers as covers_operation
from tests.seatbelt_model.filters import (
    ANY,
    LITERAL,
    PREFIX,
    SUBPATH,
    All,
    End,
    Filter,
    Name,
    Not,
    Path,
    Some,
    is_below,
)
from tests.seatbelt_model.profile import Rule


def covers(wide: Filter | None, narrow: Filter | None) -> bool:
    """None is not a filter, which matches everything."""
    if wide is None:
        return True
    if narrow is None:
        return False
    if isinstance(narrow, Some):
        return all(covers(wide, part) for part in narrow.parts)
    if isinstance(wide, All):
        return all(covers(part, narrow) for part in wide.parts)
    if isinstance(wide, Some):
        return any(covers(part, narrow) for part in wide.parts)
    if isinstance(narrow, All):
        return any(covers(wide, part) for part in narrow.parts)
    if isinstance(wide, Not) and isinstance(narrow, Not):
        return covers(narrow.parts[0], wide.parts[0])
    return _covers_plain(wide, narrow)


def _covers_plain(wide: Filter, narrow: Filter) -> bool:
    if isinstance(wide, Path) and isinstance(narrow, Path):
        return _covers_path(wide, narrow)
    if isinstance(wide, End) and isinstance(narrow, End):
        return _covers_end(wide, narrow)
    if isinstance(wide, Name) and isinstance(narrow, Name) and wide.key == narrow.key:
        return _covers_name(wide, narrow)
    return wide == narrow


def _covers_path(wide: Path, narrow: Path) -> bool:
    if wide.how == SUBPATH:
        return wide.value == "/" or (narrow.how in (LITERAL, SUBPATH) and is_below(narrow.value, wide.value))
    if wide.how == PREFIX:
        return narrow.how in (LITERAL, SUBPATH, PREFIX) and narrow.value.startswith(wide.value)
    return wide.how == narrow.how and wide.value == narrow.value


def _covers_end(wide: End, narrow: End) -> bool:
    protocol = wide.protocol in ("ip", narrow.protocol, narrow.protocol.rstrip("46"))
    return (
        wide.side == narrow.side
        and protocol
        and wide.host in (ANY, narrow.host)
        and (wide.port is None or wide.port == narrow.port)
    )


def _covers_name(wide: Name, narrow: Name) -> bool:
    if wide.value is None:
        return True
    if wide.how == PREFIX:
        return narrow.how in (LITERAL, PREFIX) and narrow.value is not None and narrow.value.startswith(wide.value)
    return wide.how == narrow.how and wide.value == narrow.value


def disjoint(left: Filter, right: Filter) -> bool:
    """No request can match both, for certain."""
    if isinstance(left, Path) and isinstance(right, Path):
        kinds = (LITERAL, SUBPATH)
        return left.how in kinds and right.how in kinds and not (covers(left, right) or covers(right, left))
    if isinstance(left, Name) and isinstance(right, Name):
        exact = left.how == right.how == LITERAL and None not in (left.value, right.value)
        return exact and left.key == right.key and left.value != right.value
    return False


def speaks_for(later: Rule, operations: tuple[str, ...]) -> bool:
    """Each of *operations* is one of the rule's, or below one."""
    return all(any(covers_operation(upper, lower) for upper in later.operations) for lower in operations)
