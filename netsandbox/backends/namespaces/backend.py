"""The namespaces backend up to the command's start: helper, plan, doors. `serving` has the rest.

The helper starts before the policy is read, so that the kernel makes the namespaces meanwhile. The command waits for
`go`. The modules of `serving` are imported after `go`, while the command starts.

The reservation has descriptions of the doors, which are made inside the session, and the port map (`map_paths`).
"""

from __future__ import annotations

import os
import time

from netsandbox_portmap import DNS_PORT, MIXED_PORT, PROXY_URL, REQUESTS_PORT, REWIRE_DEVICE
from netsandbox_portmap.reservation import MapDoors, MapSource, Reservation

from netsandbox.backends.contract import DoorSockets, exec_failure, other_logs, path_of, session_environment
from netsandbox.backends.namespaces import launch, plan, seccomp
from netsandbox.backends.namespaces.diagnosis import lost_covers
from netsandbox.backends.namespaces.launch import FILES, NETWORK_FILES, project_environment
from netsandbox.backends.namespaces.seccomp import syscall_table
from netsandbox.paths import session_state_home, working_folder
from netsandbox.policy.file_rules import OPEN, PROJECT
from netsandbox.runtime.inherited import check_stdio, terminal_of, write_notice
from netsandbox.runtime.protection import make_folders, own_paths
from netsandbox.runtime.real_paths import identities, replaced
from netsandbox.runtime.used_homes import note_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox.backends.contract import Attribution, Backend, Clock, OwnAddresses, SessionContext
    from netsandbox.backends.namespaces.file_view import FileView
    from netsandbox.backends.namespaces.overlay_view import SessionOverlay
    from netsandbox.backends.namespaces.process_rules import ProcessRules
    from netsandbox.backends.namespaces.project_view import ProjectView
    from netsandbox.backends.namespaces.serving import NamespaceServing
    from netsandbox.backends.namespaces.unix_pins import PinnedSocket
    from netsandbox.policy.path_folding import EntryLimits
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.protection import OwnPaths

MODULES = "netsandbox.backends.namespaces"
LATE_MODULES = """
    serving own_addresses attribution seccomp_notify trap_relay unix_connect file_refusals private_home
    project_results new_repositories listen_watch inside_sockets session_sockets diagnosis procfs
"""


