"""The Seatbelt backend: reservation, profile and helper. `serving` runs beside the command.

The command is executed last, by a helper that has applied the profile to itself and verified it. If anything fails
before, it is an error, and nothing has run (INV-1). macOS cannot import modules through folder descriptors once the
command can write, so everything is loaded and served before the command starts.
"""

from __future__ import annotations

import os
import shutil
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter
from _signal import SIGCONT, SIGTERM

from netsandbox_portmap.notices import Notices

from netsandbox.backends.contract import DoorSockets, path_of, session_environment
from netsandbox.backends.seatbelt.launch import check_helper, handed_on, library_trouble
from netsandbox.backends.seatbelt.limits import limit_lines, resource_limits
from netsandbox.backends.seatbelt.localhost_settings import check_for_mac, mac_settings
from netsandbox.backends.seatbelt.mac_system import check_release
from netsandbox.backends.seatbelt.profile.tag import new_tag, tagged
from netsandbox.backends.seatbelt.profile_inputs import (
    ProfilePaths,
    has_door,
    profile_text,
    programs,
    temporary_folder,
    working_folder,
    writable_folders,
)
from netsandbox.backends.seatbelt.project_paths import repositories_besides
from netsandbox.backends.seatbelt.reservation import SeatbeltReservation, password, proxy_url
from netsandbox.errors import HostError
from netsandbox.frozen import copy_with
from netsandbox.paths import session_state_home
from netsandbox.policy.file_rules import PROJECT
from netsandbox.policy.shown_files import HOST_VARIABLES
from netsandbox.runtime.imports import AT_END, DOORS, load_needed
from netsandbox.runtime.inherited import check_stdio
from netsandbox.runtime.protection import make_folders
from netsandbox.runtime.used_homes import note_homes
from netsandbox.runtime.written_folders import EVERYWHERE, release_written, remember_written
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox_portmap.localhost_settings import LocalhostSettings
    from netsandbox_portmap.window import Window

    from netsandbox.backends.contract import Attribution, Backend, Clock, OwnAddresses, SessionContext
    from netsandbox.backends.seatbelt.helper_process import HelperProcess
    from netsandbox.backends.seatbelt.mac_system import MacSystem
    from netsandbox.backends.seatbelt.serving import SeatbeltServing
    from netsandbox.policy.policy import Policy
    from netsandbox.runtime.loop import Loop
    from netsandbox.settings import Command


MAX_NAMES = 8  # of new repositories in a notice


