"""Explains why the broker could not set the session up; each message ends with what to do."""

from __future__ import annotations

import errno
import os

from netsandbox.text import single_line


def explain_failure(step: str, number: int) -> str:
    """The message for a failed set-up step; an empty step means that the helper died without a message."""
    if not step:
        return "the native helper ended before the sandbox was set up; run `netsandbox doctor`"
    what = f"{single_line(step)} failed: {os.strerror(number)}"
    if step == "Landlock":
        return f"{what}. The backend broker needs it: use Linux 5.13 or newer with landlock among its lsm="
    if step == "route_localnet":
        return (
            "net.ipv4.conf.all.route_localnet lets addresses of the loopback leave the machine, and the kernel's"
            " Landlock has no rules for TCP; set it and that of lo to 0, or use Linux 6.7"
        )
    if step == "installing the seccomp filter" and number == errno.EBUSY:
        return f"{what}. Another sandbox around this one receives trapped calls already; run netsandbox outside of it"
    if number in (errno.EMFILE, errno.ENFILE):
        return f"{what}; raise the limit, as by `ulimit -n 1024`"
    if number == errno.E2BIG:
        return f"{what}. The project has too many rules for one session; start it in a smaller folder"
    return f"{what}; run `netsandbox doctor` to see what this machine lacks"
