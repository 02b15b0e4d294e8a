"""Rows of cells as lines whose columns stand one below the other. Pure: text out; the cells are printable already."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP, CUT = "  ", "..."


def columns(
    rows: Iterable[Sequence[str]], *, width: int | None = None, yielding: Iterable[tuple[int, int]] = ()
) -> list[str]:
    """The lines; with a *width*, none is longer.

    *yielding* says which columns give way then, first to last, and to what width; at 0 they go.
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
