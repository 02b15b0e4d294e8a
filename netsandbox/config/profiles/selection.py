"""Which profiles count for a run and why, as layers between the files.

    detected  <  those that the user's file names  <  the user's file  <  those of the project's file  <  the project's
    file  <  …  <  those named on the command line

Each profile counts once, at the highest place that names it. What an untrusted file names opens nothing.
"""

from __future__ import annotations

import os

from netsandbox.config.document import check_short, parsed, read
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Layer
from netsandbox.config.merging import merge
from netsandbox.config.paths import is_profile_name, project_folders
from netsandbox.config.profiles.detection import detected, own_rules
from netsandbox.config.profiles.library import Library
from netsandbox.config.profiles.profile import Profile, profile_of
from netsandbox.config.profiles.profile_files import BASE, PROJECTS, YOURS, find, own
from netsandbox.config.profiles.unknown_name import unknown
from netsandbox.config.trust import is_trusted
from netsandbox.frozen import copy_with, frozen
from netsandbox.policy.policy import FILTERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from netsandbox.config.profiles.profile_files import ProfileFile

NAMED = ("sandbox", "profiles")
AUTO_DETECT = ("profiles", "auto_detect")
DETECT = ("profiles", "detect")
MODE = ("network", "mode")
WRITE = ("filesystem", "allow_write")


@frozen
class Wanted:
    """What the command line says of profiles: the names on it, whether to detect, and the mode if it has one."""

    names: tuple[str, ...] = ()
    detect: bool = True
    mode: str | None = None
    ask: bool = True  # for registries, where they matter


@frozen
class Used:
    """A profile in force. `why` completes "it counts because it is …"."""

    profile: Profile
    owner: str
    why: str


