"""One session on a Mac from start to end: reservation, profile, log, doors, command, last record.

The command is executed last, by a helper that has the profile on it and has shown that it holds; whatever fails before
is an error, and nothing has run (INV-1). Its first instruction finds the doors listening (attack 203).
"""

from __future__ import annotations

import os
import time

from netsandbox_portmap.notices import Notices

from netsandbox.backends.environment import session_environment
from netsandbox.backends.seatbelt.launch import check_places, library_trouble, way_of
from netsandbox.backends.seatbelt.library_fallback import notice, stricter
from netsandbox.backends.seatbelt.localhost_settings import check_for_mac, mac_settings
from netsandbox.backends.seatbelt.macos_release import check_release
from netsandbox.backends.seatbelt.profile.tag import new_tag, tagged
from netsandbox.backends.seatbelt.profile_inputs import has_door, profile_text, programs
from netsandbox.backends.seatbelt.reservation import MacReservation
from netsandbox.backends.seatbelt.token import with_proxy
from netsandbox.backends.seatbelt.verbose_notice import introduction
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import copy_with
from netsandbox.paths import made_config_folders, session_state_home
from netsandbox.runtime.stdio import check_stdio
from netsandbox.session.session import exit_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netsandbox_portmap.localhost_settings import LocalhostSettings

    from netsandbox.backends.seatbelt.helper_process import HelperProcess
    from netsandbox.backends.seatbelt.launch import LaunchMethod
    from netsandbox.backends.seatbelt.mac_system import System
    from netsandbox.backends.seatbelt.supervisor import MacSupervisor
    from netsandbox.policy.policy import Policy
    from netsandbox.session.session import Session
    from netsandbox.settings import Command


class MacSession:
    """Run once, for the session that *owner* names and logs."""

    def __init__(self, owner: Session, system: System | None = None, *, sealed: bool) -> None:
        self._owner = owner
        self._sealed = sealed
        self._system = system
        self._way: LaunchMethod | None = None
        self._supervisor: MacSupervisor | None = None

    def run(self, policy: Callable[[], Policy], command: Command) -> int:
        """Run *command* to its end; its wait status. Whatever is raised, it has not run, or has ended."""
        check_stdio(command.stdio)
        check_for_mac(self._owner.settings.localhost)
        check_release(self._host.release)
        self._way = way_of(self._host)
        check_places(self._way, os.fsdecode(command.environment.get(b"HOME", b"")))
        local = self._local_settings(Notices(command.stdio[2]))
        decided = policy()
        made_config_folders()  # one that is missing could be made in other letters, which most disks take for these
        reservation = MacReservation(
            local, session_state_home(), self._owner.id, opens=has_door(decided), library=self._host.library
        )
        try:
            if self._owner.settings.name is not None:
                reservation.take_name(self._owner.settings.name)
            if self._owner.settings.verbose:
                self._introduce(reservation, command, Notices(command.stdio[2]))
            return self._run(reservation, decided, command)
        finally:
            reservation.close()
            if self._supervisor is not None and self._supervisor.control is not None:
                self._supervisor.control.close()

    def _local_settings(self, notices: Notices) -> LocalhostSettings:
        """What the user wants, as far as it can be had with the library or without."""
        assert self._way is not None
        wanted, trouble = self._owner.settings.localhost, library_trouble(self._host, self._way)
        if trouble:
            wanted = stricter(wanted, trouble)
            notices.say(notice(trouble, helper=self._way.injects))
        return mac_settings(wanted, library=not trouble)

    def _introduce(self, reservation: MacReservation, command: Command, notices: Notices) -> None:
        path = os.fsdecode(command.environment.get(b"PATH", b""))
        window, found = reservation.window, programs(command.words[0], path)
        assert window is not None
        program = os.path.realpath(found[0]) if found else ""
        opens, library = reservation.mixed is not None, reservation.map is not None
        for line in introduction(reservation.settings.strategy, window, program, opens=opens, library=library):
            notices.say(line)

    def _run(self, reservation: MacReservation, policy: Policy, command: Command) -> int:
        began = time.monotonic()
        assert self._way is not None
        log, settings, tag = self._owner.log, self._owner.settings, new_tag()
        try:
            self._owner.placed_log()
            profile = tagged(
                profile_text(
                    policy,
                    settings,
                    command.environment,
                    reservation.ports(),
                    command.words[0],
                    log=log.path,
                    port_map=reservation.map.path if reservation.map is not None else "",
                    stdin=command.stdio[0],
                    runs=self._way.runs,
                ),
                tag,
            )
            inside = copy_with(command, environment=self._environment(reservation, command.environment, policy.mode))
            self._owner.write_start(command.words, policy, reservation, backend="seatbelt", name=reservation.name)
            try:
                status = self._serve(reservation, policy, inside, profile, tag)
            except NetsandboxError as error:
                self._owner.write_end(began, error.status)
                raise
            self._owner.write_end(began, exit_status(status))
        finally:
            log.close()
        return status

    def _serve(self, reservation: MacReservation, policy: Policy, command: Command, profile: str, tag: str) -> int:
        from netsandbox.backends.seatbelt.supervisor import MacSupervisor
        from netsandbox.backends.seatbelt.trusted_imports import trust_imports
        from netsandbox.runtime.signals import Forwarder
        from netsandbox.session.host_resolver import host_resolver

        way = self._way
        assert way is not None
        supervisor = self._supervisor = MacSupervisor(
            self._host,
            policy,
            self._owner.log,
            reservation,
            tag=tag,
            resolver=host_resolver(self._owner.settings),
            parent=self._owner.parent(),
            bounds=self._owner.settings.bounds,
            facts={**self._owner.facts(command.words, policy, reservation), "name": reservation.name},
            stderr=command.stdio[2],
            ask=self._owner.settings.ask,
        )
        applied: HelperProcess | None = None
        forwarder = Forwarder(lambda number: applied.signal(number) if applied is not None else None)
        try:
            trust_imports(sealed=self._sealed)
            supervisor.settle()
            forwarder.hold()
            applied = way.start(command, profile, closed_port=reservation.closed.port)
            forwarder.release()
            supervisor.run(applied)
        finally:
            forwarder.restore()
            if applied is not None:
                applied.close()
            supervisor.close()
        return supervisor.status

    @property
    def _host(self) -> System:
        """Asked for when the first thing of it is needed: a Mac may have to sign its helper then."""
        if self._system is None:
            from netsandbox.backends.seatbelt.mac_system import this_mac

            self._system = this_mac()
        return self._system

    def _environment(self, reservation: MacReservation, outer: Mapping[bytes, bytes], mode: str) -> dict[bytes, bytes]:
        inner = session_environment(outer, self._owner.id, mode=mode, name=reservation.name, proxy=None)
        inner = {name: value for name, value in inner.items() if not name.startswith(b"DYLD_")}
        if self._owner.settings.proxy_env and reservation.mixed is not None:
            inner = with_proxy(inner, reservation.mixed.port, reservation.token)
        return reservation.environment(inner)
