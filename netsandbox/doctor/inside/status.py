"""What the kernel says about this process: nothing here needs an attempt, only a look."""

from __future__ import annotations

import os
from collections.abc import Mapping

from netsandbox.doctor.inside.prevented import Prevented

SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def capabilities() -> str:
    held = [name for name in SETS if int(_status()[name], 16)]
    if not held:
        raise Prevented("every set is empty")
    return f"not empty: {', '.join(held)}"


def new_privileges() -> str:
    if _status()["NoNewPrivs"] == "1":
        raise Prevented("no_new_privs is set")
    return "a setuid program would give privileges"


def no_filter() -> str:
    if _status()["Seccomp"] == "2":
        raise Prevented("a filter is in force")
    return "no seccomp filter"


def shared_namespaces(host: Mapping[str, str]) -> str:
    """*host* has the host's namespaces by kind, such as net: net:[4026531840]."""
    shared = [kind for kind, name in host.items() if os.readlink(f"/proc/self/ns/{kind}") == name]
    if not shared:
        raise Prevented("none is the host's")
    return f"the host's own: {', '.join(shared)}"


def foreign_processes() -> str:
    """In the session there are its first process and we; the supervisor or anything else is foreign."""
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    foreign = [pid for pid in seen if pid not in (1, os.getpid())]
    if not foreign:
        raise Prevented("only the session's own")
    return f"{len(foreign)} others in /proc"


def open_descriptors() -> str:
    inherited = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        if int(name) > 2:
            inherited.append(target)
    if not inherited:
        raise Prevented("only 0, 1 and 2")
    return f"{len(inherited)} more: {inherited[0]}"


def _status() -> dict[str, str]:
    with open("/proc/self/status") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
