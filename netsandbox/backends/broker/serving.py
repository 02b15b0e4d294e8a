"""The broker backend while the command runs: the broker's messages and questions, the session's localhost.

A trapped call waits for the broker, and the broker for us. If the broker ends, the kernel fails the calls that wait,
and the keeper kills the command (INV-1, INV-10).
"""

from __future__ import annotations

from netsandbox.backends.broker.questions import Questions
from netsandbox.backends.linux.helper_process import SIGKILL
from netsandbox.backends.linux.helper_serving import HelperServing
from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.broker.backend import BrokerBackend
    from netsandbox.backends.broker.localhost import BrokerLocalhost
    from netsandbox.backends.linux.helper_process import Message
    from netsandbox.runtime.loop import Loop


class BrokerServing(HelperServing):
    """One per session. Landlock cannot make a call wait, so nobody is asked about files."""

    def __init__(self, backend: BrokerBackend, loop: Loop, ended: Callable[[int | None], None]) -> None:
        super().__init__(backend, loop, ended)
        self._questions: Questions | None = None
        self._repeats: FoldedRecords | None = None
        self.localhost: BrokerLocalhost | None = None

    def begin(self) -> None:
        self.watch_helper()
        self._loop.watch(self._helper.relay.fileno(), IN, self._on_question)
        self.watch_localhost_doors()

    def settle(self) -> None:
        if self._repeats is not None:
            self._repeats.flush()

    def close(self) -> None:
        self._loop.unwatch(self._helper.relay.fileno())
        if self._local_calls is not None:
            self._local_calls.close()
        if self._repeats is not None:
            self._repeats.flush()
        if self.localhost is not None:
            self.localhost.close()
        self.close_helper()

    def on_message(self, message: Message) -> bool:
        if message.kind != "L":
            return False
        (report,) = message.descriptors
        self.watch_report(report)
        return True

    # The broker's questions

    def _on_question(self, events: int) -> None:
        if self._questions is None:
            self._questions = self._open_questions()
        self._questions.serve(events)

    def _open_questions(self) -> Questions:
        from netsandbox.audit.folding import FoldedRecords
        from netsandbox.backends.linux.unix_connect import UnixConnect

        self._repeats = FoldedRecords(self._log)
        decide = UnixConnect(self._repeats, self._backend.pins)
        questions = Questions(self._helper.relay, self._repeats, self.open_localhost, decide, self._on_lost)
        questions.local_call = self.on_local_call
        return questions

    def _on_lost(self) -> None:
        """The broker has ended. The keeper ends the command; the channel's end is the session's."""
        self._loop.unwatch(self._helper.relay.fileno())
        self._helper.signal(SIGKILL)

    def open_localhost(self) -> BrokerLocalhost:
        """It is used first for a bind, or for a connection to one of its doors."""
        if self.localhost is None:
            from netsandbox_portmap.localhost_service import SessionNetwork

            from netsandbox.backends.broker.localhost import BrokerLocalhost, HostTable, SharedSockets

            context = self._context
            self.localhost = BrokerLocalhost(
                self._loop,
                self._log,
                self._backend.reservation,
                SessionNetwork(SharedSockets(), HostTable(), self.take_localhost_doors()),
                stderr=context.stderr,
                announce=context.settings.announce,
            )
        return self.localhost
