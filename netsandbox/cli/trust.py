"""`netsandbox trust [FILE]`: lets a file that others may have written widen the policy, after the user has seen it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator

from netsandbox.cli.help import print_help
from netsandbox.cli.terminal import confirm, print_text
from netsandbox.config.cache import fingerprint
from netsandbox.config.document import layer_of, parsed, read
from netsandbox.config.merging import merge
from netsandbox.config.paths import project_files
from netsandbox.config.profiles.profile import profile_of
from netsandbox.config.profiles.profile_files import is_configuration, is_project_profile
from netsandbox.config.profiles.registry_rules import registries_of
from netsandbox.config.registries.provenance import is_new
from netsandbox.config.trust import distrust, is_trusted, named_host, trust, trust_folder_at, trusted_paths
from netsandbox.errors import UsageError
from netsandbox.paths import config_home, home, named_profile_folder, short
from netsandbox.policy.file_rules import is_within
from netsandbox.runtime.option_parser import FILES, FLAG, Option, parse
from netsandbox.runtime.written_folders import is_held
from netsandbox.text import single_line

OPTIONS = (
    Option("yes", FLAG, "y", "", "do not ask"),
    Option("list", FLAG, "l", "", "list the trusted files"),
    Option("forget", FLAG, "", "", "stop trusting the file"),
    Option("help", FLAG, "h", "", "this text"),
)
WORDS = FILES
MAX_SHOWN = 20
USAGE = """\
usage: netsandbox trust [--yes | --forget] [FILE]
       netsandbox trust --list

  netsandbox trust           the file of this project
  netsandbox trust .npmrc    the registry that it names
  netsandbox trust ~/.nvm    the programs in it, if a session could write there

The deny rules of a project's .netsandbox.toml take effect at once, its allow rules only after you trust the file. \
This command shows what the file of this project, or FILE, would allow, and asks you. Trust is for the present \
content: a changed file needs it again. FILE may also be a profile of the project; a .npmrc (pip.conf, .git/config, …) \
of the project, or one in your home that a session could write, and then trust is for the hosts that it names; a \
folder of programs, which is trusted until a session can write there again; or a folder of configuration, if \
XDG_CONFIG_HOME or NETSANDBOX_PROFILE_DIR names a new one that a session could have written.
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
    asking = "yes" not in parsed.flags
    adopted = [each for each in (config_home(), named_profile_folder()) if each and _is_same(each, paths[0])]
    if len(paths) == 1 and adopted:
        return _adopt(adopted[0], asking=asking)
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return _decide_folder(os.path.realpath(paths[0]), asking=asking)
    return max(_decide(path, asking=asking) for path in paths)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _adopt(folder: str, *, asking: bool) -> int:
    """Use a folder of configuration that an earlier session could have written, after the user has looked at it."""
    from netsandbox.runtime.used_homes import adopt_home

    print_text("\n".join(_shown(path) for path in sorted(_files_below(folder))) or "it holds no file")
    if asking and not _agreed("Use these files as your configuration?"):
        return 1
    adopt_home(folder)
    print_text(f"{_shown(folder)} is your configuration")
    return 0


def _decide_folder(path: str, *, asking: bool) -> int:
    """Trust the programs and settings in a folder, after the user has seen which of them a session may have written."""
    if is_within(os.path.realpath(home()), path):
        raise UsageError(f"{path!a} holds your home; name the folder of a tool, such as ~/.nvm")
    now = _file_clock()  # a session that begins while the user looks is a later one
    new = sorted(filter(_is_new, _files_below(path)))
    if not new:
        print_text(f"no session could have written what is in {_shown(path)}, so it needs no trust")
        return 0
    if is_held(path):
        raise UsageError("a session that still runs may write there; end it (`netsandbox ps`), and do this again")
    more = [f"… and {len(new) - MAX_SHOWN} more"] if len(new) > MAX_SHOWN else []
    print_text("\n".join([*map(_shown, new[:MAX_SHOWN]), *more]))
    if asking and not _agreed("A session may have written these. Trust what is in this folder now?"):
        return 1
    trust_folder_at(path, now)
    print_text(f"{_shown(path)} is trusted, until a session can write there")
    return 0


def _file_clock() -> int:
    """The present time as files get it: from a clock that is read at each tick."""
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_ctime_ns


def _is_new(path: str) -> bool:
    """As a launch asks it before it runs a program."""
    try:
        return is_new(path)
    except OSError:  # it is gone
        return False


def _files_below(folder: str) -> Iterator[str]:
    for above, folders, names in os.walk(folder):
        yield from (os.path.join(above, name) for name in names)
        yield from filter(os.path.islink, (os.path.join(above, name) for name in folders))


def _forget(path: str) -> int:
    known = distrust(path)
    print_text(f"{_shown(path)} is trusted no longer" if known else f"{_shown(path)} was not trusted")
    return 0 if known else 1


def _shown(text: str) -> str:
    """A path, or a line that begins with one."""
    return single_line(short(text))


def _decide(path: str, *, asking: bool) -> int:
    """The recorded content is the content that was shown, also if the file changes while tools are queried."""
    then = fingerprint(path, {})
    data = read(path, regular=True)
    if is_trusted(path, data):
        print_text(f"{_shown(path)} is trusted already")
        return 0
    named = [] if is_configuration(path) else registries_of(path)
    opened = [f"{origin}: {tool} fetches from {host}" for tool, host, origin in named] or list(_opened(path, data))
    if fingerprint(path, {}) != then:
        raise UsageError(f"{path} changed while it was looked at, so it is not trusted; end what writes it")
    if not opened:
        print_text(f"{_shown(path)} opens nothing, so it needs no trust")
        return 0
    print_text("\n".join(map(_shown, opened)))
    if asking and not _agreed():
        return 1
    trust(path, data)
    for _, host, _ in named:
        trust(path, named_host(host))
    print_text(f"{_shown(path)} is trusted {'to name these hosts' if named else 'as it is now'}")
    return 0


def _opened(path: str, data: bytes) -> Iterator[str]:
    """A line for each thing that the file would open as a configuration or a profile."""
    if not is_configuration(path):
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
            for text in _parts(item):  # not shortened: the cut part could be the worst of it
                yield f"{origin}: {table}.{name}: {text}"


def _parts(item: object) -> list[str]:
    """A table one name a line."""
    return [f"{name} = {value!a}" for name, value in item.items()] if isinstance(item, dict) else [f"{str(item)!a}"]


def _agreed(question: str = "Let this file open these?") -> bool:
    if not sys.stdin.isatty():
        raise UsageError("trust asks on a terminal; add --yes if you have read the file")
    return confirm(question)
