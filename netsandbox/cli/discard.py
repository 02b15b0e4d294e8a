"""`netsandbox discard`: throws away what sessions changed in their overlays."""

from __future__ import annotations

import sys

from netsandbox.cli.changes import kept_overlays, name_here
from netsandbox.cli.help import print_help
from netsandbox.cli.progress import progress
from netsandbox.cli.terminal import confirm, notice
from netsandbox.paths import short
from netsandbox.runtime.option_parser import FLAG, OVERLAYS, Option, parse
from netsandbox.text import single_line

OPTIONS = (
    Option("yes", FLAG, "y", "", "do not ask"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = OVERLAYS
USAGE = """\
usage: netsandbox discard [NAME…] [--yes]

  netsandbox discard shop

Throw away the changes that the session NAME made in its overlay (`netsandbox run --overlay`). The project stays as it \
is. NAME may be left out in a folder of which one session keeps changes; `netsandbox changes` lists the names."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox discard")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    words = [*parsed.words, *(parsed.command or ())]
    kept = kept_overlays()
    words = words or [name_here(kept, "discard")]
    for overlay in [kept.load(word) for word in dict.fromkeys(words)]:  # every name is known before one is removed
        held = kept.hold(overlay.name)
        try:
            question = f"Throw away what {overlay.name} changed in {single_line(short(overlay.folder))}?"
            if "yes" not in parsed.flags and not (sys.stdin.isatty() and confirm(question)):
                notice("nothing was removed; add --yes, or answer y")
                return 1
            with progress("removing the changes"):
                held.remove()
        finally:
            held.close()
    return 0
