"""The user's switches of a profile: `trustd` opens something, `no-debug` closes something. Pure.

The last value of a switch applies: the command line comes after the files, and a project's file after the user's.
"""

from __future__ import annotations

from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SWITCHES = ("configd", "debug", "fsevents", "shared-memory", "tool-caches", "trustd")
ON = ("debug", "tool-caches")  # on by default
NO = "no-"
WORDS = tuple(word for name in SWITCHES for word in (name, f"{NO}{name}"))


def check_word(word: str, origin: str) -> str:
    """*word* if it is valid; *origin* is its source, for the error."""
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
    """Whether any of them opens something: a project's file may do that only if the user trusts it."""
    return not isinstance(words, tuple) or any(not word.startswith(NO) for word in words)
