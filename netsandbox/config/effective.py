"""Chooses, reads and merges the configuration files of a run.

the organisation's file  <  the user's file  <  the user's path list and rules for this folder
    <  the project's files, as far as each is trusted  <  the file of --config  <  the command line

Profiles are between these layers (`netsandbox.config.profiles.selection`).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence

from netsandbox.config.cache import (
    ABSENT,
    CONFIGURATION,
    CONTENT,
    EXISTS,
    FINGERPRINT,
    ConfigSources,
    Input,
    current,
    store,
)
from netsandbox.config.document import check_short, layer_of, read, read_layer
from netsandbox.config.ending_rules import current_layer, seconds_left
from netsandbox.config.file_settings import FileSettings, to_plain
from netsandbox.config.layer import Layer
from netsandbox.config.merging import file_settings, merge
from netsandbox.config.path_list import list_layer
from netsandbox.config.paths import (
    is_about_folder,
    is_list,
    organisation_files,
    profile_folder,
    project_folders,
    repository_marks,
    trust_folder,
)
from netsandbox.config.profiles.profile import Library
from netsandbox.config.profiles.profile_files import BUILT_IN_FOLDER, PROJECT_FOLDERS, PROJECTS, listed, own
from netsandbox.config.profiles.selection import ProfileRequest, anything_here, detection_rules, select_profiles
from netsandbox.config.registries.lookup import recall as recall_registries
from netsandbox.config.trust import is_trusted
from netsandbox.frozen import copy_with
from netsandbox.paths import PROFILE_FOLDER, home

SECONDS = 86400  # the output of tools can change without a trace
VARIABLES = ("$XDG_RUNTIME_DIR", "$SSH_AUTH_SOCK", f"${PROFILE_FOLDER}")  # `allow_unix_sockets` may use the first two
_PIPES: dict[tuple[str, int], Layer] = {}  # by path and inode


def load(sources: ConfigSources) -> FileSettings | None:
    """The merged settings of a run's files and profiles, which are also stored in the cache; None: there are none.

    The inputs are checked before and after. If one has changed in between, nothing is stored.
    """
    before = tuple(_content_inputs(sources))
    layers = effective_layers(sources.user, sources.project, sources.named)
    found = _settings(sources, layers)
    registry_inputs = _registry_inputs(sources, found.registry_tools if found is not None else ())
    changed = before != tuple(_content_inputs(sources))
    if (
        not changed
        and registry_inputs is not None
        and all(value != ABSENT for how, _, value in before if how == CONTENT)
    ):
        inputs = (*before, *_places(sources, layers), *registry_inputs)
        value = (None if found is None else to_plain(found),)
        store(CONFIGURATION, sources.key, value, inputs, seconds_left(layers, time.time(), SECONDS))
    return found


def _settings(sources: ConfigSources, layers: Sequence[Layer]) -> FileSettings | None:
    if not layers and not sources.profiles and not (sources.detect and (sources.command or anything_here())):
        return None
    request = ProfileRequest(sources.profiles, sources.detect, sources.mode, command=sources.command)
    return merged_settings(layers, (*sources.user, sources.named), request)


def _content_inputs(sources: ConfigSources) -> Iterator[Input]:
    for path in sources.files:
        yield CONTENT, path, current(CONTENT, path)
    yield FINGERPRINT, trust_folder(), current(FINGERPRINT, trust_folder())


def _places(sources: ConfigSources, layers: Sequence[Layer]) -> Iterator[Input]:
    """The inputs besides the files: profiles (also the project's), files that select them, the root of the
    repository."""
    for variable in VARIABLES:
        yield FINGERPRINT, variable, current(FINGERPRINT, variable)
    for mark in repository_marks(sources.folder) if sources.folder else ():
        yield EXISTS, mark, current(EXISTS, mark)
    project_profiles = (os.path.join(folder, name) for folder in project_folders() for name in PROJECT_FOLDERS)
    for folder in (profile_folder(), BUILT_IN_FOLDER, *project_profiles):
        yield FINGERPRINT, folder, current(FINGERPRINT, folder)
        for each in listed(folder, PROJECTS):
            yield FINGERPRINT, each.path, current(FINGERPRINT, each.path)
    if sources.detect:
        library = Library()
        for files in detection_rules(layers, own(), library).values():
            for file in files:
                for folder in project_folders():
                    path = os.path.join(folder, file)
                    yield EXISTS, path, current(EXISTS, path)
        library.close()


def _registry_inputs(sources: ConfigSources, tools: Sequence[str]) -> tuple[Input, ...] | None:
    """The inputs of the registries of *tools*; None if one is incomplete or not in the cache."""
    found: dict[str, str] = {}
    for tool in tools:
        registries = recall_registries(tool, os.path.realpath(sources.folder), os.environ, sources.home)
        if registries is None or not registries.complete:
            return None
        found.update(registries.inputs)
    return tuple((FINGERPRINT, name, then) for name, then in found.items())


def merged_settings(files: Sequence[Layer], kept: Iterable[str | None], request: ProfileRequest) -> FileSettings:
    """*kept* are the files that no command may write. A project's file is not among them: a change ends its trust."""
    selection = select_profiles(files, request)
    found = file_settings(merge(selection.layers), filter(None, (*kept, *selection.kept)))
    return copy_with(
        found,
        ignored=(*found.ignored, *selection.untrusted),
        profiles=tuple((each.profile.name, each.why) for each in selection.active),
        notes=selection.notes,
        registry_tools=selection.tools,
    )


def effective_layers(user: Sequence[str], project: Sequence[str], named: str | None) -> list[Layer]:
    """All layers, from the lowest to the highest, as *user* and *project* are."""
    now = time.time()
    found = [current_layer(_own_layer(path), now) for path in user]
    of_project = [current_layer(_project_layer(path), now) for path in project]
    if any(map(_leaves_user_out, of_project)):
        found = [layer for layer in found if layer.bounds or is_about_folder(layer.path)]
    found += of_project
    if named is not None:
        found.append(_named_layer(named))
    return found


def _named_layer(path: str) -> Layer:
    """The layer of --config. A pipe's is kept, because `explain` reads it twice and a pipe can be read only once."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return read_layer(path)  # the error names the fault
    if not stat.S_ISFIFO(found.st_mode):
        return read_layer(path)
    pipe = (path, found.st_ino)
    if pipe not in _PIPES:
        _PIPES[pipe] = read_layer(path)
    return _PIPES[pipe]


def _own_layer(path: str) -> Layer:
    if path in organisation_files():
        return copy_with(layer_of(path, read(path, regular=True, of_root=True)), bounds=True)
    data = read(path, regular=True)
    return list_layer(path, data, home) if is_list(path) else layer_of(path, data)


def _project_layer(path: str) -> Layer:
    data = read(path, regular=True)  # read once: the checked content is the content that is used
    trusted = is_trusted(path, data)
    if not trusted:
        check_short(path, data)
    return layer_of(path, data, trusted=trusted)


def _leaves_user_out(project: Layer) -> bool:
    """Whether the project's file turns off the user's. That widens the policy, so the file must be trusted."""
    setting = project.values.get(("sandbox", "inherit_global"))
    return setting is not None and setting.value is False and project.trusted
