"""Which files count for a run, read and laid over one another.

the user's  <  the user's paths and rules of this folder  <  those of the project, as far as each is trusted
            <  the one named by --config  <  the command line

Profiles lie between them: `netsandbox.config.profiles.selection` says where.
"""

from __future__ import annotations

import os
import stat

from netsandbox.config.document import check_short, layer_of, read, read_layer
from netsandbox.config.merging import merge, settings
from netsandbox.config.path_list import list_layer
from netsandbox.config.paths import is_about_folder, is_list
from netsandbox.config.profiles.selection import Wanted, stacked
from netsandbox.config.trust import is_trusted
from netsandbox.frozen import copy_with
from netsandbox.paths import home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.config.layer import Layer

ALONE = Wanted(detect=False)
_PIPES: dict[tuple[str, int], Layer] = {}  # what was read from each


def effective(user: Sequence[str], project: Sequence[str], named: str | None, wanted: Wanted = ALONE) -> FileSettings:
    return settled(effective_layers(user, project, named), (*user, named), wanted)


def settled(files: Sequence[Layer], kept: Iterable[str | None], wanted: Wanted) -> FileSettings:
    """*kept* are the files that no command may write. A project's may be: changed, it is not trusted any more."""
    stack = stacked(files, wanted)
    found = settings(merge(stack.layers), filter(None, (*kept, *stack.kept)))
    return copy_with(
        found,
        ignored=(*found.ignored, *stack.untrusted),
        profiles=tuple((each.profile.name, each.why) for each in stack.used),
        notes=stack.notes,
        asked=stack.asked,
    )


def effective_layers(user: Sequence[str], project: Sequence[str], named: str | None) -> list[Layer]:
    """From the lowest to the highest; *user* and *project* are too."""
    found = [_own_layer(path) for path in user]
    of_project = [_project_layer(path) for path in project]
    if any(map(_stands_alone, of_project)):
        found = [layer for layer in found if is_about_folder(layer.path)]
    found += of_project
    if named is not None:
        found.append(_named_layer(named))
    return found


def _named_layer(path: str) -> Layer:
    """A pipe gives what it has once, and `explain` asks twice."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return read_layer(path)  # which says what is wrong
    if not stat.S_ISFIFO(found.st_mode):
        return read_layer(path)
    pipe = (path, found.st_ino)
    if pipe not in _PIPES:
        _PIPES[pipe] = read_layer(path)
    return _PIPES[pipe]


def _own_layer(path: str) -> Layer:
    data = read(path, regular=True)
    return list_layer(path, data, home) if is_list(path) else layer_of(path, data)


def _project_layer(path: str) -> Layer:
    data = read(path, regular=True)  # once: what is judged is what is used
    trusted = is_trusted(path, data)
    if not trusted:
        check_short(path, data)
    return layer_of(path, data, trusted=trusted)


def _stands_alone(project: Layer) -> bool:
    """Leaving the user's own rules out is opening, which takes trust."""
    said = project.values.get(("sandbox", "inherit_global"))
    return said is not None and said.value is False and project.trusted
