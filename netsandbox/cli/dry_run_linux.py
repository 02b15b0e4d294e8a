"""`netsandbox run --dry-run` on Linux: what would be set up, as text; nothing is started and nothing is taken.

Made from the same values as a session: the doors and mounts of `plan`, the calls of `seccomp`, the policy.
What only a session knows (its id, its window) is stood in for by words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from netsandbox_portmap import DATAGRAM_PORT, DNS_PORT, PROXY_URL, TRANSPARENT_PORT
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.reservation import HOST_LOCKS

from netsandbox.backends.contract import session_environment
from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.file_view import file_view
from netsandbox.backends.linux.seccomp import SyscallTable, syscall_table
from netsandbox.backends.linux.session_root import DENIED, Entry, SessionRoot
from netsandbox.backends.namespaces import plan
from netsandbox.backends.namespaces.launch import FILES
from netsandbox.backends.namespaces.mount_view import session_view
from netsandbox.backends.namespaces.plan import Door, View
from netsandbox.cli.notices import withheld_names
from netsandbox.cli.policy_text import labelled, policy_lines
from netsandbox.frozen import copy_with, frozen
from netsandbox.paths import config_home, log_path, sessions_dir, state_home
from netsandbox.policy.file_rules import PROJECT, FileRules
from netsandbox.policy.limits import shown_value
from netsandbox.policy.policy import Policy
from netsandbox.runtime.protection import bytecode_folders, own_paths
from netsandbox.session.launch import inherited
from netsandbox.settings import Bounds, RunSettings
from netsandbox.text import printable, single_line

SESSION = "SESSION"
NAMESPACES = ("user", "net", "mnt", "pid", "ipc")
WIDTH = 100
NOTHING = ("/dev/null", os.path.join(FILES, "nothing"))
CAPTURE = (
    "loopback alone; every IPv4 and IPv6 address is routed to it (table local)",
    "nft table netsandbox, chain capture, first match:",
    f"  port {DNS_PORT}: to the session's resolver",
    "  127.0.0.0/8 and ::1: stay in the session",
    f"  TCP to anywhere else: tproxy to the door at {TRANSPARENT_PORT}",
    f"  UDP to anywhere else: tproxy to {DATAGRAM_PORT}, recorded and dropped",
)


@frozen
class Planned:
    """The parts of a session."""

    command: Sequence[str]
    mounts: tuple[str, ...]  # lines
    doors: tuple[Door, ...]
    abi: SyscallTable
    trapped_calls: tuple[str, ...]  # calls that the supervisor decides
    added: tuple[str, ...]  # names of variables that are set or changed
    withheld: Sequence[str]
    log: str


def plan_text(command: Sequence[str], policy: Policy, settings: RunSettings) -> str:
    """The whole text; looks at the disk as a session does, and writes nothing."""
    return "\n".join(plan_lines(_planned(command, settings), policy, settings)) + "\n"


def _planned(command: Sequence[str], settings: RunSettings) -> Planned:
    outer = inherited(settings)
    log = log_path(SESSION, settings.audit_log) if settings.audit_log else f"{sessions_dir()}/{SESSION}/audit.jsonl"
    local = settings.localhost
    return Planned(
        command,
        tuple(_mounts_of(settings, command, log, outer)),
        plan.doors()
        + plan.localhost_doors((door.inside for door in local.connect_host), requests=local.engine == "preload"),
        syscall_table(os.uname().machine),
        seccomp.trapped(local.trapped_calls),
        tuple(_added(settings, outer)),
        withheld_names(settings),
        log,
    )


def _mounts_of(settings: RunSettings, command: Sequence[str], log: str, outer: Mapping[bytes, bytes]) -> list[str]:
    if settings.files.mode != PROJECT:
        return [*mount_lines(_view(settings, log, outer)), *_overlay(settings.files)]
    from netsandbox.backends.namespaces.planned_view import planned_root

    kept = (*settings.configs, *settings.written)
    root = planned_root(settings.files, outer, command[0] if command else "", (*kept, log))
    return [*root_lines(root), *_overlay(settings.files)]


def _overlay(files: FileRules) -> list[str]:
    if files.overlay is None:
        return []
    from netsandbox.backends.namespaces.overlay_view import overlay_folder

    folder = overlay_folder(files.overlay, os.path.realpath(state_home()))
    return [f"overlay    {printable(folder)} (the command changes a copy, which is kept)"]


def _view(settings: RunSettings, log: str, outer: Mapping[bytes, bytes]) -> View:
    """The same as in `Session`, for folders that may not exist yet."""
    placed = settings.audit_log is not None and log == os.path.abspath(settings.audit_log)
    own = own_paths(
        log if placed else None,
        config_home(),
        *bytecode_folders(),
        *settings.configs,
        *settings.written,
        logs=os.path.dirname(log) if settings.audit_log and not placed else None,
    )
    view = session_view(own, rules=file_view(settings.files, outer))
    hidden = tuple(dict.fromkeys((state_home(), *view.hidden)))
    return copy_with(view, hidden=hidden)


def _added(settings: RunSettings, outer: Mapping[bytes, bytes]) -> list[str]:
    inner = session_environment(
        outer,
        SESSION,
        mode=settings.mode,
        name=settings.name,
        proxy=PROXY_URL if settings.proxy_env else None,
    )
    names = {name for name, value in inner.items() if os.environb.get(name) != value}
    if settings.localhost.has_window:
        names |= {b"LISTENING_BASE_PORT", b"LISTENING_PORT_COUNT"}
    return sorted(printable(os.fsdecode(name)) for name in names)


def plan_lines(planned: Planned, policy: Policy, settings: RunSettings) -> list[str]:
    """The plan, readable (pure)."""
    words = " ".join(map(printable, planned.command)) or "your shell"
    return [
        "# What `netsandbox run` would set up. Nothing was started.",
        "",
        *labelled("command", [words]),
        *labelled("spaces", [f"new namespaces: {', '.join(NAMESPACES)}; no capability; your own user and group"]),
        *labelled("network", CAPTURE),
        *labelled("doors", map(_door, planned.doors)),
        *labelled("localhost", _localhost(settings.localhost)),
        *labelled("calls", _calls(planned.abi, planned.trapped_calls)),
        *labelled("mounts", planned.mounts),
        *labelled("variables", _variables(planned)),
        *labelled("limits", [_limits(settings.bounds), *_process_rules(settings)]),
        *labelled("log", [printable(planned.log)]),
        "",
        "# The policy:",
        *map(single_line, policy_lines(policy, settings, planned.withheld)),
    ]


def _door(door: Door) -> str:
    family = "IPv6" if door.family == plan.AF_INET6 else "IPv4"
    kind = "TCP" if door.kind == plan.SOCK_STREAM else "UDP"
    where = "loopback" if door.loopback else "any address"
    return f"{door.name:<13} {kind} {family} port {door.port:<5} {where}"


def _localhost(settings: LocalhostSettings) -> list[str]:
    lines = [f"strategy {settings.strategy}, engine {settings.engine}"]
    if settings.has_window:
        first, last = settings.pool
        base = f"from port {settings.base}" if settings.base else f"that is free between {first} and {last}"
        lines.append(f"a window of {settings.count or 'up to 100'} ports of the host {base}")
    if settings.publish is None:
        return [*lines, "every port that listens is published there"]
    shown = [f"{inner} at {outer}" if outer else str(inner) for inner, outer in settings.publish]
    return [*lines, f"published: {', '.join(shown) or 'nothing'}"]


def _calls(abi: SyscallTable, trapped_calls: Iterable[str]) -> list[str]:
    return [
        *_wrapped("refused (EPERM): ", abi.refused),
        *_wrapped("reported as missing (ENOSYS): ", abi.absent),
        *_wrapped("judged by their arguments: ", seccomp.CHECKED),
        *_wrapped("decided by the supervisor: ", (*trapped_calls, "sockets other than TCP and UDP")),
    ]


# The order of the groups, and what each is called.
GROUPS = {
    "writable": "writable   {path}",
    "cache": "cache      {path} (the host's, with changes that are kept for the project)",
    "private": "private    {path}",
    "protected": "protected  {path} (in what is writable)",
    "hidden": "hidden     {path}",
    "shown": "read-only  {path}",
    "link": "link       {path} -> {source}",
}


def root_lines(root: SessionRoot) -> list[str]:
    """The root of a session in the mode `project` (pure)."""
    groups: dict[str, list[str]] = {name: [] for name in GROUPS}
    for path in sorted({names[1] if kind == "M" else names[-1] for kind, _, names in root.steps()}):
        entry = root.entries[path]
        if entry.kind != "folder" and not (path.startswith("/dev/") or path == "/proc"):
            name = _group(path, entry, root)
            groups[name].append(GROUPS[name].format(path=printable(path), source=printable(entry.source)))
    return [
        "a root of its own: nothing else of this machine is there; own /proc and /dev",
        *(line for group in groups.values() for line in group),
    ]


def _group(path: str, entry: Entry, root: SessionRoot) -> str:
    if entry.kind in ("link", "cache"):
        return entry.kind
    if entry.kind == "cover":
        return "protected"
    if entry.kind != "show" or entry.upper == "ours":
        return "private" if entry.rank != DENIED else "hidden"
    if entry.writable:
        return "writable"
    held = root.holder(path)
    return "protected" if held is not None and held[1].writable and held[1].passes is False else "shown"


def mount_lines(view: View) -> list[str]:
    """In the order of the plan (pure)."""
    return [
        "own /proc, /dev/shm and /dev/mqueue; /sys and the kernel's switches read-only",
        *(f"{_kind(ours)} {printable(theirs)}" for ours, theirs in view.files),
        f"covered    {HOST_LOCKS}, where it is",
        *(f"kept       {printable(path)} (cannot be moved)" for path in (*view.pinned, *view.links)),
        *(f"read-only  {printable(path)}" for path in view.read_only),
        *(f"hidden     {printable(path)}" for path in view.hidden),
        *(f"closed     {printable(path)}" for _, path in view.covered),
        *_writable(view),
    ]


def _kind(ours: str) -> str:
    """The file that is mounted over a path of the host: one with content, or an empty one."""
    return f"{'empty' if ours in NOTHING else 'ours':<10}"


def _writable(view: View) -> list[str]:
    if view.writable is None:
        return ["the rest can be written as you can"]
    return ["the rest is read-only but for:", *(f"writable   {printable(path)}" for path in view.writable)]


def _variables(planned: Planned) -> list[str]:
    return [*_wrapped("set: ", planned.added), *_wrapped("withheld: ", planned.withheld or ("none",))]


def _process_rules(settings: RunSettings) -> list[str]:
    found = [f"--limit {name}={shown_value(name, value)}" for name, value in settings.limits]
    found += ["no program reads or traces another one"] if settings.no_debug else []
    if settings.files.listed_only:
        listed = (printable(rule.path) for rule in settings.files.allow_execute)
        found.append(f"nothing is executed but {', '.join(('the command', *listed))}, and what they need to start")
    return found


def _limits(bounds: Bounds) -> str:
    return (
        f"{bounds.connections} connections at each door, {bounds.idle_seconds} s without a byte,"
        f" {bounds.log_megabytes} MB a file of the log"
    )


def _wrapped(title: str, words: Iterable[str]) -> list[str]:
    """*words* in lines of a bearable length, the later ones set in."""
    lines = [title]
    for number, word in enumerate(words):
        text = word if number == 0 else f", {word}"
        if len(lines[-1]) + len(text) > WIDTH:
            lines[-1] += ","
            lines.append(f"  {word}")
        else:
            lines[-1] += text
    return lines
