"""Text for people: escaping of hostile text, addresses with ports, words of a shell, columns. Pure.

A command, a server or a file chooses much of what we print. Escaped, it can neither move the cursor nor change colours
nor hide itself by writing direction (attack 172).

- `printable` leaves only printable ASCII: for hosts and everything else that a command or the network supplied.
- `quoted` is the same in quotes and cut short: for the wrong value that an error message names.
- `single_line` keeps the letters of every language: for paths and for text that people wrote.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import AnyStr

MAX_QUOTED = 100
MAX_LISTED = 8  # texts in a line
GAP, CUT = "  ", "..."
_SHELL_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def printable(value: object, limit: int | None = None) -> str:
    """*value* as printable ASCII, everything else escaped; cut after *limit* characters of it."""
    text = str(value)
    shown = text if limit is None else text[:limit]
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(char if " " <= char <= "~" else _escape(char) for char in shown)
    return shown if limit is None or len(text) <= limit else shown + CUT


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def quoted(raw: bytes | str) -> str:
    """*raw* in quotes as printable ASCII, cut after `MAX_QUOTED` characters."""
    text = raw.decode("latin-1") if isinstance(raw, bytes) else raw
    shown = ascii(text[:MAX_QUOTED])
    return shown if len(text) <= MAX_QUOTED else shown + CUT


def single_line(text: str, limit: int | None = None) -> str:
    """*text* on one line with everything escaped that is not a printable character, cut after *limit* characters."""
    shown = text if limit is None else text[:limit]
    line = shown if shown.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in shown)
    return line if len(shown) == len(text) else f"{line[:limit]}…"


def few(texts: Iterable[str]) -> str:
    """The first of *texts* as a list for one line."""
    listed = list(texts)
    more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return ", ".join(listed[:MAX_LISTED]) + more


def did_you_mean(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The advice for a wrong name: the nearest of those that are *known*, or *otherwise*."""
    from difflib import get_close_matches  # slow to import, and needed only for an error

    near = get_close_matches(name, tuple(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else otherwise


def _escape(char: str) -> str:
    return ascii(char)[1:-1]


def join_host_port(host: str, port: object) -> str:
    """`HOST:PORT`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host and host[0] != "[" else f"{host}:{port}"


def printable_place(host: object, port: object) -> str:
    """`HOST:PORT`, the host alone, or `port PORT`, from values that a command chose."""
    if host is None:
        return f"port {printable(port)}"
    return join_host_port(printable(host), printable(port)) if port else printable(host)


def denial_text(place: str, reason: object, flag: object) -> str:
    """A denial for people. *place* is printable, the other values may be those of a command."""
    unreached = "; it is allowed but was not reached" if reason == "lookup-failed" else ""
    return f"denied {place} ({printable(reason)})" + (f"; allow it with {printable(flag)}" if flag else unreached)


def has_pieces(pieces: Sequence[AnyStr], text: AnyStr) -> bool:
    """Whether *text* has the pieces between the stars of a pattern, in their order."""
    first, last = pieces[0], pieces[-1]
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in pieces[1:-1]:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def shell_quoted(text: str) -> str:
    """*text* as one word of a POSIX shell, as `shlex.quote` writes it; `shlex` would load `re`."""
    if text and _SHELL_PLAIN.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def columns(
    rows: Iterable[Sequence[str]], *, width: int | None = None, yielding: Iterable[tuple[int, int]] = ()
) -> list[str]:
    """The printable cells of *rows* as lines with aligned columns; with a *width*, no line is longer.

    Each pair in *yielding* is a column and its least width: these columns are cut, first to last, until the lines fit.
    A column with the least width 0 is left out.
    """
    everything = list(rows)
    widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
    if width is None:
        return [_line(cells, widths) for cells in everything]
    for column, least in yielding:
        excess = sum(wide + len(GAP) for wide in widths if wide) - len(GAP) - width
        if excess > 0:
            widths[column] = min(widths[column], max(least, widths[column] - excess)) if least else 0
    return [_line(cells, widths)[:width].rstrip() for cells in everything]


def _line(cells: Sequence[str], widths: list[int]) -> str:
    return GAP.join(_cell(cell, width) for cell, width in zip(cells, widths, strict=True) if width).rstrip()


def _cell(cell: str, width: int) -> str:
    return cell.ljust(width) if len(cell) <= width else cell[: width - len(CUT)] + CUT
