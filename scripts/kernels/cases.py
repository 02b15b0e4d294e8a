"""The cases: a kernel, how it is set up, and what each backend must do there. Pure data.

To try another backend, add its name to `BACKENDS`; to expect something else of it in one case, name it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kernel:
    """The newest kernel package of a Debian release, for a Debian architecture."""

    release: str
    architecture: str


@dataclass(frozen=True)
class Expected:
    """A backend must run, or refuse with one line that has all of `words`."""

    words: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        return not self.words


RUNS = Expected()


def refuses(*words: str) -> Expected:
    """The message must name what is missing."""
    return Expected(words)


KERNELS = {
    "6.1": Kernel("bookworm", "amd64"),
    "6.12": Kernel("trixie", "amd64"),
    "arm64": Kernel("trixie", "arm64"),
}
BACKENDS = ("namespaces", "broker")
ALL_RUN = dict.fromkeys(BACKENDS, RUNS)

# Steps that root takes in the guest before the tests (guest/prepare.py)
CLOSE_BY_APPARMOR, OPEN_BY_APPARMOR, FIX = "close-by-apparmor", "open-by-apparmor", "doctor-fix"
DELEGATE_CGROUP = "delegate-cgroup"
# Checks beside those that every backend gets (guest/smoke.py)
OVERLAY, GIT_CONFIGURATION, LIMITS = "overlay", "git-configuration", "limits"


@dataclass(frozen=True)
class Case:
    """`options` are added to the kernel's command line. Only the backends in `expected` are tried."""

    name: str
    kernel: str
    about: str
    options: tuple[str, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    expected: Mapping[str, Expected] = field(default_factory=lambda: ALL_RUN)


def without_user_namespaces(*words: str) -> dict[str, Expected]:
    """Where user namespaces are closed, `auto` must choose the backend that needs none."""
    return {"namespaces": refuses("ser namespaces", *words), "broker": RUNS, "auto": RUNS}


def yama(level: int) -> Case:
    """From 2 on only privileged processes may read the memory of others, at 3 none may.

    The helper of namespaces is privileged in its session; what is refused to it fails inside, so it must not start.
    """
    named = refuses("ptrace_scope")
    expected = {"namespaces": RUNS if level < 3 else named, "broker": RUNS if level < 2 else named}
    return Case(
        f"6.12-yama-{level}",
        "6.12",
        f"`kernel.yama.ptrace_scope={level}`",
        sysctls={"kernel.yama.ptrace_scope": str(level)},
        expected=expected,
    )


def userns_clone(kernel: str) -> Case:
    switch = "kernel.unprivileged_userns_clone"
    return Case(
        f"{kernel}-userns-clone-0",
        kernel,
        f"`{switch}=0`",
        sysctls={switch: "0"},
        expected=without_user_namespaces("unprivileged_userns_clone"),
    )


def overlay(kernel: str) -> Case:
    return Case(
        f"{kernel}-overlay",
        kernel,
        "`run --overlay`, and a session that changes git's configuration (link mounts)",
        checks=(OVERLAY, GIT_CONFIGURATION),
        expected={"namespaces": RUNS},
    )


CASES = (
    Case("6.1-plain", "6.1", "as Debian 12 boots it"),
    Case("6.12-plain", "6.12", "as Debian 13 boots it"),
    userns_clone("6.1"),
    userns_clone("6.12"),
    Case(
        "6.12-max-userns-0",
        "6.12",
        "`user.max_user_namespaces=0`",
        sysctls={"user.max_user_namespaces": "0"},
        expected=without_user_namespaces("user.max_user_namespaces"),
    ),
    Case(
        "6.12-apparmor-closed",
        "6.12",
        "an AppArmor profile denies `userns` to netsandbox and what it starts",
        steps=(CLOSE_BY_APPARMOR,),
        expected=without_user_namespaces(),
    ),
    Case(
        "6.12-apparmor-opened",
        "6.12",
        "the same, and a profile that grants `userns` to the helper",
        steps=(CLOSE_BY_APPARMOR, OPEN_BY_APPARMOR),
        expected={"namespaces": RUNS},
    ),
    Case(
        "6.12-apparmor-fixed",
        "6.12",
        "closed in that way, then `netsandbox doctor --fix --apply` as root",
        steps=(CLOSE_BY_APPARMOR, FIX),
        expected={"namespaces": RUNS},
    ),
    yama(1),
    yama(2),
    yama(3),
    Case(
        "6.12-no-landlock",
        "6.12",
        "booted without Landlock",
        options=("lsm=capability,yama,apparmor",),
        expected={"namespaces": RUNS, "broker": refuses("Landlock")},
    ),
    Case(
        "6.12-limits",
        "6.12",
        "a cgroup that belongs to the user, and `run --limit`",
        steps=(DELEGATE_CGROUP,),
        checks=(LIMITS,),
        expected={"namespaces": RUNS},
    ),
    overlay("6.1"),
    overlay("6.12"),
    Case("arm64-plain", "arm64", "as Debian 13 boots it on arm64"),
)


def chosen(names: Iterable[str]) -> list[Case]:
    """The cases with these names, or all of them."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in {case.name for case in CASES}]
    if unknown:
        known = " ".join(case.name for case in CASES)
        raise SystemExit(f"netsandbox: unknown case {' '.join(unknown)}; use some of: {known}")
    return [case for case in CASES if not wanted or case.name in wanted]