class NamespacesBackend:
    """See `backends.contract.Backend`. `pid` is the session's PID 1 on the host."""

    name = "namespaces"
    serves_first = False
    needed_modules: tuple[str, ...] = (
        *(f"{MODULES}.{name}" for name in LATE_MODULES.split()),
        "netsandbox.policy.git_index",
        "netsandbox.policy.git_merge",
        "netsandbox_portmap.localhost_service",
    )

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self.helper: launch.Helper | None = None
        self.pins: list[PinnedSocket] = []
        self._covered: dict[str, tuple[int, int] | None] = {}  # a mount is lost if the host replaces the file
        self.secrets: tuple[str, ...] = ()  # where the session has the host's files otherwise
        self.project_view: ProjectView | None = None
        self.overlay: SessionOverlay | None = None
        self.localhost_doors: dict[str, _socket.socket] = {}
        self._doors: dict[str, _socket.socket] = {}
        self._reservation: NamespaceReservation | None = None
        self._serving: NamespaceServing | None = None
        self._began = time.time()
        self.rules: ProcessRules | None = None

    @property
    def pid(self) -> int:
        return self.helper.pid if self.helper is not None else 0

    @property
    def reservation(self) -> NamespaceReservation:
        assert self._reservation is not None
        return self._reservation

    @property
    def recorded_name(self) -> str | None:
        return self.context.settings.name

    @property
    def learned_changes(self) -> EntryLimits | None:
        """In the mode `open` nothing is refused, so `learn` wants to know what changes. None in other sessions."""
        settings = self.context.settings
        return settings.learn_files if settings.files.mode == OPEN else None

    # Before the command

    def prepare(self) -> None:
        settings, command = self.context.settings, self.context.command
        check_stdio(command.stdio, (*settings.configs, settings.audit_log))
        state = session_state_home()
        held = self._reservation = NamespaceReservation(settings.localhost, state)
        placed, logs = self.context.placed_log()
        rules = self._process_rules()
        calls, rows = self._trapped_calls()
        abi = syscall_table(os.uname().machine)
        program = seccomp.build(
            abi,
            extra=settings.localhost.trapped_calls,
            watched=calls,
            skips_listing=bool(calls),
            refused=rules.refused_calls if rules else {},
        )
        inside = session_environment(
            command.environment,
            self.context.id,
            mode=settings.mode,
            name=settings.name,
            proxy=PROXY_URL if settings.proxy_env else None,
        )
        if settings.files.mode == PROJECT:
            inside = project_environment(inside, settings, command.words[0])
        self.helper = launch.Helper(command.words, held.environment(inside), command.stdio, rows)
        make_folders()
        note_homes()
        if settings.files.overlay is not None:
            from netsandbox.backends.namespaces.overlay_view import SessionOverlay

            self.overlay = SessionOverlay(settings, state, held)
        own = self.own = own_paths(placed, *settings.configs, settings.debug_log, *other_logs(state), logs=logs)
        if settings.files.mode == PROJECT:
            view = self._project_view(state, own)
        else:
            from netsandbox.backends.namespaces.mount_view import remember_written, session_view

            overlay = self.overlay.mount if self.overlay is not None else None
            view = session_view(own, held.covers(), self._file_view(), overlay)
            remember_written(settings.files, command.environment, state)
        denied = {os.path.realpath(rule.path) for rule in settings.files.deny_read}
        self.helper.hide([*denied, *self.secrets, *(f"x{path}" for path in (rules.programs if rules else ()))])
        self.secrets = tuple(path for path in self.secrets if path not in denied)
        self.helper.send_plan(plan.build(view, program, held.doors(), rules.steps if rules else b""))
        if settings.name is not None and self.overlay is None:
            held.take_name(settings.name)

    def _process_rules(self) -> ProcessRules | None:
        """Most sessions have none, and load no module for them."""
        settings = self.context.settings
        if settings.limits or settings.no_debug or settings.files.listed_only:
            from netsandbox.backends.namespaces.process_rules import ProcessRules

            self.rules = ProcessRules(self.context)
            if settings.verbose:
                self._notice(self.rules.lines)
        return self.rules

    def usage(self) -> dict[str, object]:
        from netsandbox.backends.namespaces.procfs import usage_below

        return usage_below(self.pid) | (self.rules.usage() if self.rules is not None else {})

    def _project_view(self, state: str, own: OwnPaths) -> plan.View:
        """Called while the kernel makes the namespaces."""
        from netsandbox.backends.namespaces.project_results import unprotected_lines
        from netsandbox.backends.namespaces.project_view import ProjectView

        command, files = self.context.command, self.context.settings.files
        make = ProjectView if self.overlay is None else self.overlay.project_view
        view = self.project_view = make(files, command.environment, working_folder(), state)
        view.sockets = self.context.settings.unix_sockets
        view.parts += self.reservation.parts()
        covers = (*NETWORK_FILES, *self.reservation.covers())
        root = view.build(command.words[0], own, terminal_of(command.stdio), covers)
        self._notice(unprotected_lines(view))
        self._covered = identities(root.mounted_on())
        return plan.View(os.geteuid(), os.getegid(), (), (), (), root=tuple(root.steps()))

    def _file_view(self) -> FileView:
        """Called while the kernel makes the namespaces."""
        from netsandbox.backends.namespaces.file_view import file_view
        from netsandbox.backends.namespaces.mount_view import second_name_notice

        settings, environment = self.context.settings, self.context.command.environment
        view = file_view(settings.files, environment)
        if text := second_name_notice(view):
            self._notice([text])
        self.secrets = (*view.folders, *view.files)
        self._covered = identities((*self.secrets, *view.read_only))
        return view

    def _trapped_calls(self) -> tuple[tuple[int, ...], bytes]:
        """The calls on files that are trapped, and the table for the native process that receives them. It reports
        refused files: in the mode `project`, and for `learn`; and programs that are not listed."""
        from netsandbox.backends.namespaces.file_calls import broker_rows, call_rows, observed_calls

        settings, machine = self.context.settings, os.uname().machine
        guarded = syscall_table(machine).calls["bind"] if settings.localhost.guarded else None
        is_whole = settings.files.mode == PROJECT or settings.learn_files is not None
        if not is_whole and not settings.files.listed_only:
            return (), broker_rows(b"", guarded)
        calls = observed_calls(machine, execution_only=not is_whole)
        rows = call_rows(calls, tells=self.learned_changes is not None, asks=settings.asks_files)
        return tuple(calls), broker_rows(rows, guarded)

    def confine(self, policy: Policy) -> None:
        """Hold the allowed Unix sockets before the command can put anything else at their paths."""
        if policy.allow_unix_sockets:
            from netsandbox.backends.namespaces.unix_pins import PinnedSocket

            for path in policy.allow_unix_sockets:
                self.pins.append(PinnedSocket(path))

    def seal_imports(self, policy: Policy) -> None:
        from netsandbox.runtime import imports

        guarded = self.context.settings.localhost.guarded
        if guarded:
            __import__(f"{MODULES}.bind_guard")
            __import__(f"{MODULES}.syscall_broker")  # imports ctypes too, from the interpreter
        if self.learned_changes is not None:
            __import__(f"{MODULES}.file_changes")
        if self.context.settings.asks_files:
            __import__(f"{MODULES}.asked_files")
            __import__(f"{MODULES}.mount_points")
        if self.context.sealed:
            imports.seal(self.needed_modules)
        else:
            imports.load_everything(self.needed_modules)

    def wait_ready(self) -> None:
        assert self.helper is not None
        own = self.reservation.doors()
        made = self.helper.doors(plan.doors() + own)
        self.localhost_doors = {door.name: made.pop(door.name) for door in own}
        self._doors = made
        self.reservation.forget_map_name()
        if self.rules is not None:
            self.rules.enter(self.helper.pid)

    def start(self) -> None:
        assert self.helper is not None
        self.helper.go()

    # While the command runs

    def open_loop(self, on_error: Callable[[BaseException], None]) -> Loop:
        from netsandbox.runtime.loop import Loop

        return Loop(on_error)

    def serve(self, loop: Loop, ended: Callable[[int | None], None]) -> NamespaceServing:
        from netsandbox.backends.namespaces.serving import NamespaceServing

        self._serving = NamespaceServing(self, loop, ended)
        return self._serving

    def doors(self) -> DoorSockets:
        pairs = {
            name: (self._doors[name], self._doors[f"{name}6"])
            for name in ("mixed", "transparent", "dns", "dns-tcp", "udp")
        }
        return DoorSockets(
            mixed=pairs["mixed"],
            dns=pairs["dns"],
            dns_tcp=pairs["dns-tcp"],
            own_addresses=own_addresses,
            attribution=self._attribution,
            transparent=pairs["transparent"],
            datagrams=pairs["udp"],
        )

    def _attribution(self, clock: Clock) -> Attribution:
        from netsandbox.backends.namespaces.attribution import Attribution

        return Attribution(self.pid, clock)

    def signal(self, number: int) -> None:
        if self.helper is not None:
            self.helper.signal(number)

    def kill(self) -> None:
        self.signal(launch.SIGKILL)

    # After the command

    def raise_failure(self) -> None:
        if self._serving is None:
            return
        if self._serving.exec_errno:
            command = self.context.command
            raise exec_failure(command.words[0], self._serving.exec_errno, path_of(command.environment))
        if self._serving.failure is not None:
            raise launch.set_up_failure(*self._serving.failure)

    def kept_files(self) -> tuple[str, ...]:
        if self.project_view is None or not self.project_view.folders.is_kept:
            return ()
        from netsandbox.backends.namespaces.private_home import PrivateHome

        return PrivateHome(self.project_view.folders.home, self.project_view.home).written(since=self._began)

    def stop(self) -> None:
        while self.pins:
            self.pins.pop().close()
        if self.helper is not None:
            self.helper.close()
            self.helper = None
        self._notice(self.rules.close() if self.rules is not None else [])

    def close(self) -> None:
        view, self.project_view = self.project_view, None
        if lost := replaced(self._covered):
            self._notice([lost_covers(lost)])
            self._covered = {}
        if view is not None:
            self._report(view)
            view.folders.close()
        if self.overlay is not None:
            self.overlay.close(self.context.stderr)
        if self._reservation is not None:
            self._reservation.close()

    def _report(self, view: ProjectView) -> None:
        """Take over what a session may change of its project, and name what the user must look at."""
        from netsandbox.backends.namespaces.project_results import finish

        self._notice(finish(view))

    def _notice(self, lines: list[str]) -> None:
        for line in lines:
            write_notice(self.context.stderr, line)


