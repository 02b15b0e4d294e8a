"""`netsandbox profile list` and `show`: the profiles, their owners, which of them this project selects, and their
values."""

from __future__ import annotations

import json
from collections.abc import Sequence

from netsandbox.cli.config import as_json, lines
from netsandbox.cli.help import print_lines
from netsandbox.cli.terminal import print_text
from netsandbox.config.effective import effective_layers
from netsandbox.config.merging import merge
from netsandbox.config.paths import is_profile_name, project_files, project_folders, user_files
from netsandbox.config.profiles.profile import Library
from netsandbox.config.profiles.profile_files import PROJECTS, ProfileFile, everything, find, own, unknown_profile
from netsandbox.config.profiles.selection import (
    ActiveProfile,
    ProfileRequest,
    Selection,
    detected,
    detection_rules,
    select_profiles,
)
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.text import columns, single_line


@frozen
class Row:
    """A profile in the list. `here`: the file of this project that selects it; empty for none."""

    name: str
    owner: str
    here: str
    about: str
    path: str


def show_list(*, for_programs: bool) -> int:
    """Print every profile; the exit status."""
    here, library = _found_here(), Library()
    rows = [_row(each, here, library) for each in everything().values()]
    if for_programs:
        print_text(
            json.dumps({"v": 1, "profiles": [{**vars(row), "here": row.here or None} for row in rows]}, indent=2)
        )
    else:
        print_lines(table(rows))
    return 0


def table(rows: Sequence[Row]) -> list[str]:
    """One line a profile, in columns."""
    cells = [(row.name, row.owner, row.here or "-", single_line(row.about)) for row in rows]
    return columns([("NAME", "FROM", "DETECTED BY", "ABOUT"), *cells])


def show_one(name: str, *, for_programs: bool) -> int:
    """Print the values of the profile in this folder; the exit status."""
    stack = select_profiles([], ProfileRequest((known(name),), detect=False))
    used = next(each for each in stack.active if each.profile.name == name)
    if for_programs:
        print_text(json.dumps(_json(used, stack), indent=2))
    else:
        print_text("\n".join(_text(used, stack)))
    return 0


def known(name: str) -> str:
    """*name*, if it is a profile's; otherwise an error that suggests one."""
    if not is_profile_name(name) or find(name) is None:
        raise unknown_profile(name)
    return name


def _text(used: ActiveProfile, stack: Selection) -> list[str]:
    profile, here = used.profile, _found_here().get(used.profile.name)
    shown = [f"# {profile.name}: {single_line(profile.about)}", f"# {used.owner}: {single_line(profile.path)}"]
    if profile.detect:
        shown.append(f"# detected by {', '.join(profile.detect)}" + (f"; {here} is here" if here else ""))
    if profile.registries:
        shown.append(f"# registries of {', '.join(profile.registries)}, asked for in this folder")
    shown += [f"# note: {single_line(note)}" for note in stack.notes]
    merged = merge(stack.layers)
    return (
        [*shown, "", *lines(merged, stack.untrusted)] if merged.values or merged.ignored or stack.untrusted else shown
    )


def _json(used: ActiveProfile, stack: Selection) -> dict[str, object]:
    profile = used.profile
    return {
        **as_json(merge(stack.layers), stack.untrusted),
        "name": profile.name,
        "owner": used.owner,
        "path": profile.path,
        "about": profile.about,
        "detect": list(profile.detect),
        "here": _found_here().get(profile.name),
        "registries": list(profile.registries),
        "trusted": profile.layer.trusted,
        "notes": list(stack.notes),
    }


def _found_here() -> dict[str, str]:
    library = Library()
    rules = detection_rules(effective_layers(user_files(), project_files(), None), own(), library)
    library.close()
    return detected(rules, project_folders())


def _row(each: ProfileFile, here: dict[str, str], library: Library) -> Row:
    if each.owner == PROJECTS:
        from netsandbox.config.document import parsed, read
        from netsandbox.config.profiles.profile import profile_of

        try:
            tables = parsed(each.path, read(each.path, regular=True))
            about = profile_of(each.name, each.path, *tables).about
        except UsageError as error:  # a mistake in one project file hides no other profile
            about = f"cannot be used: {error}"
    else:
        about = library.about(each).get("about", "")
    return Row(each.name, each.owner, here.get(each.name, ""), about, each.path)
