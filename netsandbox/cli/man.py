"""`netsandbox man`: the manual page. pipx and uv install it where `man` does not look.

Where `man` is missing, the page is laid out here. It has few of the macros of man(7): scripts/manual.py writes it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import page_width, print_text
from netsandbox.errors import HostError, UsageError
from netsandbox.paths import PACKAGE
from netsandbox.runtime.option_parser import FLAG, Option, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = (Option("help", FLAG, "h", "", "this text"),)
USAGE = """\
usage: netsandbox man

Show the manual page: every command, option, configuration key and variable."""
PAGE = "netsandbox.1"
PLACES = (  # of an installation, and of a clone
    os.path.join(PACKAGE, "cli", PAGE),
    os.path.join(os.path.dirname(PACKAGE), "docs", PAGE),
)
TEXT, OPTION = 7, 14  # columns
FONTS = re.compile(r"\\f[BIR]|\\&")


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox man")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if parsed.words or parsed.command:
        raise UsageError("man takes no arguments; `netsandbox help COMMAND` shows one command")
    page = next(filter(os.path.exists, PLACES), None)
    if page is None:
        raise HostError(f"there is no {PLACES[0]}; install netsandbox again, or use `netsandbox help COMMAND`")
    if sys.stdout.isatty() and _is_shown(page):
        return 0
    with open(page, encoding="utf-8") as file:
        text = "\n".join(laid_out(file.read(), page_width()))
    if sys.stdout.isatty():
        from pydoc import pager  # the user's MANPAGER or PAGER, or less

        pager(text)
    else:
        print_text(text)
    return 0


def _is_shown(page: str) -> bool:
    """Whether `man` has shown *page*. In a minimized Ubuntu, `man` is a script that says so and shows nothing."""
    program = shutil.which("man")
    if program is None:
        return False
    try:
        with open(program, "rb") as file:
            is_stand_in = b"has been minimized" in file.read(4096)
        return not is_stand_in and subprocess.run([program, page], check=False).returncode == 0
    except OSError:
        return False


def laid_out(page: str, width: int) -> Iterator[str]:
    """The lines of a manual page in plain text. A paragraph is filled; what stands between .nf and .fi is not."""
    waiting: list[str] = []
    column, is_filled, is_tag = TEXT, True, False
    for line in page.splitlines():
        macro, _, rest = line.partition(" ") if line.startswith(".") else ("", "", line)
        text = _plain(rest)
        if macro in (".B", ".I") or (not macro and is_filled and not is_tag):
            waiting.append(text)
            continue
        yield from _filled(waiting, column, width)
        waiting.clear()
        if not macro:
            yield f"{' ' * TEXT}{text}".rstrip()
            column, is_tag = OPTION if is_tag else column, False
        elif macro == ".TH":
            yield "{}({})".format(*text.split()[:2])
        elif macro in (".SH", ".SS"):
            yield from ("", text if macro == ".SH" else f"   {text}")
            column = TEXT
        elif macro in (".PP", ".TP"):
            yield ""
            column, is_tag = TEXT, macro == ".TP"
        elif macro in (".nf", ".fi"):
            is_filled = macro == ".fi"
    yield from _filled(waiting, column, width)


def _filled(texts: list[str], column: int, width: int) -> list[str]:
    margin = " " * column
    wrapper = textwrap.TextWrapper(
        max(width, 40),
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(" ".join(texts))


def _plain(text: str) -> str:
    """Without the escapes of roff."""
    return FONTS.sub("", text).replace("\\-", "-").replace("\\e", "\\")
