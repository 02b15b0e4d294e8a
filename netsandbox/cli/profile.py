"""`netsandbox profile list | show | lint`: the profiles of `run`, and mistakes in their raw Seatbelt rules.

Exit status of lint: 0 no finding, 1 a warning, 2 the rules cannot be used or there is no such profile.
"""

from __future__ import annotations

import json
from typing import Any

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.runtime.option_parser import FLAG, PROFILES, Option, parse
from netsandbox.text import did_you_mean, quoted, single_line

OPTIONS = (
    Option("json", FLAG, "", "", "for programs"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = {"list": (), "show": PROFILES, "lint": PROFILES}
USAGE = """\
usage: netsandbox profile list [--json]
       netsandbox profile show NAME [--json]
       netsandbox profile lint NAME [--json]

  netsandbox profile show node     what `netsandbox run node` would open here

  list   the profiles for `netsandbox run NAME`, and which of them this project selects
  show   the values of one profile in this folder, each with its file and line
  lint   check a profile and its raw rules for macOS; nothing is run, so it works on any system

Exit status: 0 nothing found, 1 lint has a warning, 2 the profile cannot be used."""
RAW = ("seatbelt", "raw")
RAW_PARAMETERS = {"home": "/param/home", "working_dir": "/param/working_dir"}  # a session on a Mac has real folders
WORD_COUNTS = {"list": 0, "show": 1, "lint": 1}  # how many words follow each subcommand


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox profile")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    subcommand, *words = parsed.words or [""]
    if subcommand and subcommand not in WORDS:
        advice = did_you_mean(subcommand, WORDS, f"use one of {', '.join(WORDS)}")
        raise UsageError(f"profile takes a subcommand, and {quoted(subcommand)} is none; {advice}")
    if not subcommand:
        raise UsageError(
            "profile takes a subcommand; write `netsandbox profile list`, `profile show NAME` or `profile lint NAME`"
        )
    if parsed.command is not None or WORD_COUNTS[subcommand] != len(words):
        if WORD_COUNTS[subcommand]:
            usage = f"write `netsandbox profile {subcommand} NAME`; `netsandbox profile list` has the names"
            raise UsageError(f"profile {subcommand} takes the name of one profile; {usage}")
        raise UsageError("profile list takes no arguments; write `netsandbox profile list`")
    from netsandbox.cli.profile_show import show_list, show_one

    as_json = "json" in parsed.flags
    if subcommand == "lint":
        return _lint(words[0], as_json=as_json)
    return show_one(words[0], for_programs=as_json) if words else show_list(for_programs=as_json)


def _lint(name: str, *, as_json: bool) -> int:
    """Read the profile as `run` would, then its raw rules."""
    from netsandbox.backends.seatbelt.profile.raw_forms import RawRuleError
    from netsandbox.backends.seatbelt.profile.raw_rules import check_raw
    from netsandbox.cli.profile_show import known
    from netsandbox.config.profiles.selection import ProfileRequest, select_profiles

    stack = select_profiles([], ProfileRequest((known(name),), detect=False, query_tools=False))
    layer = next(each.profile.layer for each in stack.active if each.profile.name == name)
    texts: Any = layer.values[RAW].value if RAW in layer.values else ()
    findings: list[dict[str, object]] = []
    status = 0
    for text, origin in texts:
        try:
            warnings = check_raw(text, RAW_PARAMETERS)
            findings += [_finding(origin, line, "warning", message) for line, message in warnings]
            status = max(status, 1 if warnings else 0)
        except RawRuleError as error:
            findings.append(_finding(origin, error.line, "error", str(error)))
            status = 2
    if as_json:
        print_text(json.dumps({"v": 1, "profile": name, "findings": findings}, indent=2))
    else:
        lines = ["{source}:{line}: {severity}: {text}".format_map(each) for each in findings]
        print_text("\n".join(map(single_line, lines)) or f"{name}: nothing found")
    return status


def _finding(source: str, line: int, severity: str, text: str) -> dict[str, object]:
    return {"source": source, "line": line, "severity": severity, "text": text}
