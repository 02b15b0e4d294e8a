"""Findings about what a profile reaches besides the network: secrets, other programs, terminals, the kernel. Pure.

Most are found by asking: a request that no confined program should be allowed is put to all the rules under every
model, so it does not matter how the allowance is written, and a deny that holds under every model silences it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from netsandbox.backends.seatbelt.profile.operations import covers as covers_operation
from tests.seatbelt_model.coverage import covers
from tests.seatbelt_model.filters import LITERAL, SUBPATH, Filter, Path, plain
from tests.seatbelt_model.findings import Finding, warning
from tests.seatbelt_model.openings import openings
from tests.seatbelt_model.profile import ALLOW, Rule
from tests.seatbelt_model.request import Request, file, lookup
from tests.seatbelt_model.values import written

CERTIFICATES = "com.apple.trustd.agent"
ANYBODY = "/Users/somebody"  # stands for the user where a profile names no home
MAX_PAIRS = 1_000_000  # of a path that is run and a rule by which it may be written
_HOME = re.compile(r"/(?:Users/[^/]+|param/(?:HOME|home|HOME_DIR))\Z")
_PROCESSES = (
    (
        Request("signal", attributes={"target": "others"}),
        "signals reach every program of the user",
        "write (target self) and (target same-sandbox)",
    ),
    (
        Request("process-info-pidinfo", attributes={"target": "others"}),
        "every program of the user can be looked into",
        "write (target self) and (target same-sandbox)",
    ),
    (
        Request("sysctl-read", attributes={"sysctl-name": "kern.procargs2"}),
        "kern.procargs2 gives the environment of every program of the user, and with it tokens",
        "name the facts that are needed with sysctl-name",
    ),
    (
        Request("ipc-posix-shm-write-create", attributes={"ipc-posix-name": "any"}),
        "shared memory is common to all programs of the user",
        "name what is needed with ipc-posix-name",
    ),
)
_KERNEL = (
    (
        Request(
            "system-socket", attributes={"socket-domain": "AF_SYSTEM", "socket-type": None, "socket-protocol": None}
        ),
        "sockets to the kernel's own parts can be made, such as tunnels and packet filters",
    ),
    (
        Request("iokit-open-user-client", attributes={"iokit-user-client-class": "any", "iokit-connection": None}),
        "every driver can be talked to",
    ),
)
_TERMINALS = ("/dev/tty", "/dev/ttys000")


def reach_findings(rules: Sequence[Rule]) -> list[Finding]:
    return [
        *_processes(rules),
        *_kernel(rules),
        *_terminals(rules),
        *_certificates(rules),
        *_homes(rules),
        *_written_and_run(rules),
    ]


def _processes(rules: Sequence[Rule]) -> Iterator[Finding]:
    for request, what, remedy in _PROCESSES:
        for rule, condition in openings(rules, request):
            yield warning(rule.line, "processes", f"{what}{condition}; {remedy}", rule.source)


def _kernel(rules: Sequence[Rule]) -> Iterator[Finding]:
    for request, what in _KERNEL:
        for rule, condition in openings(rules, request):
            yield warning(rule.line, "kernel", f"{what}{condition}; name the one that is needed", rule.source)


def _terminals(rules: Sequence[Rule]) -> Iterator[Finding]:
    for path in _TERMINALS:
        for rule, condition in openings(rules, Request("file-ioctl", path=path, attributes={"extension": None})):
            text = (
                f"file-ioctl on {path} may let the command type into the terminal (TIOCSTI), for the shell outside to"
                f" run{condition}; leave it out, or start the command in a terminal of its own"
            )
            yield warning(rule.line, "terminal", text, rule.source)


def _certificates(rules: Sequence[Rule]) -> Iterator[Finding]:
    for rule, condition in openings(rules, lookup(CERTIFICATES)):
        if rule.filter is not None:  # every service at once is told apart
            text = (
                f"{CERTIFICATES} fetches from addresses that a certificate names, past any proxy{condition};"
                " leave it out unless programs in Go need TLS"
            )
            yield warning(rule.line, "certificates", text, rule.source)


def _homes(rules: Sequence[Rule]) -> Iterator[Finding]:
    """Keys that can be read, and files that the host runs later that can be written, in each home that is named."""
    for home in _named_homes(rules):
        for rule, condition in openings(rules, file("file-read-data", f"{home}/.ssh/id_ed25519")):
            text = f"keys in {written(home + '/.ssh')} can be read{condition}; deny secrets by name, after all allows"
            yield warning(rule.line, "secrets", text, rule.source)
        for rule, condition in openings(rules, file("file-write-data", f"{home}/.zshrc")):
            text = (
                f"{written(home + '/.zshrc')} can be written{condition}, and the user's next shell runs it, unconfined;"
                " allow the project's folder only"
            )
            yield warning(rule.line, "run-later", text, rule.source)


def _named_homes(rules: Sequence[Rule]) -> list[str]:
    """The homes that some rule opens as a whole; else anybody's."""
    leaves = [leaf for rule in rules if rule.filter is not None for leaf in plain(rule.filter)]
    named = {leaf.value for leaf in leaves if isinstance(leaf, Path) and _HOME.match(leaf.value)}
    return sorted(named)[:10] or [ANYBODY]


def _written_and_run(rules: Sequence[Rule]) -> Iterator[Finding]:
    writing = [rule.filter for rule in _allowing(rules, "file-write-data") if rule.filter is not None]
    left = MAX_PAIRS
    for rule in _allowing(rules, "process-exec*"):
        leaves = [] if rule.filter is None else plain(rule.filter, narrowing=False)
        left -= len(leaves) * sum(len(plain(filter_)) for filter_ in writing)
        found = [leaf for leaf in leaves if left >= 0 and _is_written(leaf, writing)]
        if found:
            first = found[0]
            assert isinstance(first, Path)
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            text = (
                f"what is written to {written(first.value)}{more} can be run; allow this for the project's own folders,"
                " never where the host looks for programs"
            )
            yield warning(first.line, "written-and-run", text, rule.source)


def _is_written(leaf: Filter, writing: Sequence[Filter]) -> bool:
    if not isinstance(leaf, Path) or leaf.how not in (LITERAL, SUBPATH):
        return False
    return any(covers(filter_, leaf) for filter_ in writing)


def _allowing(rules: Sequence[Rule], operation: str) -> list[Rule]:
    return [
        rule
        for rule in rules
        if rule.action == ALLOW and any(covers_operation(name, operation) for name in rule.operations)
    ]
