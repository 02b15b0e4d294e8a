"""The broker backend up to the command's start: helper, plan, doors. `serving` has the rest.

No namespace is made. The command sees the processes and the network of the host, and has none of its sockets: a native
process makes them, aims them, and passes what leaves the session to the doors (native/broker.c). Landlock takes the
rest away. docs/broker.md compares the promises with those of other backends.
"""

from __future__ import annotations

import os

from netsandbox_portmap import MIXED_PORT
from netsandbox_portmap.reservation import Reservation

from netsandbox.backends.broker import filter, plan
from netsandbox.backends.broker.arrivals import ArrivalSocket, DatagramSocket, Peers
from netsandbox.backends.broker.launch import HELPER, Helper
from netsandbox.backends.broker.localhost_settings import broker_settings
from netsandbox.backends.broker.requirements import loopback, missing
from netsandbox.backends.broker.session_files import LATE_MODULES as FILE_MODULES
from netsandbox.backends.broker.session_files import SessionFiles
from netsandbox.backends.contract import DoorSockets, other_logs
from netsandbox.backends.linux.linux_backend import LinuxBackend, own_addresses
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.errors import BackendUnavailable, HostError, UsageError
from netsandbox.paths import session_state_home
from netsandbox.runtime.inherited import check_stdio
from netsandbox.runtime.protection import make_folders, own_paths
from netsandbox.runtime.used_homes import note_homes
from netsandbox.runtime.written_folders import release_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.backends.broker.serving import BrokerServing
    from netsandbox.backends.contract import Attribution, Backend, Clock, SessionContext
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.protection import OwnPaths

BINDER = b"netsandbox-bind"  # native/binder.c
LATE_MODULES = "serving questions localhost diagnosis"
SHARED_LATE_MODULES = """
    helper_serving own_addresses local_calls seccomp_notify trap_relay unix_connect procfs socket_diag spawner
"""


