"""`netsandbox profile list | show | lint`: the profiles of `run`, and what is dangerous or mistaken in Seatbelt rules.

Exit status of lint: 0 nothing found, 1 something found, 2 the file is not there or is no profile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from netsandbox.backends.seatbelt.model.findings import Finding, error
from netsandbox.backends.seatbelt.model.lint import lint
from netsandbox.backends.seatbelt.model.profile import load
from netsandbox.backends.seatbelt.model.reader import MAX_CHARACTERS, decode
from netsandbox.backends.seatbelt.model.values import ProfileError, ProfileSyntaxError, printable
from netsandbox.cli.help import print_help
from netsandbox.cli.options import FILES, FLAG, LIST, PROFILES, Option, Parsed, parse
from netsandbox.cli.output import put
from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = (
    Option("define", LIST, "D", "NAME=VALUE", 'value of (param "NAME"), as for sandbox-exec'),
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = {"list": (), "show": PROFILES, "lint": FILES}
USAGE = """\
usage: netsandbox profile list [--json]
       netsandbox profile show NAME [--json]
       netsandbox profile lint FILE.sb | NAME [-D NAME=VALUE …] [--json]

list: the profiles that `netsandbox run NAME` takes, and those that this project's files call for.
show: what one of them comes to in this folder, each value with the line that it comes from.
lint: say what a macOS Seatbelt profile opens without meaning to, and what in it does nothing or keeps it from loading.
Nothing is run; any system will do. Parameters without a value stand for the path /param/NAME.
Exit status: 0 nothing found, 1 something found by lint, 2 not a profile."""
RAW = ("seatbelt", "raw")
RAW_PLACES = {"home": "/param/home", "working_dir": "/param/working_dir"}  # as a Mac's session would have its own
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
    return _lint_raw(words[0], parsed) if _is_named(words[0]) else _lint(words[0], parsed)


def _is_named(word: str) -> bool:
    """Whether *word* is a profile of `run`, and no file."""
    from netsandbox.config.paths import is_profile_name
    from netsandbox.config.profiles.profile_files import find

    return is_profile_name(word) and not os.path.lexists(word) and find(word) is not None


def _lint_raw(name: str, parsed: Parsed) -> int:
    """The profile can be used, or this is an error; what is in its raw rules is said line by line."""
    from netsandbox.backends.seatbelt.profile.raw_rules import raw_findings
    from netsandbox.config.profiles.selection import Wanted, stacked

    stack = stacked([], Wanted((name,), detect=False, ask=False))
    layer = next(each.profile.layer for each in stack.used if each.profile.name == name)
    said: Any = layer.values[RAW].value if RAW in layer.values else ()
    found, status = [], 0
    for text, origin in said:
        try:
            found += [
                Finding(each.line, each.severity, each.check, each.text, origin)
                for each in raw_findings(text, RAW_PLACES)
            ]
            status = max(status, 1 if found else 0)
        except (ProfileError, UsageError) as slip:
            line = slip.line if isinstance(slip, ProfileError) else 0
            found.append(Finding(line, "error", "raw", getattr(slip, "text", str(slip)), origin))
            status = 2
    return _told(name, found, parsed, status)


def _lint(name: str, parsed: Parsed) -> int:
    data, parameters = _bytes_of(name), _parameters(parsed.all("define"))
    try:
        found = lint(load(decode(data), parameters, imported=system_profile, unset=placeholder))
        status = 1 if found else 0
    except ProfileSyntaxError as slip:
        found, status = [error(slip.line, "syntax", slip.text)], 2
    return _told(name, found, parsed, status)


def _told(name: str, found: Sequence[Finding], parsed: Parsed, status: int) -> int:
    if "json" in parsed.flags:
        put(json.dumps({"v": 1, "file": name, "findings": [vars(each) for each in found]}, indent=2))
    else:
        put("\n".join(lines(name, found)) or f"{printable(name, 400)}: nothing found")
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
