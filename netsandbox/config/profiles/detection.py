"""Which profiles the files of a project call for. Only looked for, never read: a few stats."""

from __future__ import annotations

import os

from netsandbox.config.paths import project_folders
from netsandbox.config.profiles.library import Library
from netsandbox.config.profiles.profile_files import BASE, YOURS, own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from netsandbox.config.profiles.profile_files import ProfileFile


def detected(rules: Mapping[str, Sequence[str]], folders: Iterable[str]) -> dict[str, str]:
    """The profiles of *rules* one of whose files is in one of *folders*, each with that file's name."""
    found: dict[str, str] = {}
    for folder in folders:
        for profile, files in rules.items():
            if profile not in found:
                there = next((file for file in files if os.path.lexists(f"{folder}/{file}")), None)
                if there is not None:
                    found[profile] = there
    return found


def own_rules(shelf: Mapping[str, ProfileFile], library: Library) -> dict[str, Sequence[str]]:
    """By which files each profile of *shelf* says that it is chosen."""
    return {each.name: library.itself(each).get("detect", ()) for each in shelf.values()}


def detected_here() -> dict[str, str]:
    """What the files of this project call for, as the profiles say themselves."""
    library = Library()
    found = detected(own_rules(own(), library), project_folders())
    library.close()
    return found


def anything_here() -> bool:
    """Whether any profile counts though nobody names one."""
    return bool(detected_here()) or own()[BASE].owner == YOURS
