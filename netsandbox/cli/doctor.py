"""`netsandbox doctor`: what this machine offers, and proof from inside a real session that nothing gets out."""

from __future__ import annotations

import json

from netsandbox.backends import BACKENDS
from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import notice, print_text
from netsandbox.errors import HostError, UsageError
from netsandbox.paths import state_home
from netsandbox.runtime.option_parser import FLAG, VALUE, Option, parse
from netsandbox.system import IS_LINUX

OPTIONS = (
    Option(
        "backend",
        VALUE,
        "",
        "NAME",
        "examine this backend alone: namespaces or broker on Linux, seatbelt on macOS",
        tuple(BACKENDS),
    ),
    Option("verbose", FLAG, "v", "", "list every check and probe, not only what needs a look"),
    Option("json", FLAG, "", "", "for programs"),
    Option("fix", FLAG, "", "", "print the commands that open user namespaces on this machine"),
    Option("apply", FLAG, "", "", "with --fix, as root: install and load the AppArmor profile for the helper"),
    Option("remove", FLAG, "", "", "with --fix, as root: unload and remove that profile"),
    Option("help", FLAG, "h", "", "this text"),
)
USAGE = """\
usage: netsandbox doctor [--backend NAME] [-v | --json]
       netsandbox doctor --fix [--apply | --remove]

Check what this machine offers, then run probes inside real sessions against canaries outside them, for each backend \
that can run here. The verdict comes first, then what needs a look. What a backend cannot keep by design is a note.
Exit status: 0 when a backend can run and nothing got out, else 1.

With --fix nothing is checked but why user namespaces are closed, and the commands that open them are printed.
Exit status: 0 when there is nothing to fix, or when it was done, else 1."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox doctor")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.words or parsed.command is not None:
        raise UsageError("doctor takes no arguments; write `netsandbox doctor`")
    if parsed.flags & {"fix", "apply", "remove"}:
        return _fix(parsed.flags, has_backend="backend" in parsed.values)
    if IS_LINUX:
        from netsandbox.backends.linux.unsettled import settle_killed

        for line in settle_killed(state_home()):
            notice(line)
    from netsandbox.cli.progress import progress
    from netsandbox.doctor.examine import examine
    from netsandbox.doctor.report import as_json, lines

    with progress("checking this machine, and trying to get out of a session"):
        report = examine(parsed.values.get("backend"))
    text = "\n".join(lines(report, verbose="verbose" in parsed.flags))
    print_text(json.dumps(as_json(report), indent=2) if "json" in parsed.flags else text)
    return 0 if report.ok else 1


def _fix(flags: set[str], *, has_backend: bool) -> int:
    if "fix" not in flags:
        option = "--apply" if "apply" in flags else "--remove"
        raise UsageError(f"{option} belongs to --fix; write `netsandbox doctor --fix {option}`")
    if {"apply", "remove"} <= flags:
        raise UsageError("--apply and --remove contradict each other; give one of them")
    if has_backend:
        raise UsageError("--fix is about user namespaces and takes no --backend; leave it out")
    if "json" in flags:
        raise UsageError("--fix prints a shell script and no JSON; leave out --json")
    if not IS_LINUX:
        raise HostError("--fix is for Linux; `netsandbox doctor` says what is missing here")
    from netsandbox.cli import doctor_fix

    if "apply" in flags:
        return doctor_fix.apply()
    return doctor_fix.remove() if "remove" in flags else doctor_fix.print_fixes()
