"""What a run wrote, as the smallest `allow_write`; and which secrets it tried, as a remark. Pure.

A secret is never proposed as a change: whoever wants the command to have one says so with a hand of their own.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.learn.path_folding import MAKE, PathProposal, fold
from netsandbox.policy.file_rules import is_within
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox.learn.path_folding import Ground
    from netsandbox.learn.usage import Usage

MAX_PATHS = 200
SECRETS = (
    "it tried to open these, and saw nothing: they hold secrets. If it cannot do without one, add it to [filesystem]"
    " yourself; whatever runs in the session can then read it"
)
DENIED = "it tried to open these, which your deny_read hides"
LEFT = "written, but too much would be opened by a rule for it; if it needs one, choose a path for allow_write yourself"
MORE = "it may have written at more paths than are recorded: then it needs folders of your choice in allow_write"


@frozen
class PresentFiles:
    """What holds already, by real paths. `base` is the folder of the file that is written to; `allowed` is what files
    and profiles let it write, None where writing is open; `denied` is what the user hides; `exists` tells, once the
    command has ended, whether something is left at a path."""

    ground: Ground
    base: str
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    exists: Callable[[str], bool] = lambda path: True


@frozen
class ProposedPaths:
    """Entries of `allow_write`, each with a comment; None: the list stays as it is. And what is left to the user, in
    groups with a title."""

    writable: tuple[tuple[str, str], ...] | None = None
    remarks: tuple[tuple[str, tuple[str, ...]], ...] = ()


def proposed_paths(used: Usage, present: PresentFiles) -> ProposedPaths:
    """An empty list is a proposal too: it confines writing to where every session may write. Not where paths are
    missing in the log: it would confine the command to less than it needs."""
    home, base = present.ground.home, present.base
    folded = fold(_missing(used.written, present.allowed or ()), present.ground)
    texts = [(each, each.text(home, base)) for each in folded.entries]
    kept = [(each, text) for each, text in texts if _is_writable(text) and not _is_gone(each, present)]
    rules = [(text, printable(each.comment(home))) for each, text in kept]
    left = (*folded.left, *(each.path for each, text in texts if (each, text) not in kept))
    secrets = [place for place in used.secrets if not any(is_within(place, denied) for denied in present.denied)]
    groups = [
        (SECRETS, tuple(f'allow_read = ["{PathProposal(place, folder=False).text(home, base)}"]' for place in secrets)),
        (DENIED, tuple(place for place in used.secrets if place not in secrets)),
        (LEFT, left),
        (MORE, ("see `netsandbox audit show --event file`",) if used.more_paths or len(rules) > MAX_PATHS else ()),
    ]
    nothing = not rules and (present.allowed is not None or used.more_paths)
    return ProposedPaths(None if nothing else tuple(rules[:MAX_PATHS]), tuple(group for group in groups if group[1]))


def _missing(written: Iterable[tuple[str, str]], allowed: tuple[str, ...]) -> list[tuple[str, str]]:
    """What *allowed* does not cover. A name that is allowed itself cannot be made or removed by that."""
    return [
        (path, done)
        for path, done in written
        if not any(is_within(path, folder) and not (path == folder and done == MAKE) for folder in allowed)
    ]


def _is_gone(entry: PathProposal, present: PresentFiles) -> bool:
    """A file that was made and removed, as locks are: a rule for it alone would not let it be made again."""
    return entry.made and not entry.folder and not present.exists(entry.path)


def _is_writable(text: str) -> bool:
    """Whether a file of settings can hold it: names need not be UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
