"""`netsandbox doctor`: what this machine offers, and proof from inside a real session that nothing gets out."""

from __future__ import annotations

import json
import sys

from netsandbox.cli.help import print_help
from netsandbox.cli.options import FLAG, Option, parse
from netsandbox.cli.output import put
from netsandbox.errors import HostError, NetsandboxError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.doctor.check import Check
    from netsandbox.doctor.jail import Finding
    from netsandbox.doctor.report import Report

OPTIONS = (
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = """\
usage: netsandbox doctor [--json]

Check what this machine offers, then run probes inside a real session against canaries outside it.
Exit status: 0 when everything needed is there and nothing got out, else 1."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox doctor")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.words or parsed.command is not None:
        raise UsageError("doctor takes no arguments; write `netsandbox doctor`")
    if sys.platform not in ("linux", "darwin"):
        raise HostError("there is no session on this system that doctor could prove; run it on Linux or macOS")
    report = examine_mac() if sys.platform == "darwin" else examine()
    from netsandbox.doctor.report import as_json, lines

    put(json.dumps(as_json(report), indent=2) if "json" in parsed.flags else "\n".join(lines(report)))
    return 0 if report.ok else 1


def examine() -> Report:
    from netsandbox.doctor.jail import prove
    from netsandbox.doctor.machine import checks

    return judged(checks(), prove)


def examine_mac() -> Report:
    from netsandbox.backends.seatbelt.launch import library_trouble, way_of
    from netsandbox.backends.seatbelt.mac_system import this_mac
    from netsandbox.doctor.mac_jail import prove_mac
    from netsandbox.doctor.mac_machine import checks

    here = this_mac()
    return judged(checks(here), lambda: prove_mac(library=not library_trouble(here, way_of(here))))


def judged(machine: list[Check], prove: Callable[[], list[Finding]]) -> Report:
    """The machine first; a jail that cannot be built is not tried."""
    from netsandbox.doctor.check import MISSING
    from netsandbox.doctor.report import Report

    lacking = [check.name for check in machine if check.status == MISSING]
    if lacking:
        return Report(machine, [], f"{', '.join(lacking)} missing")
    try:
        return Report(machine, prove())
    except (NetsandboxError, OSError) as error:
        return Report(machine, [], str(error))
