"""Tries whether the helper can set a session up, although this process itself may make no namespaces.

An AppArmor profile gives the right to the helper alone. So a check by this process is not the last word.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.file_calls import broker_rows
from netsandbox.backends.namespaces.launch import Helper
from netsandbox.errors import NetsandboxError


def helper_failure() -> str | None:
    """None if the helper sets up a session; otherwise the message about the step that failed. Nothing is run in it."""
    silent = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        program = seccomp.build(syscall_table(os.uname().machine))
        helper = Helper(["true"], {}, (silent, silent, silent), broker_rows(b"", None))
    except NetsandboxError as error:
        return str(error)
    finally:
        os.close(silent)
    try:
        helper.send_plan(plan.build(plan.View(os.geteuid(), os.getegid(), (), (), ()), program))
        for door in helper.doors(plan.doors()).values():
            door.close()
    except NetsandboxError as error:
        return str(error)
    finally:
        helper.close()
    return None