class BrokerBackend(LinuxBackend):
    """See `backends.contract.Backend`. `pid` is the broker's."""

    name = "broker"
    counts_alone = False
    helper: Helper | None
    _serving: BrokerServing | None
    needed_modules: tuple[str, ...] = (
        *(f"netsandbox.backends.broker.{name}" for name in LATE_MODULES.split()),
        *(f"netsandbox.backends.linux.{name}" for name in SHARED_LATE_MODULES.split()),
        *FILE_MODULES,
        "netsandbox.backends.exec_failure",
        "netsandbox_portmap.localhost_service",
    )

    def __init__(self, context: SessionContext) -> None:
        super().__init__(context)
        self.peers = Peers()
        self.files: SessionFiles | None = None
        self._doors: dict[str, int] = {}
        self._trust: list[tuple[str, str]] = []  # our lists of CAs, and where the variables of the command name them

    # Before the command

    def prepare(self) -> None:
        settings, command = self.context.settings, self.context.command
        if reasons := missing():
            raise BackendUnavailable("; ".join(reasons))
        check_stdio(command.stdio, (*settings.configs, settings.audit_log))
        state = session_state_home()
        held = self._reservation = Reservation(broker_settings(settings.localhost), state)
        placed, logs = self.context.placed_log()
        make_folders()
        note_homes()
        kept = (*settings.configs, *settings.written)
        own = own_paths(placed, *kept, *other_logs(state), logs=logs)
        files = self.files = self._open_files(state, own)
        environment = files.environment(held.environment(self._inside()))
        if settings.ca_bundle is not None:
            environment = {**environment, **self._trust_variables(files, environment)}
        self.helper = Helper(HELPER, command.words, environment, command.stdio)
        self.helper.send_plan(self._plan(held, files, state))
        if settings.verbose or (settings.announce and os.isatty(self.context.stderr)):
            self._notice(files.notices)
        if settings.name is not None:
            held.take_name(settings.name)

    def _open_files(self, state: str, own: OwnPaths) -> SessionFiles:
        try:
            return SessionFiles(self.context, state, own)
        except PermissionError as error:
            what = f"{error.filename!a} cannot be opened: {error.strerror}"
            raise HostError(
                f"{what}; if another sandbox around this one refuses it, run netsandbox outside of it"
            ) from None

    def _trust_variables(self, files: SessionFiles, given: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Nothing can be mounted over the system's lists of CAs, so the session's are in its temporary folder."""
        from netsandbox.policy.trust_places import java_options, trust_variables

        settings = self.context.settings
        if files.temporary_path is None:
            raise UsageError("rules for requests need a private temporary folder here; leave --share-tmp out")
        lists = [each[0] for each in (settings.ca_bundle, settings.java_trust) if each is not None]
        self._trust = [(path, os.path.join(files.temporary_path, os.path.basename(path))) for path in lists]
        variables = trust_variables(os.fsencode(self._trust[0][1]), given)
        if settings.java_trust is not None:
            store = os.fsencode(self._trust[1][1])
            variables[b"JAVA_TOOL_OPTIONS"] = java_options(given.get(b"JAVA_TOOL_OPTIONS", b""), store)
        return variables

    def _plan(self, held: Reservation, files: SessionFiles, state: str) -> bytes:
        settings, window = self.context.settings, held.window
        assert window is not None
        rules = self._process_rules()
        machine = os.uname().machine
        abi, refused = syscall_table(machine), rules.refused_calls if rules else {}
        return plan.build(
            (*plan.addresses(window.base, window.device), loopback("/") is not None),
            (door.inside for door in settings.localhost.connect_host),
            filter.build_all(machine, abi, refused),
            handled=files.handled,
            permits=files.permits,
            sockets=state,
            limits=rules.limit_steps if rules else b"",
            working=files.working,
        )

    def wait_ready(self) -> None:
        assert self.helper is not None
        ports = [door.inside for door in self.context.settings.localhost.connect_host]
        made = self.helper.set_up(len(plan.DOORS) + len(ports))
        self._doors = dict(zip(plan.DOORS, made, strict=False))
        for port, descriptor in zip(ports, made[len(plan.DOORS) :], strict=True):
            self.localhost_doors[f"host-{port}"] = ArrivalSocket(descriptor, self.peers, port)
        if self.rules is not None:
            self.rules.enter(self.helper.pid)

    def start(self) -> None:
        assert self.helper is not None
        for path, shown in self._trust:
            with open(path, "rb") as source, open(shown, "xb") as copy:
                copy.write(source.read())
        self.helper.go()

    # While the command runs

    def serve(self, loop: Loop, ended: Callable[[int | None], None]) -> BrokerServing:
        from netsandbox.backends.broker.serving import BrokerServing

        self._serving = BrokerServing(self, loop, ended)
        return self._serving

    def doors(self) -> DoorSockets:
        made, self._doors = self._doors, {}
        return DoorSockets(
            mixed=(ArrivalSocket(made["mixed"], self.peers, MIXED_PORT),),
            dns=(DatagramSocket(made["dns"], self.peers),),
            dns_tcp=(ArrivalSocket(made["dns-tcp"], self.peers),),
            own_addresses=own_addresses,
            attribution=self._attribution,
            transparent=(ArrivalSocket(made["transparent"], self.peers),),
            datagrams=(DatagramSocket(made["udp"], self.peers),),
            destination=self.peers.destination,
            dns_is_bound=True,
        )

    def _attribution(self, clock: Clock) -> Attribution:
        return self.peers.attribution

    def _own_pids(self) -> list[int]:
        from netsandbox.backends.linux.procfs import named_children

        return [*super()._own_pids(), *named_children(self.pid, BINDER)]

    # After the command

    def kept_files(self) -> tuple[str, ...]:
        return self._new_files(self.files.view if self.files is not None else None)

    def close(self) -> None:
        files, self.files = self.files, None
        if files is not None:
            try:
                self._notice(files.finish())
            finally:
                files.close()
        for descriptor in self._doors.values():
            os.close(descriptor)
        self._doors = {}
        if self._reservation is not None:
            self._reservation.close()
        release_written()


open_backend: Callable[[SessionContext], Backend] = BrokerBackend
