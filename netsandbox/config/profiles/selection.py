"""Chooses the profiles of a run, as layers between the files.

    detected  <  those that the user's file names  <  the user's file  <  those of the project's file  <  the project's
    file  <  …  <  those named on the command line

Each profile is used once, at the highest place that names it. A profile that an untrusted file names opens nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netsandbox.config.commands import PROFILES
from netsandbox.config.document import check_short, parsed, read
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Layer, Setting
from netsandbox.config.merging import MODE, RULES, merge
from netsandbox.config.paths import is_profile_name, project_folders
from netsandbox.config.profiles.profile import Library, Profile, profile_of
from netsandbox.config.profiles.profile_files import BASE, PROJECTS, YOURS, ProfileFile, find, own, unknown_profile
from netsandbox.config.trust import is_trusted
from netsandbox.frozen import frozen
from netsandbox.policy.policy import CLOSED, FILTERED

NAMED = ("sandbox", "profiles")
AUTO_DETECT = ("profiles", "auto_detect")
DETECT = ("profiles", "detect")


@frozen
class ProfileRequest:
    """The options about profiles: the names, whether to detect, and the mode if it is given."""

    names: tuple[str, ...] = ()
    detect: bool = True
    mode: str | None = None
    query_tools: bool = True  # for their registries, if these are needed
    command: str = ""  # its name, if that selects a profile


@frozen
class ActiveProfile:
    """A profile in force. `why` completes "it is used because it is …"."""

    profile: Profile
    owner: str
    why: str


@frozen
class Selection:
    """The layers of files and profiles. `untrusted`: hosts that files of the project name, each with its origin."""

    layers: tuple[Layer, ...]
    active: tuple[ActiveProfile, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()  # the user's own profiles, which no command may write
    tools: tuple[str, ...] = ()  # those whose registries are among the rules


@frozen
class ProfileChoice:
    """A chosen profile, and its level among the files."""

    name: str
    why: str
    level: int
    origin: str = ""  # what named it, for an error
    trusted: bool = True


def select_profiles(files: Sequence[Layer], request: ProfileRequest) -> Selection:
    """*files* from the lowest to the highest, with the profiles between them."""
    library = Library()
    profiles = own()
    choices = [*_detected(files, request, profiles, library), *_base(profiles), *_named(files)]
    choices += [ProfileChoice(name, "named on the command line", len(files)) for name in request.names]
    choices = _highest(choices)
    used = [(choice.level, _load(choice, library)) for choice in choices]
    library.close()
    levels = range(len(files) + 1)
    groups = [[each for level, each in used if level == wanted_level] for wanted_level in levels]
    registries = _Registries(_mode(groups, files, request), queries=request.query_tools)
    layers: list[Layer] = []
    for level, group in enumerate(groups):
        for each in group:
            layers += [each.profile.layer, *registries.layers(each.profile)]
        layers += files[level : level + 1]
    return Selection(
        tuple(layers),
        tuple(each for group in groups for each in group),
        tuple(dict.fromkeys(registries.notes)),
        tuple(dict.fromkeys(registries.untrusted)),
        tuple(each.path for each in profiles.values() if each.owner == YOURS),
        tuple(sorted(registries.tools)),
    )


def _highest(choices: Sequence[ProfileChoice]) -> list[ProfileChoice]:
    """Each profile once, at its highest level, and those that close the network above the others there."""
    kept: dict[str, ProfileChoice] = {}
    for choice in sorted(choices, key=lambda choice: (choice.level, choice.name in CLOSED)):
        kept.pop(choice.name, None)
        kept[choice.name] = choice
    return list(kept.values())


def detection_rules(
    files: Iterable[Layer], profiles: dict[str, ProfileFile], library: Library
) -> dict[str, Sequence[str]]:
    """The files that select each profile: its `detect`, unless a configuration file sets others."""
    rules = own_rules(profiles, library)
    setting = merge(files).values.get(DETECT)
    rows: Any = setting.value if setting is not None else ()
    for name, names, origin in rows:
        rules[_existing(name, origin).name] = names
    return rules


def detected(rules: Mapping[str, Sequence[str]], folders: Iterable[str]) -> dict[str, str]:
    """The profiles of *rules* one of whose files exists in one of *folders*, each with the name of that file."""
    found: dict[str, str] = {}
    for folder in folders:
        for profile, files in rules.items():
            if profile not in found:
                there = next((file for file in files if os.path.lexists(f"{folder}/{file}")), None)
                if there is not None:
                    found[profile] = there
    return found


def own_rules(profiles: Mapping[str, ProfileFile], library: Library) -> dict[str, Sequence[str]]:
    """The files in the `detect` of each of *profiles*."""
    return {each.name: library.about(each).get("detect", ()) for each in profiles.values()}


def detected_here() -> dict[str, str]:
    """The detected profiles of this project, each with the file that selects it."""
    library = Library()
    found = detected(own_rules(own(), library), project_folders())
    library.close()
    return found


def anything_here() -> bool:
    """Whether any profile is used although none is named."""
    return bool(detected_here()) or own()[BASE].owner == YOURS


def _base(profiles: dict[str, ProfileFile]) -> list[ProfileChoice]:
    """The user's `base`. The built-in one is empty, so it is not read."""
    return [ProfileChoice(BASE, "your base for every run", 0)] if profiles[BASE].owner == YOURS else []


