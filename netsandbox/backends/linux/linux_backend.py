"""What both Linux backends do alike with a session: its helper, its pinned sockets, the rules for its processes.

`backends.contract.Backend` says what each method is for. How a sandbox is made and served is up to the two.
"""

from __future__ import annotations

import time

from netsandbox.backends.contract import path_of
from netsandbox.backends.linux.helper_process import SIGKILL
from netsandbox.runtime.inherited import write_notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.contract import Clock, OwnAddresses, SessionContext
    from netsandbox.backends.linux.helper_process import HelperProcess
    from netsandbox.backends.linux.helper_serving import HelperServing
    from netsandbox.backends.linux.process_rules import ProcessRules
    from netsandbox.backends.linux.unix_pins import PinnedSocket
    from netsandbox.errors import HostError
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop


class LinuxBackend:
    """`set_up_failure` makes the error for a step of the helper that failed."""

    serves_first = False
    needed_modules: tuple[str, ...] = ()
    set_up_failure: Callable[[str, int], HostError]
    counts_alone = True  # as in `ProcessRules`

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self.helper: HelperProcess | None = None
        self.pins: list[PinnedSocket] = []
        self.rules: ProcessRules | None = None
        self._serving: HelperServing | None = None
        self._began = time.time()

    @property
    def pid(self) -> int:
        return self.helper.pid if self.helper is not None else 0

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

    def kill(self) -> None:
        self.signal(SIGKILL)

    def execute(self, request: bytes, descriptors: list[int]) -> None:
        from netsandbox.backends.linux.spawner import pass_request

        pass_request(self._serving.await_spawner() if self._serving is not None else None, request, descriptors)

    def raise_failure(self) -> None:
        if self._serving is None:
            return
        if self._serving.exec_errno:
            from netsandbox.backends.exec_failure import exec_failure

            command = self.context.command
            raise exec_failure(command.words[0], self._serving.exec_errno, path_of(command.environment))
        if self._serving.failure is not None:
            raise self.set_up_failure(*self._serving.failure)

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