def own_addresses(clock: Clock) -> OwnAddresses:
    from netsandbox.backends.namespaces.own_addresses import OwnAddresses

    return OwnAddresses(clock)


class NamespaceReservation(Reservation):
    """A reservation whose doors and port map are inside the session."""

    def environment(self, inner: dict[bytes, bytes]) -> dict[bytes, bytes]:
        made = super().environment(inner)
        if self.map is None:
            return made
        from netsandbox_interpose.library import inject

        return inject(made)

    def covers(self) -> tuple[tuple[str, str], ...]:
        """Files that differ inside (INV-8): the lock file is empty there, and the placeholder is the port map."""
        found = [(os.path.join(FILES, "nothing"), self.host_locks)] if self.host_locks is not None else []
        if self.map is not None:
            from netsandbox_interpose.library import PORT_MAP

            found.append((self.map.path, PORT_MAP))
            if self.settings.strategy == REWIRE_DEVICE:  # its device is an IPv4 address, so localhost is only that
                found.append((os.path.join(FILES, "hosts-ipv4"), "/etc/hosts"))
        return tuple(found)

    def parts(self) -> tuple[str, ...]:
        """The files of netsandbox that programs inside load: the library, and the placeholder of the port map."""
        if self.map is None:
            return ()
        from netsandbox_interpose.library import LIBRARY, PORT_MAP

        return (LIBRARY, PORT_MAP)

    def doors(self) -> tuple[plan.Door, ...]:
        """The doors of the session's localhost, in addition to those of the network."""
        return plan.localhost_doors(self.settings.connect_host, requests=self.map is not None)

    def forget_map_name(self) -> None:
        """Remove the map's name on the host, once the session has its mounts."""
        if self.map is not None:
            self.map.unlink()

    def _map_source(self, state: str) -> MapSource:
        from netsandbox_interpose.library import load_native

        from netsandbox.backends.namespaces.map_paths import new_map_path

        native = load_native()
        doors = MapDoors(REQUESTS_PORT, (DNS_PORT, MIXED_PORT, REQUESTS_PORT))
        return MapSource(native, new_map_path(state), doors)


open_backend: Callable[[SessionContext], Backend] = NamespacesBackend
