"""Paths of configuration: the user's files, a project's files, and the user's files about a project's folder.

Every launch loads this module. It reads no file; it only checks which ones exist.
"""

from __future__ import annotations

import os

from netsandbox.errors import UsageError
from netsandbox.paths import LISTS, PROFILE_FOLDER, PROFILES, config_home, named_profile_folder, state_home
from netsandbox.runtime.private_file import digest
from netsandbox.runtime.used_homes import CONFIG, STATE, check_home
from netsandbox.system import ORGANISATION_FILE

USER_FILE = "config.toml"
PROJECT_FILE = ".netsandbox.toml"
AGENTS_FOLDER = ".agent-os"
DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
# All of these are read in one folder, from the lowest to the highest: files of other sandboxes, then ours.
PROJECT_FILES = (f"{AGENTS_FOLDER}/sandbox-config.json", ".claude-sandbox.json", ".sandbox.toml", PROJECT_FILE)
REPOSITORY = ".git"
RULES = ".toml"
NAME_LENGTH = 16  # of a list: the digest of its folder, a real path


def user_file() -> str | None:
    """The user's configuration, if there is one."""
    path = os.path.join(_checked_home(), USER_FILE)
    return path if os.path.lexists(path) else None


def organisation_files() -> tuple[str, ...]:
    """The organisation's configuration, if there is one. Nothing leaves it out."""
    return (ORGANISATION_FILE,) if os.path.lexists(ORGANISATION_FILE) else ()


def user_files() -> tuple[str, ...]:
    """The organisation's configuration, the user's, and the user's path list and rules for the current folder."""
    found = (user_file(), *((list_file(), rules_file()) if os.path.isdir(_lists()) else ()))
    return (*organisation_files(), *(path for path in found if path is not None and os.path.lexists(path)))


def list_file(folder: str | None = None) -> str | None:
    """The path of the user's list for *folder*, or for the current one; None if the current one was removed.

    *folder* is not resolved: a session can move its folder and leave a link to another one in its place."""
    try:
        return os.path.join(_lists(), digest(os.fsencode(folder or os.path.realpath(os.getcwd())))[:NAME_LENGTH])
    except OSError:  # it was removed
        return None


def rules_file(folder: str | None = None) -> str | None:
    """The path of the rules that the user approved for sessions in *folder*."""
    path = list_file(folder)
    return None if path is None else path + RULES


def is_about_folder(path: str) -> bool:
    """Whether *path* is a list or the rules of a folder."""
    return os.path.dirname(path) == _lists()


def is_list(path: str) -> bool:
    return is_about_folder(path) and not path.endswith(RULES)


def _lists() -> str:
    return os.path.join(_checked_home(), LISTS)


def _checked_home() -> str:
    return check_home(CONFIG, config_home())


def project_files() -> tuple[str, ...]:
    """The files of the current project, from the lowest to the highest: those of its root first, those of the current
    folder last. All count, since a command could otherwise drop the rules that deny something by a nearer file."""
    return tuple(
        path
        for folder in reversed(project_folders())
        for name in PROJECT_FILES
        if os.path.lexists(path := os.path.join(folder, name))
    )


def folder_of(path: str) -> str:
    """The base of relative paths in the file. It is the folder of the file; for a file in an agent's folder, the
    project; for a pipe or another descriptor, the current folder."""
    if path.startswith(DESCRIPTORS):
        return os.getcwd()
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.dirname(folder) if os.path.basename(folder) == AGENTS_FOLDER else folder


def project_folders() -> list[str]:
    """The current folder and those above it, within the repository; outside a repository only the current folder."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return []
    root = _repository(here)
    folders = [here]
    while folders[-1] != root:
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _repository(folder: str) -> str:
    """The root of the repository around *folder*; *folder* itself if there is none."""
    last = repository_marks(folder)[-1]
    return os.path.dirname(last) if os.path.lexists(last) else folder


def repository_marks(folder: str) -> list[str]:
    """The paths that decide where the repository of *folder* begins: upwards to the first that exists, or to the
    root."""
    marks: list[str] = []
    here, above = folder, ""
    while here != above:
        marks.append(os.path.join(here, REPOSITORY))
        if os.path.lexists(marks[-1]):
            break
        here, above = os.path.dirname(here), here
    return marks


def profile_folder() -> str:
    """The folder of the user's profiles."""
    named = named_profile_folder()
    if named is None:
        return os.path.join(_checked_home(), PROFILES)
    if not named.startswith("/") or not os.path.isdir(named):
        raise UsageError(f"{PROFILE_FOLDER}: {named!a} is not the full path of a folder; correct or unset the variable")
    return check_home(CONFIG, named, PROFILE_FOLDER)


def is_profile_name(name: str) -> bool:
    """Whether *name* can be a profile's name: it must not be a path, an option or another file."""
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum() and name[0] not in "-_"


def trust_folder() -> str:
    """It is in the state home, which no session sees."""
    return os.path.join(check_home(STATE, state_home()), "trust")
