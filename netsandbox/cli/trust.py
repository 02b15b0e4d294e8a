"""`netsandbox trust [FILE]`: let a file that others may have written open what it names, after the user has seen it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import confirm, print_text
from netsandbox.config.cache import fingerprint
from netsandbox.config.document import layer_of, parsed, read
from netsandbox.config.merging import merge
from netsandbox.config.paths import project_files
from netsandbox.config.profiles.profile import profile_of
from netsandbox.config.profiles.profile_files import is_configuration, is_project_profile
from netsandbox.config.profiles.registry_rules import is_used_by_tools, registries_of, tools_run_from
from netsandbox.config.trust import distrust, is_trusted, trust, trusted_paths
from netsandbox.errors import UsageError
from netsandbox.paths import short
from netsandbox.runtime.option_parser import FILES, FLAG, Option, parse
from netsandbox.text import single_line

OPTIONS = (
    Option("yes", FLAG, "y", "", "do not ask"),
    Option("list", FLAG, "l", "", "show the files that are trusted"),
    Option("forget", FLAG, "", "", "trust the file no longer"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = FILES
USAGE = """\
usage: netsandbox trust [--yes | --forget] [FILE]
       netsandbox trust --list

A project's .netsandbox.toml may forbid things by itself; what it allows counts only after you have said yes to it.
Say it here, for the file of this folder's project or for FILE, as it is now: a changed file is asked about again.
FILE may be a profile of the project too, or the .npmrc (pip.conf, …) in which it names a registry of its own; or a file
such as ~/.npmrc, or a program that is asked for its registry, if it has changed since your first session.
Exit status: 0 trusted (or forgotten), 1 not."""


def main(arguments: list[str]) -> int:
    """The exit status."""
    parsed = parse(arguments, OPTIONS, "netsandbox trust")
    if "help" in parsed.flags:
        return print_help(USAGE, OPTIONS)
    if "list" in parsed.flags:
        print_text("\n".join(map(_shown, trusted_paths())) or "no file is trusted")
        return 0
    if parsed.command is not None or len(parsed.words) > 1:
        raise UsageError("trust takes one file; write `netsandbox trust FILE`")
    paths = tuple(parsed.words) or project_files()
    if not paths:
        raise UsageError("this project has no .netsandbox.toml; write `netsandbox trust FILE` for another file")
    if "forget" in parsed.flags:
        return min(map(_forget, paths))
    return max(_decide(path, asking="yes" not in parsed.flags) for path in paths)


def _forget(path: str) -> int:
    known = distrust(path)
    print_text(f"{_shown(path)} is trusted no longer" if known else f"{_shown(path)} was not trusted")
    return 0 if known else 1


def _shown(text: str) -> str:
    """A path, or a line that begins with one."""
    return single_line(short(text))


def _decide(path: str, *, asking: bool) -> int:
    """What is shown is what is noted: the file stays what it is, also while tools are asked about it."""
    then = fingerprint(path, {})
    data = read(path, regular=True)
    if is_trusted(path, data):
        print_text(f"{_shown(path)} is trusted already")
        return 0
    opened = list(_opened(path, data))
    if fingerprint(path, {}) != then:
        raise UsageError(f"{path} changed while it was looked at, so it is not trusted; end what writes it")
    if not opened:
        print_text(f"{_shown(path)} opens nothing, so it needs no trust")
        return 0
    print_text("\n".join(map(_shown, opened)))
    if asking and not _agreed():
        return 1
    trust(path, data)
    print_text(f"{_shown(path)} is trusted as it is now")
    return 0


def _opened(path: str, data: bytes) -> Iterator[str]:
    """A line for each thing that the file would open: as a configuration, a profile, a tool's own settings, a tool."""
    if not is_configuration(path):
        found = [f"{origin}: {tool} fetches from {host}" for tool, host, origin in registries_of(path)]
        found += [f"{path}: what it calls the registry of {tool}" for tool in tools_run_from(path)]
        if found or is_used_by_tools(path):
            yield from found
            return
    if is_project_profile(path):
        document, lines = parsed(path, data)
        profile = profile_of("", path, document, lines, trusted=False)
        yield from (f"{path}: profile.registries: {tool!a}" for tool in profile.registries)
        layer = profile.layer
    else:
        layer = layer_of(path, data, trusted=False)
    for (table, name), setting in merge([layer]).ignored:
        for item, origin in setting.items:
            for text in _parts(item):  # whole: what is cut off could be the worst of it
                yield f"{origin}: {table}.{name}: {text}"


def _parts(item: object) -> list[str]:
    """A table one name a line."""
    return [f"{name} = {value!a}" for name, value in item.items()] if isinstance(item, dict) else [f"{str(item)!a}"]


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("trust asks on a terminal; add --yes if you have read the file")
    return confirm("Let this file open these?")
