"""What both Linux backends do alike with a session: its helper, its pinned sockets, the rules for its processes.

`backends.contract.Backend` says what each method is for. How a sandbox is made and served is up to the two.
"""

from __future__ import annotations

import time

from netsandbox_portmap import PROXY_URL

from netsandbox.backends.contract import path_of, session_environment
from netsandbox.backends.linux.helper_process import SIGKILL
from netsandbox.runtime.inherited import write_notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox_portmap.reservation import Reservation

    from netsandbox.backends.contract import Clock, OwnAddresses, SessionContext
    from netsandbox.backends.linux.helper_process import HelperProcess
    from netsandbox.backends.linux.helper_serving import HelperServing
    from netsandbox.backends.linux.process_rules import ProcessRules
    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.backends.linux.unix_pins import PinnedSocket
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop


class LinuxBackend:
    """Without the sandbox itself."""

    serves_first = False
    needed_modules: tuple[str, ...] = ()
    counts_alone = True  # as in `ProcessRules`

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self.helper: HelperProcess | None = None
        self.pins: list[PinnedSocket] = []
        self.rules: ProcessRules | None = None
        self.localhost_doors: dict[str, _socket.socket] = {}
        self._reservation: Reservation | None = None
        self._serving: HelperServing | None = None
        self._began = time.time()

    @property
    def pid(self) -> int:
        return self.helper.pid if self.helper is not None else 0

    @property
    def reservation(self) -> Reservation:
        assert self._reservation is not None
        return self._reservation

    @property
    def recorded_name(self) -> str | None:
        return self.context.settings.name

    def _process_rules(self) -> ProcessRules | None:
        """Most sessions have none, and load no module for them."""
        settings = self.context.settings
        if settings.limits or settings.no_debug or settings.files.listed_only:
            from netsandbox.backends.linux.process_rules import ProcessRules

            self.rules = ProcessRules(self.context, counts_alone=self.counts_alone)
            if settings.verbose:
                self._notice(self.rules.lines)
        return self.rules

    def _inside(self) -> dict[bytes, bytes]:
        """The command's environment before the backend's own variables."""
        settings, given = self.context.settings, self.context.command.environment
        proxy = PROXY_URL if settings.proxy_env else None
        return session_environment(given, self.context.id, mode=settings.mode, name=settings.name, proxy=proxy)

    def confine(self, policy: Policy) -> None:
        """Hold the allowed Unix sockets before the command can put anything else at their paths."""
        if policy.allow_unix_sockets:
            from netsandbox.backends.linux.unix_pins import PinnedSocket

            for path in policy.allow_unix_sockets:
                self.pins.append(PinnedSocket(path))

    def seal_imports(self, policy: Policy) -> None:
        from netsandbox.runtime import imports

        if self.context.sealed:
            imports.seal(self.needed_modules)
        else:
            imports.load_everything(self.needed_modules)

    def open_loop(self, on_error: Callable[[BaseException], None]) -> Loop:
        from netsandbox.runtime.loop import Loop

        return Loop(on_error)

    def lineage(self, pid: int) -> list[int]:
        from netsandbox.backends.linux.procfs import lineage

        return lineage(pid, self.pid)

    def signal(self, number: int) -> None:
        if self.helper is not None:
            self.helper.signal(number)

    def ask_to_end(self) -> None:
        if self.helper is not None:
            self.helper.ask_to_end()

    def kill(self) -> None:
        self.signal(SIGKILL)

    def execute(self, request: bytes, descriptors: list[int]) -> None:
        from netsandbox.backends.linux.spawner import pass_request

        pass_request(self._serving.await_spawner() if self._serving is not None else None, request, descriptors)

    def usage(self) -> dict[str, object]:
        from netsandbox.backends.linux.procfs import usage_below

        return usage_below(self.pid, *self._own_pids()) | (self.rules.usage() if self.rules is not None else {})

    def _own_pids(self) -> list[int]:
        """Processes of the session that are not the command's."""
        from netsandbox.runtime.control_socket import peer_pid

        spawner = self._serving.spawner if self._serving is not None else None
        return [] if spawner is None else [peer_pid(spawner)]

    def _new_files(self, view: ProjectView | None) -> tuple[str, ...]:
        """New files of the private home, as names in the user's home."""
        if view is None or not view.folders.is_kept:
            return ()
        from netsandbox.backends.linux.private_home import PrivateHome

        told = {file.path for file in view.agents}  # `take_over` has a line for what matters
        new = PrivateHome(view.folders.home, view.home).written(since=self._began)
        return tuple(path for path in new if path not in told)

    def raise_failure(self) -> None:
        if self._serving is None:
            return
        if self._serving.exec_errno:
            from netsandbox.backends.exec_failure import exec_failure

            command = self.context.command
            raise exec_failure(command.words[0], self._serving.exec_errno, path_of(command.environment))
        if self._serving.failure is not None:
            assert self.helper is not None
            raise self.helper.set_up_failure(*self._serving.failure)

    def stop(self) -> None:
        while self.pins:
            self.pins.pop().close()
        if self.helper is not None:
            self.helper.close()
            self.helper = None
        self._notice(self.rules.close() if self.rules is not None else [])

    def _notice(self, lines: list[str]) -> None:
        for line in lines:
            write_notice(self.context.stderr, line)


def own_addresses(clock: Clock) -> OwnAddresses:
    from netsandbox.backends.linux.own_addresses import OwnAddresses

    return OwnAddresses(clock)
