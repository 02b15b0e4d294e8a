"""The namespaces backend up to the command's start: helper, plan, doors. `serving` has the rest.

The helper starts before the policy is read, so that the kernel makes the namespaces meanwhile. The command waits for
`go`. The modules of `serving` are imported after `go`, while the command starts.
"""

from __future__ import annotations

import os

from netsandbox.backends.contract import DoorSockets, other_logs
from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.linux_backend import LinuxBackend, own_addresses
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.linux.tracing import check_tracing
from netsandbox.backends.namespaces import launch, plan
from netsandbox.backends.namespaces.diagnosis import lost_covers
from netsandbox.backends.namespaces.launch import NETWORK_FILES, project_environment
from netsandbox.backends.namespaces.reservation import NamespaceReservation
from netsandbox.paths import session_state_home, working_folder
from netsandbox.policy.file_rules import OPEN, PROJECT
from netsandbox.runtime.inherited import check_stdio, terminal_of
from netsandbox.runtime.protection import make_folders, own_paths
from netsandbox.runtime.real_paths import identities, replaced
from netsandbox.runtime.used_homes import note_homes
from netsandbox.runtime.written_folders import release_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox.backends.contract import Attribution, Backend, Clock, SessionContext
    from netsandbox.backends.linux.file_view import FileView
    from netsandbox.backends.linux.project_view import ProjectView
    from netsandbox.backends.namespaces.overlay_view import SessionOverlay
    from netsandbox.backends.namespaces.serving import NamespaceServing
    from netsandbox.policy.path_folding import EntryLimits
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.protection import OwnPaths

MODULES = "netsandbox.backends.namespaces"
LATE_MODULES = """
    serving attribution file_refusals listen_watch inside_sockets session_sockets diagnosis
"""
SHARED_LATE_MODULES = """
    helper_serving own_addresses local_calls seccomp_notify trap_relay unix_connect private_home project_results
    git_operations git_results new_repositories held_names kept_overlays procfs spawner
"""