def _detected(
    files: Sequence[Layer], request: ProfileRequest, profiles: dict[str, ProfileFile], library: Library
) -> list[ProfileChoice]:
    setting = merge(files).values.get(AUTO_DETECT)
    if not request.detect or (setting is not None and setting.value is False):
        return []
    rules = detection_rules(files, profiles, library)
    found = detected(rules, project_folders())
    by_name = PROFILES.get(request.command, "")
    if rules.get(by_name):  # a configuration file may say that it is never detected
        found.setdefault(by_name, f"the command {request.command}")
    return [ProfileChoice(name, f"detected by {what}", 0) for name, what in found.items()]


def _named(files: Sequence[Layer]) -> list[ProfileChoice]:
    """The profiles that files name, each just below its file. An untrusted file may name only profiles that narrow."""
    choices = []
    for level, layer in enumerate(files):
        setting = layer.values.get(NAMED)
        if setting is None or (not layer.trusted and KEYS[NAMED[0]][NAMED[1]].widens(setting.value)):
            continue
        value: Any = setting.value
        choices += [ProfileChoice(name, f"named by {origin}", level, origin, layer.trusted) for name, origin in value]
    return choices


def check_names(files: Iterable[Layer]) -> None:
    """Raise an error for a profile that a file names, or sets the detection of, and that does not exist."""
    for layer in files:
        for key in (NAMED, DETECT):
            setting = layer.values.get(key)
            rows: Any = setting.value if setting is not None else ()
            for row in rows:
                _existing(row[0], row[-1])


def _existing(name: str, origin: str) -> ProfileFile:
    found = find(name) if is_profile_name(name) else None
    if found is None:
        raise unknown_profile(name, origin)
    return found


def _load(choice: ProfileChoice, library: Library) -> ActiveProfile:
    found = _existing(choice.name, choice.origin)
    if found.owner != PROJECTS:
        document, lines = library.tables(found.name, found.path)
        trusted = choice.trusted
    else:
        data = read(found.path, regular=True)  # read once: the checked content is the content that is used
        trusted = choice.trusted and is_trusted(found.path, data)
        if not trusted:
            check_short(found.path, data)
        document, lines = parsed(found.path, data)
    return ActiveProfile(profile_of(found.name, found.path, document, lines, trusted=trusted), found.owner, choice.why)


def _mode(groups: list[list[ActiveProfile]], files: Sequence[Layer], request: ProfileRequest) -> object:
    """The mode that will be in force, as far as profiles, files and the command line set it."""
    if request.mode is not None:
        return request.mode
    layers: list[Layer] = []
    for level, group in enumerate(groups):
        for each in group:
            layers += [each.profile.layer] + [_SOME_RULES] * bool(
                each.profile.registries and each.profile.layer.trusted
            )
        layers += files[level : level + 1]
    setting = merge(layers).values.get(MODE)
    return None if setting is None else setting.value


_SOME_RULES = Layer("", {RULES[0]: Setting(("the registries of a tool",), (("", ""),))})  # before the tool is queried


class _Registries:
    """Queries each tool once, and only if its registries can change the policy."""

    def __init__(self, mode: object, *, queries: bool) -> None:
        self._queries = queries and mode in (None, FILTERED)
        self.tools: set[str] = set()
        self.notes: list[str] = []
        self.untrusted: list[tuple[str, str]] = []

    def layers(self, profile: Profile) -> list[Layer]:
        """The layers of the profile's tools. There are none for an untrusted profile: its tools are not queried."""
        found: list[Layer] = []
        if profile.registries and not profile.layer.trusted:
            self.untrusted.append(("profile.registries", f"{profile.path}:1"))
            return found
        for tool in profile.registries if self._queries else ():
            if tool in self.tools:
                continue
            self.tools.add(tool)
            from netsandbox.config.profiles.registry_rules import registry_rules

            rules = registry_rules(tool, os.environ)
            self.notes += rules.notes
            self.untrusted += rules.untrusted
            found.append(rules.layer)
        return found
