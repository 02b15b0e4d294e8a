"""A line on the terminal for what takes more than a second, so that nobody wonders."""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

PATIENCE = 1.0


class Progress:
    """Says *what* if it goes on for longer than that; nothing where nobody looks."""

    def __init__(self, what: str, patience: float = PATIENCE) -> None:
        self._timer = threading.Timer(patience, self._say)
        self._timer.daemon = True
        self._what = what

    def __enter__(self) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()  # nothing is started beside a thread

    def _say(self) -> None:
        try:
            sys.stderr.write(f"netsandbox: {self._what} …\n")
            sys.stderr.flush()
        except OSError:
            pass
