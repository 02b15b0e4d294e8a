"""Which profiles the files of a project call for. Only looked for, never read: a few stats."""

from __future__ import annotations

import os

from netsandbox.configuration.places import project_folders
from netsandbox.profiles.library import Library
from netsandbox.profiles.shelf import BASE, YOURS, own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from netsandbox.profiles.shelf import Shelved


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


def own_rules(shelf: Mapping[str, Shelved], library: Library) -> dict[str, Sequence[str]]:
    """By which files each profile of *shelf* says that it is chosen."""
    return {
        each.name: library.tables(each.name, each.path)[0].get("profile", {}).get("detect", ())
        for each in shelf.values()
    }


def anything_here() -> bool:
    """Whether any profile counts though nobody names one: for the path to exec, where mostly none does."""
    library, shelf = Library(), own()
    found = bool(detected(own_rules(shelf, library), project_folders()))
    library.close()
    return found or shelf[BASE].owner == YOURS
