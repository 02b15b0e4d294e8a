"""`with progress("reading logs"):` shows a line while something takes long: on a terminal only, and erased at the end.

Nothing else may write to the terminal meanwhile. A thread writes the line, since the caller may wait in a system call.
It has ended when the block ends.
"""

from __future__ import annotations

import _thread
import os

from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

DELAY = 0.7  # seconds; what is faster shows nothing
STDERR = 2
ERASE = b"\r\x1b[K"


class progress:
    """*text* goes between `netsandbox: ` and ` …`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._waits: tuple[_thread.LockType, _thread.LockType] | None = None  # for our end, and for the thread's

    def __enter__(self) -> None:
        if not os.isatty(STDERR) or os.environ.get("TERM", "dumb") == "dumb":
            return
        done, ended = _thread.allocate_lock(), _thread.allocate_lock()
        done.acquire()
        ended.acquire()
        try:
            _thread.start_new_thread(self._show, (done, ended))
        except RuntimeError:  # no thread can be had
            return
        self._waits = done, ended

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._waits is not None:
            done, ended = self._waits
            done.release()
            ended.acquire()

    def _show(self, done: _thread.LockType, ended: _thread.LockType) -> None:
        try:
            if not done.acquire(timeout=DELAY):
                width = os.get_terminal_size(STDERR).columns or 80
                os.write(STDERR, single_line(f"netsandbox: {self._text} …")[: width - 1].encode("utf-8", "replace"))
                done.acquire()
                os.write(STDERR, ERASE)
        except OSError:  # the terminal is gone
            pass
        finally:
            ended.release()
