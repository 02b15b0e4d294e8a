"""`netsandbox config`: the values of all configuration files together, each with the file and line it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable

from netsandbox.cli.help import print_help
from netsandbox.cli.notices import shell_word
from netsandbox.cli.terminal import print_text
from netsandbox.config.document import read_layer
from netsandbox.config.effective import effective_layers
from netsandbox.config.key_docs import SCHEMA_FILE, schema_text
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Setting
from netsandbox.config.merging import Merged, merge
from netsandbox.config.paths import project_files, user_files
from netsandbox.config.profiles.selection import ProfileRequest, check_names, select_profiles
from netsandbox.errors import UsageError
from netsandbox.paths import short
from netsandbox.runtime.option_parser import FILES, FLAG, VALUE, Option, parse
from netsandbox.text import did_you_mean, quoted, single_line

OPTIONS = (
    Option("config", VALUE, "", "FILE", "as for `netsandbox run`"),
    Option("json", FLAG, "", "", "for programs"),
    Option("global", FLAG, "g", "", "with add-path and remove-path: for sessions in all folders"),
    Option("path", FLAG, "", "", "with schema: print the path of the schema file"),
    Option("help", FLAG, "h", "", "this text"),
)
PATH_SUBCOMMANDS = ("list-paths", "add-path", "remove-path", "edit")
WORDS = {
    **{"show": (), "validate": FILES, "schema": ()},
    **{"list-paths": (), "add-path": FILES, "remove-path": FILES, "edit": ()},
}
USAGE = """\
usage: netsandbox config show [--config FILE] [--json]
       netsandbox config validate [FILE]
       netsandbox config schema [--path]
       netsandbox config list-paths | add-path PATH [--global] | remove-path PATH [--global] | edit

  netsandbox config show              each value, with the file and line it comes from
  netsandbox config add-path ~/out    sessions in this folder may write it

  show       the merged values of your file, the project's and the one of --config, each with its file and line
  validate   whether the files, or FILE, can be used
  schema     the JSON Schema of such files, for editors

The others edit your list of paths that sessions in this folder may write: one a line, with * and comments (#). With \
--global it is your configuration file, for sessions in all folders. No command can change either.
Exit status: 0 fine, 1 the path was not listed, 2 a file cannot be used."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox config")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    subcommand, *words = parsed.words or [""]
    if subcommand in PATH_SUBCOMMANDS and parsed.command is None:
        from netsandbox.cli.config_paths import run_subcommand

        return run_subcommand(subcommand, words, everywhere="global" in parsed.flags)
    if subcommand and subcommand not in WORDS:
        advice = did_you_mean(subcommand, WORDS, f"use one of {', '.join(WORDS)}")
        raise UsageError(f"config takes a subcommand, and {quoted(subcommand)} is none; {advice}")
    if parsed.command is not None or not subcommand or len(words) > (subcommand == "validate"):
        raise UsageError(f"config takes a subcommand; write `netsandbox config` and one of {', '.join(WORDS)}")
    if subcommand == "schema":
        print_text(SCHEMA_FILE if "path" in parsed.flags else schema_text())
        return 0
    if words:
        check_names([read_layer(words[0])])
        print_text(f"{single_line(words[0])}: can be used")
        return 0
    layers = effective_layers(user_files(), project_files(), parsed.values.get("config"))
    if subcommand == "validate":
        check_names(layers)
        print_text(
            "\n".join(f"{single_line(layer.path)}: can be used" for layer in layers) or "there is no configuration"
        )
        return 0
    stack = select_profiles(layers, ProfileRequest())
    merged, profiles = merge(stack.layers), [(each.profile.name, each.why) for each in stack.active]
    if "json" in parsed.flags:
        named = [{"name": name, "why": why} for name, why in profiles]
        print_text(json.dumps({**as_json(merged, stack.untrusted), "profiles": named}, indent=2))
    else:
        comments = [single_line(f"# profile {name}: {why}") for name, why in profiles]
        print_text("\n".join([*comments, *lines(merged, stack.untrusted)]))
    return 0


def lines(merged: Merged, untrusted: Iterable[tuple[str, str]] = ()) -> list[str]:
    """TOML with the origin of each value after it; ignored settings come last, as comments. *untrusted* are hosts
    that files of the project name, with their file and line."""
    shown: list[str] = []
    for table, keys in KEYS.items():
        values = [(name, merged.values[table, name]) for name in keys if (table, name) in merged.values]
        if values:
            shown += [""] * bool(shown) + [f"[{table}]"]
        for name, value in values:
            shown += _written(name, keys[name].schema.get("type") == "array", value)
    for (table, name), value in merged.ignored:
        shown.append(f"# ignored until you run `netsandbox trust`: {table}.{name}  # {short(value.origin)}")
    for name, origin in untrusted:
        argument = shell_word(origin.rpartition(":")[0])
        shown.append(f"# ignored until you run `netsandbox trust {argument}`: {name}  # {short(origin)}")
    return [*map(single_line, shown)] or ["# no file sets anything; the defaults apply: nothing leaves"]


def _written(name: str, is_list: bool, setting: Setting) -> list[str]:  # noqa: FBT001 (a kind)
    items = tuple((value, short(origin)) for value, origin in setting.items)
    empties = [short(origin) for origin in setting.empties]
    if items and isinstance(items[0][0], dict):
        return [line for table, origin in items if isinstance(table, dict) for line in _pairs(name, table, origin)]
    if not is_list:
        return [f"{name} = {json.dumps(value, ensure_ascii=True)}  # {origin}" for value, origin in items]
    if not items:
        return [f"{name} = []  # {', '.join(empties)}"]
    written = [f"    {json.dumps(value, ensure_ascii=True)},  # {origin}" for value, origin in items]
    written += [f"    # an empty list: {origin}" for origin in empties]
    return [f"{name} = [", *written, "]"]


def _pairs(name: str, table: dict[str, object], origin: str) -> list[str]:
    """A table's pairs one by one: those of several files are added up."""
    return [f"{name}.{key} = {json.dumps(value, ensure_ascii=True)}  # {origin}" for key, value in table.items()]


def as_json(merged: Merged, untrusted: Iterable[tuple[str, str]] = ()) -> dict[str, object]:
    return {
        "v": 1,
        "values": [
            {"table": table, "key": name, "value": value, "origin": origin}
            for (table, name), setting in merged.values.items()
            for value, origin in setting.written
        ],
        "ignored": [
            {"table": table, "key": name, "value": value, "origin": origin}
            for (table, name), setting in merged.ignored
            for value, origin in setting.written
        ],
        "untrusted": [{"value": value, "origin": origin} for value, origin in untrusted],
    }
