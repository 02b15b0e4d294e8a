"""The helper of the broker backend: keeper, broker and command in one program."""

from __future__ import annotations

import os
import select

from netsandbox.backends.linux.helper_process import HelperProcess
from netsandbox.errors import BackendUnavailable, HostError

PATIENCE = 5000  # milliseconds
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "netsandbox-broker")


class Helper(HelperProcess):
    """The keeper, until the command has ended. `pid` is that of the broker, above all processes of the session."""

    def set_up_failure(self, step: str, number: int) -> HostError:
        from netsandbox.backends.broker.diagnosis import explain_failure

        return BackendUnavailable(explain_failure(step, number))

    def end(self) -> None:
        """The keeper ends by itself when the channel closes, after every process of the session. One that does not,
        since it was stopped, is killed; the broker sees that and ends the session."""
        if _has_ended(self.spawned, PATIENCE):
            os.waitpid(self.spawned, 0)
        else:
            super().end()


def _has_ended(pid: int, milliseconds: int) -> bool:
    """Wait for the end of our own child."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(milliseconds))
    finally:
        os.close(descriptor)
