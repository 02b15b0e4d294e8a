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
    from netsandbox.doctor.report import Report

OPTIONS = (
    Option("json", FLAG, "", "", "for programs; the keys are listed in docs/doctor.md"),
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
    if sys.platform != "linux":
        raise HostError("doctor proves the Linux backend; run it on Linux")
    report = examine()
    from netsandbox.doctor.report import as_json, lines

    put(json.dumps(as_json(report), indent=2) if "json" in parsed.flags else "\n".join(lines(report)))
    return 0 if report.ok else 1


def examine() -> Report:
    """The machine first; a jail that cannot be built is not tried."""
    from netsandbox.doctor.jail import prove
    from netsandbox.doctor.machine import MISSING, checks
    from netsandbox.doctor.report import Report

    machine = checks()
    lacking = [check.name for check in machine if check.status == MISSING]
    if lacking:
        return Report(machine, [], f"{', '.join(lacking)} missing")
    try:
        return Report(machine, prove())
    except (NetsandboxError, OSError) as error:
        return Report(machine, [], str(error))
