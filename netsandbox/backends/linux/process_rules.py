"""What a session's processes may do beyond the usual: limits, no debugging, programs by list.

Sessions without such a rule never load this module. Which mechanism holds what:

| rule | mechanism |
|---|---|
| limits on memory, processes and CPU | a cgroup of the session's own; else resource limits, or an error |
| other limits | resource limits of each process |
| no debugging | seccomp refuses the calls; Landlock closes the files of processes in /proc, with memory and variables |
| programs by list | Landlock; seccomp refuses executable files in memory |
"""

from __future__ import annotations

import os
import resource
import sys

from netsandbox.backends.contract import path_of
from netsandbox.backends.linux.cgroup import ADVICE, FILES, find_cgroup
from netsandbox.backends.linux.plan_steps import numbers, step, texts
from netsandbox.backends.linux.programs import find_program, needed_programs
from netsandbox.errors import HostError
from netsandbox.policy.limits import OWN_PROCESSES, shown_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.contract import SessionContext
    from netsandbox.backends.linux.cgroup import Cgroup

# setrlimit(2), the numbers of both ABIs. Memory is what a process can write for itself: it reserves far more addresses.
RESOURCES = {"file-size": 1, "memory": 2, "core": 4, "processes": 6, "files": 7, "address-space": 9}
NO_CORE = 1  # byte: too few for any core, and unlike 0 it also holds for programs that core_pattern names (core(5))
EXECUTE, WRITE_FILE, READ_FILE = 1, 2, 4  # linux/landlock.h
# ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd, process_madvise; perf_event_open is always refused
DEBUG_CALLS = {"x86_64": (101, 310, 311, 312, 438, 440), "aarch64": (117, 270, 271, 272, 438, 440)}
MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
MFD_NOEXEC_SEAL = 0x8


class ProcessRules:
    """One per session. `held` says for each limit how it is held."""

    def __init__(self, context: SessionContext, *, counts_alone: bool = True) -> None:
        """*counts_alone*: the kernel counts the session's processes apart from others of the user, in a user namespace
        of its own."""
        self._counts_alone = counts_alone
        settings, command = context.settings, context.command
        self.no_debug = settings.no_debug
        self.held: dict[str, str] = {}
        self._limits = settings.limits
        self.cgroup: Cgroup | None = None
        self._resources: list[tuple[int, int]] = []
        for name, _ in settings.limits:
            if name in FILES:
                self.cgroup = self.cgroup or find_cgroup(context.id, settings.limits)
        for name, value in settings.limits:
            self._hold(name, value)
        self.programs: tuple[str, ...] = ()
        if settings.files.listed_only:
            path = path_of(command.environment)
            started = find_program(command.words[0], path)
            listed = [os.path.realpath(rule.path) for rule in settings.files.allow_execute]
            self.programs = needed_programs([*([started] if started else ()), *listed], path)

    def _hold(self, name: str, value: int) -> None:
        if name in FILES and self.cgroup is not None:
            self.held[name] = f"{self.cgroup.owner}, all processes together"
            return
        if name == "cpu":
            raise HostError(f"--limit cpu={value}% needs a cgroup, which this user cannot make here; {ADVICE}")
        if name == "processes" and not self._counts_alone:
            raise HostError(
                f"--limit processes={value}: without a cgroup the kernel counts all processes of this user; {ADVICE}"
            )
        if name == "processes" and is_exempt():
            raise HostError(
                f"--limit processes={value}: the kernel counts no processes of root without a cgroup; {ADVICE},"
                " or run as an ordinary user"
            )
        number = RESOURCES[name]
        hard = resource.getrlimit(number)[1]
        wanted = value + OWN_PROCESSES if name == "processes" else value
        if name == "core":
            wanted = max(wanted, NO_CORE)
        self._resources.append((number, wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)))
        self.held[name] = "rlimit, all processes together" if name == "processes" else "rlimit, each process"

    @property
    def steps(self) -> bytes:
        """Steps of the plan (native/plan.h), for when the session has its mounts."""
        made = [self.limit_steps]
        handled = (EXECUTE if self.programs else 0) | (READ_FILE | WRITE_FILE if self.no_debug else 0)
        if handled:
            made.append(step(b"H", numbers(handled)))
        if self.no_debug:
            made.append(step(b"P", numbers(READ_FILE | WRITE_FILE)))
        if self.programs:
            made.append(step(b"P", numbers(EXECUTE) + texts(*self.programs)))
        return b"".join(made)

    @property
    def limit_steps(self) -> bytes:
        """Those for resource limits alone."""
        each = (step(b"Z", numbers(number) + value.to_bytes(8, sys.byteorder)) for number, value in self._resources)
        return b"".join(each)

    @property
    def refused_calls(self) -> dict[int, int]:
        """For `seccomp.build`. Files in memory may be made only if they can never be executed."""
        machine = os.uname().machine
        calls = dict.fromkeys(DEBUG_CALLS[machine], 0) if self.no_debug else {}
        return calls | ({MEMFD_CREATE[machine]: MFD_NOEXEC_SEAL} if self.programs else {})

    def enter(self, pid: int) -> None:
        """Before the command runs."""
        if self.cgroup is not None:
            self.cgroup.enter(pid)

    @property
    def lines(self) -> list[str]:
        """How each limit is held, for `run -v`."""
        return [f"limit {name}={shown_value(name, value)}: {self.held[name]}" for name, value in self._limits]

    def usage(self) -> dict[str, object]:
        used = self.cgroup.usage() if self.cgroup is not None else {}
        return used | {"limits": "; ".join(self.lines)} if self._limits else used

    def close(self) -> list[str]:
        """Called when the command has ended. What the user must know."""
        if self.cgroup is None:
            return []
        reached = [f"{name}={shown_value(name, self.cgroup.wanted[name])}" for name in self.cgroup.breaches()]
        found = [f"the session reached --limit {limit}; raise it, or leave it out" for limit in reached]
        self.cgroup.close()
        self.cgroup = None
        return found


def is_exempt() -> bool:
    """Whether RLIMIT_NPROC means nothing for us: for the user 0 of the machine, not of a container's namespace."""
    if os.geteuid() != 0:
        return False
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.readline().split()[1] == "0"
