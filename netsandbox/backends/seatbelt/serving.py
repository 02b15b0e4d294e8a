"""The Seatbelt backend beside the command: its end, its refusals from the system's log, its localhost."""

from __future__ import annotations

from netsandbox.backends.seatbelt.refusal_records import RefusalRecords
from netsandbox.backends.seatbelt.shared_localhost import SharedLocalhost
from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.seatbelt.backend import SeatbeltBackend
    from netsandbox.backends.seatbelt.mac_system import ExitNotice
    from netsandbox.runtime.loop import Loop


class SeatbeltServing:
    """Made before the command runs, so that every module it needs is loaded by then."""

    def __init__(self, backend: SeatbeltBackend, loop: Loop, ended: Callable[[int | None], None]) -> None:
        self._backend = backend
        self._loop = loop
        self._ended = ended
        self._exit: ExitNotice | None = None
        self._is_over = False
        self.localhost: SharedLocalhost | None = None
        self.inbox = None  # Seatbelt cannot make a call wait
        log, held = backend.context.log, backend.reservation
        self._refusals = RefusalRecords(loop, log, backend.system.log, backend.tag, closed_port=held.closed.port)
        if held.map is not None:
            try:
                self.localhost = SharedLocalhost(loop, log, held, stderr=backend.context.stderr)
            except BaseException:
                self._refusals.close()
                raise

    def wait_for_log(self) -> None:
        self._refusals.wait()

    def begin(self) -> None:
        process = self._backend.process
        assert process is not None
        self._exit = self._backend.system.exit_of(process.pid)
        self._loop.watch(self._exit.fileno(), IN, self._on_exit)
        self._loop.call_later(0, lambda: self._on_exit(0))  # the command may have ended before the kernel watched it

    def awaits_records(self, status: int) -> bool:
        return self._refusals.awaited(status)

    def settle(self) -> None:
        """There are no second commands on macOS."""

    def close(self) -> None:
        if self.localhost is not None:
            self.localhost.close()
        self._refusals.close()
        if self._exit is not None:
            self._exit.close()

    def _on_exit(self, events: int) -> None:
        process = self._backend.process
        assert process is not None
        assert self._exit is not None
        status = None if self._is_over else process.status()
        if status is None:
            return
        self._is_over = True
        self._loop.unwatch(self._exit.fileno())
        self._ended(status)
