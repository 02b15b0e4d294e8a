"""The namespaces backend while the command runs: the helper's messages, trapped system calls, the session's localhost.

A trapped call waits for us, so an error here must not keep it waiting: the seccomp listener is closed then, and the
kernel fails the call (INV-1).
"""

from __future__ import annotations

import _socket
import errno
import os

from netsandbox.backends.linux.helper_process import SIGKILL
from netsandbox.backends.linux.helper_serving import HelperServing
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.localhost_service import LocalhostService

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.contract import FileQuestions
    from netsandbox.backends.linux.helper_process import Message
    from netsandbox.backends.linux.seccomp_notify import Listener
    from netsandbox.backends.linux.trap_relay import TrapRelay
    from netsandbox.backends.namespaces.asked_files import AskedFiles
    from netsandbox.backends.namespaces.backend import NamespacesBackend
    from netsandbox.backends.namespaces.bind_guard import BindGuard
    from netsandbox.backends.namespaces.file_changes import FileChanges
    from netsandbox.backends.namespaces.inside_sockets import InsideSockets
    from netsandbox.backends.namespaces.launch import Helper
    from netsandbox.backends.namespaces.session_sockets import SessionSockets
    from netsandbox.runtime.loop import Loop


class NamespaceServing(HelperServing):
    """One per session."""

    _backend: NamespacesBackend
    _helper: Helper

    def __init__(self, backend: NamespacesBackend, loop: Loop, ended: Callable[[int | None], None]) -> None:
        super().__init__(backend, loop, ended)
        self._inside: InsideSockets | None = None
        self._sockets: SessionSockets | None = None
        self._listener: Listener | None = None
        self._unserved: int | None = None  # the seccomp listener, until the first call is trapped
        self.localhost: LocalhostService | None = None
        self._asked: AskedFiles | None = None

    def begin(self) -> None:
        self.watch_helper()
        self.watch_localhost_doors()

    def settle(self) -> None:
        if self._listener is not None:
            self._listener.settle()

    def close(self) -> None:
        if self._unserved is not None:
            self._open_last_moment(self._unserved)
        if self._asked is not None:
            self._asked.close()
        if self._listener is not None:
            self._listener.close()
        if self._local_calls is not None:
            self._local_calls.close()
        if self.localhost is not None:
            self.localhost.close()
        if self._unserved is not None:
            os.close(self._unserved)
        self.close_helper()

    def _open_last_moment(self, listener: int) -> None:
        """The command may have ended before we read what it was refused."""
        relay = self._helper.relay
        self._loop.unwatch(relay.fileno())
        try:
            relay.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        except OSError:  # nothing was refused
            return
        self._open_listener_of(listener)

    # The helper's messages

    def on_message(self, message: Message) -> bool:
        if message.kind == "L":
            self._watch_traps(message)
        elif message.kind == "N":
            self.open_localhost()
            assert self._inside is not None
            self._inside.arrived(message)
        else:
            return False
        return True

    # Trapped system calls

    def _watch_traps(self, message: Message) -> None:
        """A listener that cannot be served is closed: a trapped call then fails at once instead of waiting forever."""
        try:
            if len(message.descriptors) < 2:  # the kernel drops those beyond our limit of open files
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            if self._unserved is not None or self._listener is not None or len(message.descriptors) != 2:
                raise OSError("the helper sent a listener that was not expected")
            fd, report = message.descriptors
            watched = self._helper.relay.fileno()
            self._loop.watch(watched, IN, lambda events: self._on_first_trap(watched, events))
        except BaseException as error:
            self._give_up(error, *message.descriptors)
            raise
        self._unserved = fd
        self.watch_report(report)

    def _give_up(self, error: BaseException, *listeners: int) -> None:
        """Nobody answers trapped calls from now on, and the helper holds the listener too, so the command is killed."""
        for each in listeners:
            os.close(each)
        self.failure = ("serving trapped calls", _number_of(error))
        self._helper.signal(SIGKILL)

    def _on_first_trap(self, watched: int, events: int) -> None:
        self._loop.unwatch(watched)
        if not events & IN:  # the last process under the filter is gone
            return
        assert self._unserved is not None
        self._open_listener_of(self._unserved).serve(IN)

    def _open_listener_of(self, fd: int) -> Listener:
        self._unserved = None
        try:
            self._listener = self._open_listener(fd)
        except BaseException as error:
            self._give_up(error, fd)
            raise
        return self._listener

    def _open_relay(self, repeats: FoldedRecords) -> TrapRelay:
        from netsandbox.backends.linux.trap_relay import TrapRelay
        from netsandbox.backends.linux.unix_connect import UnixConnect
        from netsandbox.backends.namespaces.file_refusals import FileRefusals

        rules, later = self._backend.context.settings.files, self._loop.call_later
        refusals = FileRefusals(self._log, later, rules, self._backend.secrets, self._open_changes())
        decide = UnixConnect(repeats, self._backend.pins)
        relay = TrapRelay(self._helper.relay, refusals, decide, self._on_lost_relay)
        relay.local = self.on_local_call
        return relay

    def _open_asked(
        self, listener: Listener, inbox: FileQuestions, repeats: FoldedRecords, relay: TrapRelay
    ) -> AskedFiles:
        from netsandbox.backends.namespaces.asked_files import AskedFiles, AskRules

        backend = self._backend
        rules = AskRules(backend.own, backend.context.settings.files)
        asked = AskedFiles(self._loop, listener, inbox, repeats, relay.refusals, rules)
        relay.held = asked.take
        asked.showing = self._clean_later
        return asked

    def _clean_later(self, path: str) -> None:
        """An empty file or folder is made in the private home where the session sees one of the host."""
        view = self._backend.project_view
        assert view is not None
        if is_within(path, view.home) and view.folders.is_kept:
            view.folders.clean_later({path[len(view.home) + 1 :]: ""})

    def _open_changes(self) -> FileChanges | None:
        limits, environment = self._backend.learned_changes, self._backend.context.command.environment
        if limits is None:
            return None
        from netsandbox.backends.linux.file_view import always_writable
        from netsandbox.backends.namespaces.file_changes import FileChanges

        return FileChanges(self._log, always_writable(environment), limits)

    def _on_lost_relay(self) -> None:
        """The process that receives trapped calls is gone. Trapped calls wait, and the command is killed."""
        detail = "the process that receives trapped calls has ended"
        try:
            self._log.write("policy", verdict="deny", reason="internal", detail=detail)
        finally:
            self._loop.unwatch(self._helper.relay.fileno())
            self._helper.signal(SIGKILL)

    def _open_listener(self, fd: int) -> Listener:
        from netsandbox.audit.folding import FoldedRecords
        from netsandbox.backends.linux.seccomp_notify import Listener

        repeats = FoldedRecords(self._log)
        relay = self._open_relay(repeats)
        listener = Listener(self._loop, fd, repeats, relay)
        if self.inbox is not None and self._backend.context.settings.asks_files:
            self._asked = self._open_asked(listener, self.inbox, repeats, relay)
        settings = self._backend.context.settings.localhost
        if settings.guarded:
            from netsandbox.backends.namespaces.syscall_broker import Broker

            listener.takers.append(Broker(listener, repeats, self._bind_guard(listener, repeats)))
        if settings.publishes and not settings.guarded:
            from netsandbox.backends.namespaces.listen_watch import ListenWatch

            localhost = self.open_localhost()
            assert self._sockets is not None
            listener.takers.append(ListenWatch(self._loop, listener, self._sockets, localhost.listening))
        return listener

    def _bind_guard(self, listener: Listener, repeats: FoldedRecords) -> BindGuard:
        from netsandbox.backends.namespaces.bind_guard import BindGuard

        localhost = self.open_localhost()

        def listening(address: str, port: int, pid: int, exe: str) -> None:  # called after the call's answer
            self._loop.call_later(0, lambda: localhost.listening(address, port, pid, exe))

        return BindGuard(listener, repeats, localhost.rule, listening, localhost.refused)

    # The session's localhost

    def open_localhost(self) -> LocalhostService:
        """It is used first for a listener, or for a connection to one of its doors."""
        if self.localhost is None:
            from netsandbox_portmap.localhost_service import LocalhostService, SessionNetwork

            from netsandbox.backends.namespaces.inside_sockets import InsideSockets
            from netsandbox.backends.namespaces.session_sockets import SessionSockets

            self._inside = InsideSockets(self._helper)
            self._sockets = SessionSockets(self._helper.pid, self._inside)
            network = SessionNetwork(self._inside, self._sockets, self.take_localhost_doors())
            context = self._backend.context
            self.localhost = LocalhostService(
                self._loop,
                self._log,
                self._backend.reservation,
                network,
                stderr=context.stderr,
                announce=context.settings.announce,
            )
        return self.localhost


def _number_of(error: BaseException | None) -> int:
    """The system's error behind *error*, which may be our text about it; 0 if there is none."""
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__context__
    return 0
