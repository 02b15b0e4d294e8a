"""Paths that a session's profile names besides the fixed tables, looked up on this host before the command runs.

- The git directories of the project: their configuration and hooks stay as they are, also those that are missing.
- The programs on `PATH` that lie in the home, each with the folder tree that it belongs to.
- The trees that the supervisor itself runs from.

Nothing here opens a secret: the profile denies these after everything that it allows.
"""

from __future__ import annotations

import os
import sys

from netsandbox.backends.seatbelt.profile.mac_paths import RUN_BY_GIT, secrets
from netsandbox.backends.seatbelt.profile.sbpl_string import can_be_quoted
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.git_config import MAX_CONFIG, parse
from netsandbox.runtime.project import MAX_FOLDERS, find_repositories, one_line
from netsandbox.runtime.protection import code_paths, config_paths, hidden_homes
from netsandbox.runtime.real_paths import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox.policy.git_config import Line

    Pair = tuple[str, str]

MAX_GIT_FOLDERS = 64
MAX_INCLUDES = 32
MAX_PROGRAM_LINKS = 512
# Package managers install in these trees for the user, our interpreter and its libraries among the rest.
SHARED_TREES = ("/opt/homebrew", "/opt/local", "/usr/local")
SYSTEM = ("/System", "/bin", "/sbin", "/usr/bin", "/usr/sbin")  # shown in any case
# They hold more than one toolchain.
HOLDERS = (
    *("/", "/Applications", "/Library", "/System", "/Users", "/Users/Shared", "/Volumes", "/opt", "/private", "/usr"),
    *("/private/tmp", "/private/var", "/private/var/tmp", "/private/var/folders", "/dev", "/tmp", "/home"),  # noqa: S108
)


def own_code() -> tuple[str, ...]:
    """What no session writes, in any mode (INV-8): our configuration, our code, and all that runs or may load it."""
    real = os.path.realpath(sys.base_prefix)
    hidden = tuple(map(os.path.realpath, hidden_homes()))  # as a whole
    code = (path for path in code_paths() if not any(is_within(path, folder) for folder in hidden))
    return (*config_paths(), *code, *(tree for tree in SHARED_TREES if is_within(real, tree)))


def split_missing(path: str, exists: Callable[[str], bool] = os.path.lexists) -> Pair:
    """*path* as the folder that exists, and the name in it, which may have slashes."""
    folder, name = os.path.split(path)
    while folder != "/" and not exists(folder):
        folder, last = os.path.split(folder)
        name = f"{last}/{name}"
    return folder, name


def repositories_besides(projects: Iterable[str], known: Iterable[str]) -> list[str]:
    """The repositories in *projects* that are not among *known*."""
    old = set(known)
    return [path for project in projects for path in find_repositories(project, MAX_FOLDERS).found if path not in old]


class GitPaths:
    """Finds what the host's git would run or obey. `pairs` are folders and names in them, for names that are missing
    too; `repositories` those of the project."""

    def __init__(self, projects: Iterable[str], home: str) -> None:
        self.pairs: list[Pair] = []
        self.repositories: list[str] = []
        self._home = home
        self._folders: set[str] = set()
        self._configs: set[Pair] = set()
        for project in projects:
            if os.path.isdir(f"{project}/.hg"):
                self.pairs.append((project, ".hg/hgrc"))
            self.repositories += find_repositories(project, MAX_FOLDERS).found
            if one_line(f"{project}/HEAD", "") is not None:  # the git directory of a worktree's repository
                self._git_folder(project, project)
        for path in self.repositories:
            worktree = os.path.dirname(path)
            if os.path.isfile(path):
                self.pairs.append(split_missing(path))
            named = one_line(path, "gitdir:")
            self._git_folder(os.path.realpath(os.path.join(worktree, named) if named else path), worktree)
            for config in ("/etc/gitconfig", f"{home}/.gitconfig", f"{home}/.config/git/config"):
                self._follow(config, worktree)

    def _git_folder(self, folder: str, worktree: str) -> None:
        if folder in self._folders or not os.path.isdir(folder) or len(self._folders) >= MAX_GIT_FOLDERS:
            return
        self._folders.add(folder)
        above, own = os.path.split(folder)
        self.pairs += [(above, f"{own}/{name}") for name in RUN_BY_GIT]
        common = one_line(f"{folder}/commondir", "")
        if common is not None:
            self._git_folder(os.path.realpath(os.path.join(folder, common)), worktree)
        self._follow(f"{folder}/config", worktree)
        for name in names_in(f"{folder}/worktrees"):
            self.pairs += [
                (above, f"{own}/worktrees/{name}/{file}") for file in ("commondir", "config.worktree", "gitdir")
            ]
        self._modules(f"{folder}/modules", worktree)

    def _modules(self, folder: str, worktree: str) -> None:
        """The git directories of submodules; their names may have slashes."""
        for name in names_in(folder)[:MAX_GIT_FOLDERS]:
            inner = f"{folder}/{name}"
            if os.path.islink(inner) or not os.path.isdir(inner):
                continue
            if os.path.isfile(f"{inner}/HEAD"):
                self._git_folder(inner, worktree)
            elif inner.count("/") < folder.count("/") + 8:
                self._modules(inner, worktree)

    def _follow(self, config: str, worktree: str) -> None:
        """Keep what core.hooksPath and include.path name."""
        if (config, worktree) in self._configs or len(self._configs) > MAX_INCLUDES:
            return
        self._configs.add((config, worktree))
        for line in _settings(config):
            value = line.value
            if not value or "\0" in value:
                continue
            value = self._home + value[1:] if value.startswith("~/") else value
            if (line.prefix, line.key) == ("core", "hookspath"):
                self.pairs.append(split_missing(os.path.normpath(os.path.join(worktree, value))))
            elif line.key == "path" and line.prefix.partition(".")[0] in ("include", "includeif"):
                target = os.path.normpath(os.path.join(os.path.dirname(config), value))
                self.pairs.append(split_missing(target))
                self._follow(target, worktree)


def _settings(path: str) -> list[Line]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return parse(os.read(descriptor, MAX_CONFIG).decode("utf-8", "surrogateescape"))
    except (OSError, ValueError):  # git does not read it either
        return []
    finally:
        os.close(descriptor)


def programs_on_path(path: str, home: str, held: Iterable[str], known: Callable[[str], str]) -> tuple[str, ...]:
    """The trees of the programs in *path*, to be read and run. A tree that holds any of *held* is left out, and so is a
    folder in one of them: a command could have made the links in it."""
    kept, closed = tuple(held), secrets(home)
    found: dict[str, None] = {}
    left = MAX_PROGRAM_LINKS
    for folder in dict.fromkeys(path.split(":")):
        real = known(folder) if folder.startswith("/") else "/"
        if real in HOLDERS or real == home or any(is_within(real, each) for each in (*kept, *SYSTEM)):
            continue
        links = [f"{folder}/{name}" for name in names_in(folder) if os.path.islink(f"{folder}/{name}")][:left]
        left -= len(links)
        for each in (real, *(os.path.dirname(known(link)) for link in links)):
            tree = _tree(each, home)
            if tree in HOLDERS or any(is_within(inner, tree) for inner in (home, *kept)):
                continue
            if not any(is_within(tree, secret) for secret in closed) and can_be_quoted(tree):
                found[tree] = None
    return tuple(found)


def _tree(folder: str, home: str) -> str:
    """`X` for `X/bin`, unless `X` holds other things too."""
    above, name = os.path.split(folder)
    whole = name in ("bin", "sbin") and above not in (home, f"{home}/.local", *HOLDERS)
    return above if whole else folder
