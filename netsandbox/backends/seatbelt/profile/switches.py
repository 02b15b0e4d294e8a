"""The user's words about the switches of a profile: `trustd` opens, `no-debug` closes. Pure.

The last word about a switch counts: the command line's comes after the files', a project's after the user's.
"""

from __future__ import annotations

from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SWITCHES = ("configd", "debug", "fsevents", "shared-memory", "tool-caches", "trustd")
ON = ("debug", "tool-caches")  # unless somebody says otherwise
NO = "no-"
WORDS = tuple(word for name in SWITCHES for word in (name, f"{NO}{name}"))


def check_word(word: str, origin: str) -> str:
    """*word* if it is one; *origin* says where it stands."""
    if word not in WORDS:
        known = ", ".join(SWITCHES)
        raise UsageError(
            f"{origin}: there is no switch {word[:80]!a}; use one of {known}, or no- before it to close it"
        )
    return word


def turned(words: Iterable[str]) -> tuple[str, ...]:
    """The switches that are on."""
    state = dict.fromkeys(SWITCHES, False) | dict.fromkeys(ON, True)
    for word in words:
        state[word.removeprefix(NO)] = not word.startswith(NO)
    return tuple(name for name in SWITCHES if state[name])


def widens(words: object) -> bool:
    """Whether any of them opens something: a project's file may do that only after the user trusted it."""
    return not isinstance(words, tuple) or any(not word.startswith(NO) for word in words)
