"""The process that is the session of a tool which is asked: `python -I -c … LOG PORT COMMAND…`.

The tool's variables come on standard input, with zero bytes between them. The process's own are the user's, so that it
hides what every session hides.
"""

from __future__ import annotations

import os
import sys

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.api import Sandbox
from netsandbox.errors import NetsandboxError
from netsandbox.policy.policy import OFFLINE, Policy
from netsandbox.runtime.signals import exit_with
from netsandbox.settings import RunSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Exit as the command does; 1 if no session can be made."""
    log, port, *command = sys.argv[1:]
    environment = variables(sys.stdin.buffer.read())
    silence = os.open(os.devnull, os.O_RDWR)
    ports = (int(port),) if port else ()
    settings = RunSettings(
        mode=OFFLINE, proxy_env=False, audit_log=log, localhost=LocalhostSettings(publish=(), connect_host=ports)
    )
    try:
        with Sandbox.deferred(lambda: Policy(mode=OFFLINE), settings) as box:
            status = box.run(command, env=environment, stdin=silence, stderr=silence).returncode
    except NetsandboxError:
        status = 1
    exit_with(status)


def variables(told: bytes) -> dict[str, str]:
    """The variables that were told (pure)."""
    pairs = (pair.partition("=") for pair in os.fsdecode(told).split("\0"))
    return {name: value for name, equals, value in pairs if name and equals}
