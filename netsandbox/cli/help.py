"""Help texts: what a newcomer reads first."""

from __future__ import annotations

import sys

from netsandbox.cli.options import help_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox.cli.options import Option

OVERVIEW = """\
usage: netsandbox COMMAND …

Run a command so that it reaches only the names it is allowed, with a record of every attempt.

  netsandbox run --allow-domain example.com -- curl https://example.com/
  netsandbox run --allow-domain "$(npm config get registry)" -- npm install

commands:
  run       run a command, or a shell, in the sandbox
  explain   say whether a host would be let through, and why
  audit     read the log: tail, show, summary, verify
  doctor    check this machine and prove the jail on it

`netsandbox COMMAND --help` lists the options of each. Documentation: docs/cli.md
"""


def print_overview() -> int:
    sys.stdout.write(OVERVIEW)
    return 0


def print_help(usage: str, options: Sequence[Option]) -> int:
    sys.stdout.write("\n".join([usage, "", "options:", *help_lines(options)]) + "\n")
    return 0
