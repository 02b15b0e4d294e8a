"""The helper of the namespaces backend, and what it is started with. `plan` builds the plan."""

from __future__ import annotations

import _socket
import os
import sys

from netsandbox.backends.linux.helper_process import HelperProcess
from netsandbox.backends.namespaces import plan
from netsandbox.errors import BackendUnavailable, HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netsandbox.settings import RunSettings

_HERE = os.path.dirname(os.path.abspath(__file__))
HELPER = os.path.join(_HERE, "native", "netsandbox-init")
FILES = os.path.join(_HERE, "files")  # ours, which cover files of the host
NETWORK_FILES = ((os.path.join(FILES, "resolv.conf"), "/etc/resolv.conf"), (os.path.join(FILES, "hosts"), "/etc/hosts"))


class Helper(HelperProcess):
    """The session's first process, until the command has ended. `pid` is that of PID 1 on the host.

    The helper itself stays outside and receives the trapped calls; `relay` leads to it. *rows* is its table
    (`file_calls.broker_rows`).
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[bytes, bytes],
        stdio: tuple[int, int, int],
        rows: bytes,
    ) -> None:
        super().__init__(HELPER, command, environment, stdio, rows)

    def hide(self, paths: Sequence[str]) -> None:
        """Tell the observer which paths a rule hides, before the command starts."""
        names = b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)
        self.send(self.relay, names + b"\0", "the hidden paths to the observer")

    def doors(self, expected: Sequence[plan.Door]) -> dict[str, _socket.socket]:
        """Wait until the session is set up. Returns its doors by name, as in the plan."""
        return {
            door.name: _socket.socket(door.family, door.kind, 0, descriptor)
            for door, descriptor in zip(expected, self.set_up(len(expected)), strict=True)
        }

    def set_up_failure(self, step: str, number: int) -> HostError:
        from netsandbox.backends.namespaces.diagnosis import explain_failure, is_of_machine

        kind = BackendUnavailable if is_of_machine(step, number) else HostError
        return kind(explain_failure(step, number))

    def ask_socket(self, family: int) -> None:
        """Request a socket made inside the session; it arrives as a message of kind N."""
        self.channel.send(b"N" + family.to_bytes(4, sys.byteorder))


def project_environment(inside: dict[bytes, bytes], settings: RunSettings, program: str) -> dict[bytes, bytes]:
    """Variables that name places of the host which the session does not see are left out; those that tools need for
    their caches are added."""
    from netsandbox.policy.shown_files import HOST_VARIABLES

    opened = [os.fsencode(path) for path in settings.unix_sockets]
    kept = {
        name: value
        for name, value in inside.items()
        if os.fsdecode(name) not in HOST_VARIABLES or any(path in value for path in opened)
    }
    if b"TMPDIR" in kept:
        kept[b"TMPDIR"] = b"/tmp"
    if settings.files.caches or program.rpartition("/")[2] in ("pnpm", "pnpx", "uv", "uvx"):
        from netsandbox.backends.linux.tool_variables import tool_variables

        known = {os.fsdecode(name): os.fsdecode(value) for name, value in kept.items()}
        added = tool_variables(settings.files.caches, known, program)
        kept.update((os.fsencode(name), os.fsencode(value)) for name, value in added.items())
    return kept