class NamespacesBackend(LinuxBackend):
    """See `backends.contract.Backend`. `pid` is the session's PID 1 on the host."""

    name = "namespaces"
    helper: launch.Helper | None
    _serving: NamespaceServing | None
    _reservation: NamespaceReservation | None
    needed_modules: tuple[str, ...] = (
        *(f"{MODULES}.{name}" for name in LATE_MODULES.split()),
        *(f"netsandbox.backends.linux.{name}" for name in SHARED_LATE_MODULES.split()),
        "netsandbox.backends.exec_failure",
        "netsandbox.policy.git_index",
        "netsandbox.policy.git_merge",
        "netsandbox.policy.git_operations",
        "netsandbox_portmap.localhost_service",
    )

    def __init__(self, context: SessionContext) -> None:
        super().__init__(context)
        self._covered: dict[str, tuple[int, int] | None] = {}  # a mount is lost if the host replaces the file
        self.secrets: tuple[str, ...] = ()  # where the session has the host's files otherwise
        self.project_view: ProjectView | None = None
        self.overlay: SessionOverlay | None = None
        self._doors: dict[str, _socket.socket] = {}

    @property
    def reservation(self) -> NamespaceReservation:
        assert self._reservation is not None
        return self._reservation

    @property
    def learned_changes(self) -> EntryLimits | None:
        """In the mode `open` nothing is refused, so `learn` wants to know what changes. None in other sessions."""
        settings = self.context.settings
        return settings.learn_files if settings.files.mode == OPEN else None

    # Before the command

    def prepare(self) -> None:
        settings, command = self.context.settings, self.context.command
        check_stdio(command.stdio, (*settings.configs, settings.audit_log))
        check_tracing()
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
        inside = self._inside()
        if settings.files.mode == PROJECT:
            inside = project_environment(inside, settings, command.words[0])
        self.helper = launch.Helper(command.words, held.environment(inside), command.stdio, rows)
        make_folders()
        note_homes()
        if settings.files.overlay is not None:
            from netsandbox.backends.namespaces.overlay_view import SessionOverlay

            self.overlay = SessionOverlay(settings, state, held)
        kept = (*settings.configs, *settings.written)
        own = self.own = own_paths(placed, *kept, *other_logs(state), logs=logs)
        if settings.files.mode == PROJECT:
            view = self._project_view(state, own)
        else:
            from netsandbox.backends.linux.open_folders import remember_open_folders
            from netsandbox.backends.linux.private_folders import PrivateFolders
            from netsandbox.backends.namespaces.mount_view import session_view

            overlay = self.overlay.mount if self.overlay is not None else None
            closed = PrivateFolders(state, "").closed_file
            view = session_view(own, (*held.covers(), *self._trust_covers()), self._file_view(), overlay, closed)
            if not settings.own_command:
                remember_open_folders(settings.files, command.environment)
        denied = {os.path.realpath(rule.path) for rule in settings.files.deny_read}
        covered = self.project_view.hidden if self.project_view is not None else self.secrets
        self.helper.hide([*denied, *covered, *(f"x{path}" for path in (rules.programs if rules else ()))])
        self.secrets = tuple(path for path in self.secrets if path not in denied)
        self.helper.send_plan(plan.build(view, program, held.doors(), rules.steps if rules else b""))
        if settings.name is not None and self.overlay is None:
            held.take_name(settings.name)

    def _project_view(self, state: str, own: OwnPaths) -> plan.View:
        """Called while the kernel makes the namespaces."""
        from netsandbox.backends.linux.project_results import unprotected_lines
        from netsandbox.backends.linux.project_view import ProjectView

        command, files = self.context.command, self.context.settings.files
        make = ProjectView if self.overlay is None else self.overlay.project_view
        view = self.project_view = make(files, command.environment, working_folder(), state)
        view.sockets = self.context.settings.unix_sockets
        view.parts += self.reservation.parts()
        covers = (*NETWORK_FILES, *self.reservation.covers(), *self._trust_covers())
        root = view.build(command.words[0], own, terminal_of(command.stdio), covers)
        self._notice(unprotected_lines(view, verbose=self.context.settings.verbose))
        self._covered = identities(root.mounted_on())
        return plan.View(os.geteuid(), os.getegid(), (), (), (), root=tuple(root.steps()))

    def _trust_covers(self) -> tuple[tuple[str, str], ...]:
        """The session's lists of CAs over those of the system and of Java, if requests are inspected."""
        settings = self.context.settings
        lists = filter(None, (settings.ca_bundle, settings.java_trust))
        return tuple((ours, place) for ours, places in lists for place in places)

    def _file_view(self) -> FileView:
        """Called while the kernel makes the namespaces."""
        from netsandbox.backends.linux.file_view import file_view
        from netsandbox.backends.linux.open_folders import second_name_notice

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

    def seal_imports(self, policy: Policy) -> None:
        if self.context.settings.localhost.guarded:
            __import__(f"{MODULES}.bind_guard")
            __import__(f"{MODULES}.syscall_broker")  # imports ctypes too, from the interpreter
        if self.learned_changes is not None:
            __import__(f"{MODULES}.file_changes")
        if self.context.settings.asks_files:
            __import__(f"{MODULES}.asked_files")
            __import__("netsandbox.backends.linux.mount_points")
        super().seal_imports(policy)

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

        return Attribution(self.pid, clock, is_bounded=self.context.settings.denial_file is None)

    # After the command

    def kept_files(self) -> tuple[str, ...]:
        return self._new_files(self.project_view)

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
        release_written()

    def _report(self, view: ProjectView) -> None:
        """Take over what a session may change of its project, and name what the user must look at."""
        from netsandbox.backends.linux.project_results import finish

        self._notice(finish(view))


open_backend: Callable[[SessionContext], Backend] = NamespacesBackend