class SeatbeltBackend:
    """See `backends.contract.Backend`. *system* replaces this host's `MacSystem`."""

    name = "seatbelt"
    serves_first = True
    needed_modules: tuple[str, ...] = (
        "netsandbox.backends.seatbelt.serving",
        "netsandbox.backends.seatbelt.helper_process",
        "netsandbox.runtime.inherited",
        "netsandbox.runtime.listener",
        "netsandbox.audit.log",
        "binascii",  # the doors decode the token with it; a file in many installations
    )

    def __init__(self, context: SessionContext, system: MacSystem | None = None) -> None:
        self.context = context
        self.tag = new_tag()
        self.process: HelperProcess | None = None
        self._system = system
        self._localhost: LocalhostSettings | None = None
        self._reservation: SeatbeltReservation | None = None
        self._profile = ""
        self._inside: Command | None = None
        self._serving: SeatbeltServing | None = None
        self._temporary = ""
        self._limits: list[tuple[int, int]] = []
        self._projects: tuple[str, ...] = ()
        self._repositories: tuple[str, ...] = ()

    @property
    def system(self) -> MacSystem:
        """Determined at its first use: macOS may have to sign the helper then."""
        if self._system is None:
            from netsandbox.backends.seatbelt.mac_system import this_mac

            self._system = this_mac()
        return self._system

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None else 0

    @property
    def reservation(self) -> SeatbeltReservation:
        assert self._reservation is not None
        return self._reservation

    @property
    def recorded_name(self) -> str | None:
        return self.reservation.name

    # Before the command

    def prepare(self) -> None:
        command, wanted = self.context.command, self.context.settings.localhost
        settings = self.context.settings
        check_stdio(command.stdio, (*settings.configs, settings.audit_log))
        check_for_mac(wanted)
        if self.context.settings.files.devices:
            raise HostError("a Mac has its own list of devices; leave --allow-device out")
        self._limits = resource_limits(self.context.settings.limits)
        check_release(self.system.release)
        check_helper(self.system.helper)
        trouble = library_trouble(self.system.library)
        if trouble:
            from netsandbox.backends.seatbelt.localhost_settings import notice, stricter

            wanted = stricter(wanted, trouble)
            Notices(self.context.stderr).write(notice(trouble))
        self._localhost = mac_settings(wanted, library=not trouble)

    def confine(self, policy: Policy) -> None:
        assert self._localhost is not None
        make_folders()  # the command could make a missing one in another case, the same name on most disks
        settings, command = self.context.settings, self.context.command
        held = self._reservation = SeatbeltReservation(
            self._localhost,
            session_state_home(),
            self.context.id,
            opens=has_door(policy),
            library=self.system.library,
        )
        note_homes()
        if not settings.own_command:
            remember_written(EVERYWHERE)
        if settings.name is not None:
            held.take_name(settings.name)
        if settings.verbose:
            self._introduce(held, command)
            notices = Notices(self.context.stderr)
            for line in limit_lines(settings.limits):
                notices.write(line)
        self.context.placed_log()
        port_map = held.map.path if held.map is not None else ""
        if settings.files.mode == PROJECT:
            self._open_project()
        paths = ProfilePaths(self.context.log.path, port_map, self._temporary)
        self._profile = tagged(profile_text(policy, settings, command, held.ports(), paths), self.tag)
        self._inside = copy_with(command, environment=self._environment(held, policy))

    def _open_project(self) -> None:
        """Note the repositories that exist, and make the session's own temporary folder."""
        own = os.path.realpath(os.fsdecode(self.context.command.environment.get(b"HOME", b"/")))
        self._projects = writable_folders(PROJECT, os.path.realpath(working_folder()), own)
        self._repositories = tuple(repositories_besides(self._projects, ()))
        if not self.context.settings.files.share_tmp:
            self._temporary = temporary_folder(self.context.command.environment, self.context.id)
            try:
                os.mkdir(self._temporary, 0o700)
            except OSError as error:
                folder, self._temporary = self._temporary, ""
                raise HostError(f"cannot make {folder!a}: {error.strerror}; set TMPDIR, or use --share-tmp") from None

    def _introduce(self, held: SeatbeltReservation, command: Command) -> None:
        window, found = held.window, programs(command.words[0], path_of(command.environment))
        assert window is not None
        program = os.path.realpath(found[0]) if found else ""
        notices, opens, library = Notices(self.context.stderr), held.mixed is not None, held.map is not None
        for line in introduction(held.settings.strategy, window, program, opens=opens, library=library):
            notices.write(line)

    def _environment(self, held: SeatbeltReservation, policy: Policy) -> dict[bytes, bytes]:
        settings, outer = self.context.settings, self.context.command.environment
        proxy = proxy_url(held.mixed.port, held.token) if settings.proxy_env and held.mixed is not None else None
        inner = session_environment(outer, self.context.id, mode=policy.mode, name=held.name, proxy=proxy)
        if settings.files.mode == PROJECT:
            inner = project_environment(inner, self._temporary, policy.allow_unix_sockets)
        return held.environment({name: value for name, value in inner.items() if not name.startswith(b"DYLD_")})

    def usage(self) -> dict[str, object]:
        limits = self.context.settings.limits
        return {"limits": "; ".join(limit_lines(limits))} if limits else {}

    def seal_imports(self, policy: Policy) -> None:
        load_all()
        if self.context.sealed:
            sys.meta_path[:] = [BuiltinImporter, FrozenImporter]

    def wait_ready(self) -> None:
        """Wait until the system's log is read, so that the first refusals are recorded too."""
        if self._serving is not None:
            self._serving.wait_for_log()

    def start(self) -> None:
        inside = self._inside
        assert inside is not None
        from netsandbox.backends.seatbelt.helper_process import HelperProcess

        self.process = HelperProcess(
            self.system.helper,
            handed_on(inside.words, inside.environment),
            self._profile,
            inside.environment,
            inside.stdio,
            closed_port=self.reservation.closed.port,
            limits=self._limits,
        )
        if self.context.started is not None:
            self.context.started()

    # While the command runs

    def open_loop(self, on_error: Callable[[BaseException], None]) -> Loop:
        return self.system.open_loop(on_error)

    def serve(self, loop: Loop, ended: Callable[[int | None], None]) -> SeatbeltServing:
        from netsandbox.backends.seatbelt.serving import SeatbeltServing

        self._serving = SeatbeltServing(self, loop, ended)
        return self._serving

    def doors(self) -> DoorSockets | None:
        held = self.reservation
        if held.mixed is None or held.dns is None:
            return None
        return DoorSockets(
            mixed=tuple(held.mixed.sockets),
            dns=tuple(held.dns.datagrams),
            dns_tcp=tuple(held.dns.sockets),
            own_addresses=self._own_addresses,
            attribution=no_attribution,
            password=password(held.token),
            dns_is_bound=True,
        )

    def _own_addresses(self, clock: Clock) -> OwnAddresses:
        own = self.system.own_addresses(clock)
        own()  # before the command can interfere
        return own

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.process.signal(number)

    def ask_to_end(self) -> None:
        self.signal(SIGTERM)
        self.signal(SIGCONT)  # a command that is suspended handles no signal

    def kill(self) -> None:
        if self.process is not None:
            self.process.end()

    def execute(self, request: bytes, descriptors: list[int]) -> None:
        raise HostError("`netsandbox exec` works on Linux only; start the command in a second session, with `run`")

    # After the command

    def raise_failure(self) -> None:
        """Nothing to do: `start` has raised it."""

    def lineage(self, pid: int) -> list[int]:
        return [pid]

    def kept_files(self) -> tuple[str, ...]:
        return ()

    def stop(self) -> None:
        if self.process is not None:
            self.process.close()

    def close(self) -> None:
        release_written()
        if self._temporary:
            try:
                shutil.rmtree(self._temporary, ignore_errors=True)
            except RecursionError:  # the command made that hard; the system removes old temporary files
                pass
            self._temporary = ""
        projects, self._projects = self._projects, ()
        made = repositories_besides(projects, self._repositories)
        if made:
            Notices(self.context.stderr).write(
                f"new in the project: {', '.join(map(single_line, made[:MAX_NAMES]))}; programs of the host obey or run"
                " these, so look at them first"
            )
        if self._reservation is not None:
            self._reservation.close()


