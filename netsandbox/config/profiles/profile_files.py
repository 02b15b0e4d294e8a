"""Which profiles there are, and whose: the user's own, those that come with us, and the project's.

A user's profile takes the place of ours with the same name. A project's takes nobody's place: what `node` means does
not change with the folder we are in.
"""

from __future__ import annotations

import os

from netsandbox.config.paths import is_profile_name, profile_folder, project_folders
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
OF_PROJECTS = (".netsandbox/profiles", ".sandbox/profiles")
ENDINGS = (".profile.toml", ".toml")
BASE = "base"  # which counts in every run; ours says nothing
YOURS, BUILT_IN, PROJECTS = "yours", "built in", "the project's"


@frozen
class ProfileFile:
    """`owner` is one of YOURS, BUILT_IN, PROJECTS."""

    name: str
    path: str
    owner: str


def own_folders() -> tuple[tuple[str, str], ...]:
    """Those that no project can write to, the strongest first."""
    return (profile_folder(), YOURS), (OURS, BUILT_IN)


def find(name: str) -> ProfileFile | None:
    """The profile that *name* means; *name* is checked to be one."""
    for folder, owner in own_folders():
        found = _in_folder(folder, name, owner)
        if found is not None:
            return found
    return next((found for folder in _project_shelves() if (found := _in_folder(folder, name, PROJECTS))), None)


def own() -> dict[str, ProfileFile]:
    """The user's and ours, by name."""
    found: dict[str, ProfileFile] = {}
    for folder, owner in own_folders():
        for each in listed(folder, owner):
            found.setdefault(each.name, each)
    return dict(sorted(found.items()))


def everything() -> dict[str, ProfileFile]:
    """The same and the project's."""
    found = own()
    for folder in _project_shelves():
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


def _project_shelves() -> Iterator[str]:
    """Of the nearest folder of the project that has any."""
    for folder in project_folders():
        shelves = [shelf for name in OF_PROJECTS if os.path.isdir(shelf := os.path.join(folder, name))]
        if shelves:
            yield from shelves
            return