@frozen
class Selection:
    """`untrusted`: hosts that files of the project ask for, each with its place."""

    layers: tuple[Layer, ...]
    used: tuple[Used, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()  # the user's own profiles, which no command may write
    asked: tuple[str, ...] = ()  # the tools that were asked for their registries


@frozen
class Pick:
    """A profile that is to count, at some place of the stack."""

    name: str
    why: str
    level: int
    origin: str = ""  # what named it, for an error
    trusted: bool = True
    detected: bool = False


def stacked(files: Sequence[Layer], wanted: Wanted) -> Selection:
    """*files* from the lowest to the highest, with the profiles between them."""
    library = Library()
    shelf = own()
    picks = [*_base(shelf), *_detected(files, wanted, shelf, library), *_named(files)]
    picks += [Pick(name, "named on the command line", len(files)) for name in wanted.names]
    picks = _highest(picks)
    used = [(pick.level, _load(pick, library)) for pick in picks]
    library.close()
    meant = [each.profile.layer for pick, (_, each) in zip(picks, used, strict=True) if not pick.detected]
    if not any(WRITE in layer.values and layer.trusted for layer in (*files, *meant)):
        used = [(level, _without_confining(each)) for level, each in used]
    levels = range(len(files) + 1)
    groups = [[each for level, each in used if level == wanted_level] for wanted_level in levels]
    asked = _Registries(_mode(groups, files, wanted), asks=wanted.ask)
    layers: list[Layer] = []
    for level, group in enumerate(groups):
        for each in group:
            layers += [each.profile.layer, *asked.layers(each.profile)]
        layers += files[level : level + 1]
    return Selection(
        tuple(layers),
        tuple(each for group in groups for each in group),
        tuple(dict.fromkeys(asked.notes)),
        tuple(dict.fromkeys(asked.untrusted)),
        tuple(each.path for each in shelf.values() if each.owner == YOURS),
        tuple(sorted(asked.tools)),
    )


def _highest(picks: Sequence[Pick]) -> list[Pick]:
    """Each profile once, in the order of the stack."""
    kept: dict[str, Pick] = {}
    for pick in sorted(picks, key=lambda pick: pick.level):
        kept.pop(pick.name, None)
        kept[pick.name] = pick
    return list(kept.values())


def detection_rules(
    files: Iterable[Layer], shelf: dict[str, ProfileFile], library: Library
) -> dict[str, Sequence[str]]:
    """By which files each profile is chosen: as it says itself, unless a file says otherwise."""
    rules = own_rules(shelf, library)
    said = merge(files).values.get(DETECT)
    told: Any = said.value if said is not None else ()
    for name, wanted, origin in told:
        if find(name) is None:
            raise unknown(name, origin)
        rules[name] = wanted
    return rules


def _base(shelf: dict[str, ProfileFile]) -> list[Pick]:
    """Ours says nothing, so it is not even read."""
    return [Pick(BASE, "your base for every run", 0)] if shelf[BASE].owner == YOURS else []


def _detected(files: Sequence[Layer], wanted: Wanted, shelf: dict[str, ProfileFile], library: Library) -> list[Pick]:
    said = merge(files).values.get(AUTO_DETECT)
    if not wanted.detect or (said is not None and said.value is False):
        return []
    found = detected(detection_rules(files, shelf, library), project_folders())
    return [Pick(name, f"detected by {file}", 0, detected=True) for name, file in found.items()]


def _named(files: Sequence[Layer]) -> list[Pick]:
    """What a file names lies just below it. An untrusted one may name only what closes."""
    picks = []
    for level, layer in enumerate(files):
        said = layer.values.get(NAMED)
        if said is None or (not layer.trusted and KEYS[NAMED[0]][NAMED[1]].widens(said.value)):
            continue
        value: Any = said.value
        picks += [Pick(name, f"named by {origin}", level, origin, layer.trusted) for name, origin in value]
    return picks


def _load(pick: Pick, library: Library) -> Used:
    found = find(pick.name) if is_profile_name(pick.name) else None
    if found is None:
        raise unknown(pick.name, pick.origin)
    if found.owner != PROJECTS:
        document, lines = library.tables(found.name, found.path)
        trusted = pick.trusted
    else:
        data = read(found.path, regular=True)  # once: what is judged is what is used
        trusted = pick.trusted and is_trusted(found.path, data)
        if not trusted:
            check_short(found.path, data)
        document, lines = parsed(found.path, data)
    return Used(profile_of(found.name, found.path, document, lines, trusted=trusted), found.owner, pick.why)


def _without_confining(used: Used) -> Used:
    """What a project's files call for never confines writing: it says what stays writable if somebody does."""
    layer = used.profile.layer
    rest = {place: said for place, said in layer.values.items() if place != WRITE}
    return copy_with(used, profile=copy_with(used.profile, layer=copy_with(layer, values=rest)))


def _mode(groups: list[list[Used]], files: Sequence[Layer], wanted: Wanted) -> object:
    """The mode that will be in force, as far as profiles, files and the command line's own word say it."""
    if wanted.mode is not None:
        return wanted.mode
    layers: list[Layer] = []
    for level, group in enumerate(groups):
        layers += [*(each.profile.layer for each in group), *files[level : level + 1]]
    said = merge(layers).values.get(MODE)
    return None if said is None else said.value


class _Registries:
    """Asks each tool once, and only where the answer can change anything."""

    def __init__(self, mode: object, *, asks: bool) -> None:
        self._asks = asks and mode in (None, FILTERED)
        self.tools: set[str] = set()
        self.notes: list[str] = []
        self.untrusted: list[tuple[str, str]] = []

    def layers(self, profile: Profile) -> list[Layer]:
        """Nothing for a profile that nobody trusts: its tools are not even asked."""
        found: list[Layer] = []
        if profile.registries and not profile.layer.trusted:
            self.untrusted.append(("profile.registries", f"{profile.path}:1"))
            return found
        for tool in profile.registries if self._asks else ():
            if tool in self.tools:
                continue
            self.tools.add(tool)
            from netsandbox.config.profiles.registry_rules import asked

            answer = asked(tool, os.environ)
            self.notes += answer.notes
            self.untrusted += answer.untrusted
            found.append(answer.layer)
        return found