def project_environment(inner: dict[bytes, bytes], temporary: str, sockets: Iterable[str]) -> dict[bytes, bytes]:
    """Variables that name sockets of the host which the session does not reach are left out (pure)."""
    opened = [*map(os.fsencode, sockets)]
    kept = {name: value for name, value in inner.items() if os.fsdecode(name) not in HOST_VARIABLES or value in opened}
    return {**kept, b"TMPDIR": os.fsencode(temporary)} if temporary else kept


def no_attribution(clock: Clock) -> Attribution:
    """No process is looked up for a connection; the token shows that it belongs to the session."""
    return lambda peer, protocol="tcp": None


def load_all() -> None:
    """Load every module that the supervisor needs while the command runs."""
    load_needed()
    for name in (*DOORS, *SeatbeltBackend.needed_modules, *AT_END):
        __import__(name)


open_backend: Callable[[SessionContext], Backend] = SeatbeltBackend


# System Integrity Protection covers these paths: dyld removes the library's variable for programs in them.
PROTECTED = ("/bin/", "/sbin/", "/usr/", "/System/")
UNPROTECTED = ("/usr/local/", "/System/Volumes/Data/")


def introduction(strategy: str, window: Window, program: str, *, opens: bool, library: bool) -> list[str]:
    """Lines for the user. *program* is the command's resolved path, empty if unknown."""
    doors = "doors for HTTP, SOCKS5 and names on localhost, behind a token" if opens else "no doors: nothing is allowed"
    lines = [f"strategy {strategy}, window {window}; {doors}; {'with' if library else 'without'} the preload library"]
    if library and is_protected(program):
        lines.append(
            f"{program} is a program of the system: macOS starts it without the preload library, and what it starts"
            " too, but for commands of a shell (-c) and of env; servers there have ports of the window only, and"
            " programs there need the proxy variables"
        )
    return lines


def is_protected(path: str) -> bool:
    """Whether SIP keeps the library out of the program at *path*; the program is confined all the same."""
    return path.startswith(PROTECTED) and not path.startswith(UNPROTECTED)


def own_addresses(clock: Clock) -> OwnAddresses:
    from netsandbox.backends.seatbelt.own_addresses import InterfaceAddresses

    return InterfaceAddresses(clock)
