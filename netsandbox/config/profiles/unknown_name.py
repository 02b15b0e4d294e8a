"""The error for a profile that does not exist: what is called nearly so, or that a command belongs after `--`."""

from __future__ import annotations

from netsandbox.config.profiles.profile_files import everything
from netsandbox.errors import UsageError
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def unknown(name: str, origin: str = "") -> UsageError:
    """*origin* is the file and line that names it; empty for the command line."""
    near = nearest(name)
    advice = f"did you mean {near}?" if near else "see `netsandbox profile list`"
    return UsageError(f"{origin + ': ' if origin else ''}unknown profile {quoted(name)}; {advice}")


def unknown_word(words: Sequence[str], at: int) -> UsageError:
    """For the word at *at* of a command line: mostly a command whose `--` was forgotten."""
    import shutil

    start = at
    if shutil.which(words[at]) is None:
        if nearest(words[at]) is not None:
            return unknown(words[at])
        start = next((place for place in range(at - 1, -1, -1) if shutil.which(words[place])), at)
    command = " ".join(quoted(word)[1:-1] for word in words[start : start + 4])
    more = " …" if len(words) > start + 4 or len(words) == start + 1 else ""
    return UsageError(
        f"unknown profile {quoted(words[at])}; to run a command write `netsandbox run [OPTIONS] -- {command}{more}`"
    )


def nearest(name: str) -> str | None:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), everything(), n=1, cutoff=0.6)
    return near[0] if near else None
