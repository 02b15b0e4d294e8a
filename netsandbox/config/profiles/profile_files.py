"""The files of profiles and their owners: the user's, the built-in ones, and the project's.

A user's profile replaces the built-in one of the same name. A project's profile replaces none: what `node` means does
not depend on the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from netsandbox.config.commands import PROFILES
from netsandbox.config.paths import PROJECT_FILES, is_profile_name, profile_folder, project_folders
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.paths import is_program
from netsandbox.text import quoted, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.option_parser import Parsed

BUILT_IN_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
PROJECT_FOLDERS = (".netsandbox/profiles", ".sandbox/profiles")
ENDINGS = (".profile.toml", ".toml")
BASE = "base"  # it is used in every run; the built-in one is empty
YOURS, BUILT_IN, PROJECTS = "yours", "built in", "the project's"


@frozen
class ProfileFile:
    """`owner` is one of YOURS, BUILT_IN, PROJECTS."""

    name: str
    path: str
    owner: str


def own_folders() -> tuple[tuple[str, str], ...]:
    """The folders of profiles that no project can write to, the strongest first."""
    return (profile_folder(), YOURS), (BUILT_IN_FOLDER, BUILT_IN)


def find(name: str) -> ProfileFile | None:
    """The profile called *name*, which must be a valid name."""
    for folder, owner in own_folders():
        found = _in_folder(folder, name, owner)
        if found is not None:
            return found
    return next((found for folder in _project_profile_folders() if (found := _in_folder(folder, name, PROJECTS))), None)


def own() -> dict[str, ProfileFile]:
    """The user's and the built-in profiles, by name."""
    found: dict[str, ProfileFile] = {}
    for folder, owner in own_folders():
        for each in listed(folder, owner):
            found.setdefault(each.name, each)
    return dict(sorted(found.items()))


def everything() -> dict[str, ProfileFile]:
    """The same, and the project's."""
    found = own()
    for folder in _project_profile_folders():
        for each in listed(folder, PROJECTS):
            found.setdefault(each.name, each)
    return dict(sorted(found.items()))


def listed(folder: str, owner: str) -> Iterator[ProfileFile]:
    try:
        files = sorted(os.listdir(folder))
    except OSError:
        return
    for file in files:
        name = next((file.removesuffix(ending) for ending in ENDINGS if file.endswith(ending)), "")
        if name and is_profile_name(name):
            yield ProfileFile(name, os.path.join(folder, file), owner)


def _in_folder(folder: str, name: str, owner: str) -> ProfileFile | None:
    for ending in ENDINGS:
        path = os.path.join(folder, name + ending)
        if os.path.lexists(path):
            return ProfileFile(name, path, owner)
    return None


def _project_profile_folders() -> Iterator[str]:
    """The profiles in the nearest folder of the project that has any."""
    for folder in project_folders():
        folders_found = [path for name in PROJECT_FOLDERS if os.path.isdir(path := os.path.join(folder, name))]
        if folders_found:
            yield from folders_found
            return


def is_profile_file(origin: str) -> bool:
    """Whether a rule's origin, `FILE:LINE`, is a profile of the user or a built-in one."""
    return any(origin.startswith(f"{folder}/") for folder, _ in own_folders())


def is_configuration(path: str) -> bool:
    whole = os.path.abspath(path)
    return any(whole.endswith(f"/{name}") for name in PROJECT_FILES) or is_project_profile(path)


def is_project_profile(path: str) -> bool:
    """Whether the file is in a project's folder of profiles."""
    folder = os.path.dirname(os.path.abspath(path))
    return any(folder.endswith(f"/{place}") for place in PROJECT_FOLDERS)


def unknown_profile(name: str, origin: str = "") -> UsageError:
    """The error for a profile that does not exist. *origin*: file and line that name it; empty for the command line."""
    near = PROFILES.get(name) or nearest(name)
    advice = f"did you mean {near}?" if near else "see `netsandbox profile list`"
    if "://" in name:
        advice = "put a rule for requests into quotes: --allow-http 'GET https://api.example.com/v1/**'"
    return UsageError(f"{origin + ': ' if origin else ''}unknown profile {quoted(name)}; {advice}")


def unknown_argument(parsed: Parsed, at: int, command: str) -> UsageError:
    """The error for the word at *at*, which is not a profile. Mostly it is a command whose `--` was forgotten."""
    from netsandbox.runtime.option_advice import with_dashes

    words, name = parsed.words, quoted(parsed.words[at])
    start = next((place for place in range(at, -1, -1) if is_program(words[place])), None)
    near = nearest(words[at])
    is_profile = parsed.command and is_program(parsed.command[0])  # it was meant to be one, since a command follows
    if start is not None and not is_profile and (start == at or near is None):
        return UsageError(f"{name} is not a profile; {with_dashes(command, parsed.arguments, parsed.places[start])}")
    if words[at].partition("=")[0].isidentifier() and "=" in words[at]:
        return UsageError(f"{name} is not a profile; to set a variable write `-- env {shell_quoted(words[at])} CMD`")
    if " " in words[at] and is_program(words[at].partition(" ")[0]):  # the quotes were too many
        return UsageError(f"{name} is not a profile; to run a command write `{command} -- {single_line(words[at])}`")
    if near is None and parsed.command is None:
        return UsageError(f"{name} is neither a profile nor a program; check its spelling, or see `{command} --help`")
    return unknown_profile(words[at])


def nearest(name: str) -> str | None:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), everything(), n=1, cutoff=0.6)
    return near[0] if near else None
