"""`netsandbox doctor`: what this machine offers, and proof from inside a real session that nothing gets out."""

from __future__ import annotations

import json

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, Option, parse

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
    from netsandbox.doctor.examine import examine
    from netsandbox.doctor.report import as_json, lines

    report = examine()
    print_text(json.dumps(as_json(report), indent=2) if "json" in parsed.flags else "\n".join(lines(report)))
    return 0 if report.ok else 1
