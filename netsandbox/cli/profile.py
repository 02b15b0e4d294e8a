"""`netsandbox profile list | show | lint`: the profiles of `run`, and what is dangerous or mistaken in Seatbelt rules.

Exit status of lint: 0 nothing found, 1 something found, 2 the file is not there or is no profile.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from netsandbox.cli.help import print_help
from netsandbox.cli.options import FILES, FLAG, LIST, PROFILES, Option, Parsed, parse
from netsandbox.cli.output import put
from netsandbox.errors import UsageError
from netsandbox.seatbelt.findings import Finding, error
from netsandbox.seatbelt.lint import lint
from netsandbox.seatbelt.profile import load
from netsandbox.seatbelt.reader import MAX_CHARACTERS, decode
from netsandbox.seatbelt.values import ProfileSyntaxError, printable

OPTIONS = (
    Option("define", LIST, "D", "NAME=VALUE", 'value of (param "NAME"), as for sandbox-exec'),
    Option("json", FLAG, "", "", "for programs; the keys are listed in docs/seatbelt.md"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = {"list": (), "show": PROFILES, "lint": FILES}
USAGE = """\
usage: netsandbox profile list [--json]
       netsandbox profile show NAME [--json]
       netsandbox profile lint FILE.sb [-D NAME=VALUE …] [--json]

list: the profiles that `netsandbox run NAME` takes, and those that this project's files call for (docs/profiles.md).
show: what one of them comes to in this folder, each value with the line that it comes from.
lint: say what a macOS Seatbelt profile opens without meaning to, and what in it does nothing or keeps it from loading.
Nothing is run; any system will do. Parameters without a value stand for the path /param/NAME.
Exit status: 0 nothing found, 1 something found by lint, 2 not a profile."""
VERBS = {"list": 0, "show": 1, "lint": 1}  # and how many words follow
SYSTEM_PROFILES = (Path("/System/Library/Sandbox/Profiles"), Path("/usr/share/sandbox"))


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox profile")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    verb, *words = parsed.words or [""]
    if parsed.command is not None or VERBS.get(verb) != len(words):
        raise UsageError(
            "profile takes a verb; write `netsandbox profile list`, `profile show NAME` or `profile lint FILE.sb`"
        )
    if verb != "lint":
        from netsandbox.cli.profile_show import show_list, show_one

        as_json = "json" in parsed.flags
        return show_one(words[0], for_programs=as_json) if words else show_list(for_programs=as_json)
    return _lint(words[0], parsed)


def _lint(name: str, parsed: Parsed) -> int:
    data, parameters = _bytes_of(name), _parameters(parsed.all("define"))
    try:
        found = lint(load(decode(data), parameters, imported=system_profile, unset=placeholder))
        status = 1 if found else 0
    except ProfileSyntaxError as slip:
        found, status = [error(slip.line, "syntax", slip.text)], 2
    if "json" in parsed.flags:
        put(json.dumps({"v": 1, "file": name, "findings": [vars(each) for each in found]}, indent=2))
    elif found:
        put("\n".join(lines(name, found)))
    return status


def lines(name: str, found: Sequence[Finding]) -> list[str]:
    """`FILE:LINE: severity: text`, as editors and compilers know it."""
    return [f"{printable(each.source or name, 400)}:{each.line}: {each.severity}: {each.text}" for each in found]


def system_profile(name: str) -> str | None:
    """The text of a profile of this system, if it has one of that name."""
    if "/" in name or name in ("", ".", ".."):
        return None
    for folder in SYSTEM_PROFILES:
        try:
            return decode((folder / name).read_bytes()[: MAX_CHARACTERS + 1])
        except (OSError, ValueError):
            continue
    return None


def placeholder(name: str) -> str | None:
    """For a parameter that was not defined: a path that says what it stands for."""
    return f"/param/{name}"


def _bytes_of(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            data = file.read(MAX_CHARACTERS + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "not a file name"
        raise UsageError(f"{printable(name, 400)} cannot be read: {reason}; name a profile") from None
    if len(data) > MAX_CHARACTERS:
        raise UsageError(f"{printable(name, 400)} is larger than {MAX_CHARACTERS >> 20} MiB; name a profile")
    return data


def _parameters(words: Sequence[str]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"--define {printable(word)} has no value; write -D NAME=VALUE")
        parameters[name] = value
    return parameters
