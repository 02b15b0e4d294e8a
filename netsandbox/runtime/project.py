"""The project of a session: the repository or workspace that encloses the working folder.

What lies in a project may come from anybody, so its content widens nothing: a `.git` file counts only if the repository
that it names knows this worktree, and a link in the project leads nowhere unless a rule shows its target.
"""

from __future__ import annotations

import os
import time

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.home_paths import OF_LINUX, OF_MAC, touches
from netsandbox.policy.shown_files import MANIFESTS, REPOSITORY_MARKS, WORKSPACE_MARKS
from netsandbox.runtime.private_file import content, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FILE = 4096  # bytes that are read of a file of git, or of a virtual environment
MAX_MANIFEST = 1 << 20
MAX_FOLDERS = 64  # of a project in which repositories are looked for before a session, about 20 µs each
MAX_DEEPER, MAX_SECONDS = 20_000, 2.0  # of a large project, in which its first session looks
KEPT_FOR = 3600  # seconds that what it found is believed
MAX_KEPT = 4 << 20  # bytes
MAX_LEFT = 1024  # others that are asked for a `.git` of their own, about 2 µs each
INSTALLED = ("node_modules", ".venv", "venv", "site-packages", "target", ".tox")
# Folders of a git directory. Others in it may hold repositories: a command can make any folder look like one.
GIT_DATA = ("objects", "refs", "logs", "hooks", "info", "branches", "lfs", "worktrees", "modules")
# Folders that hold no project themselves, only below them.
NOT_PROJECTS = (
    *("/tmp", "/var/tmp", "/home", "/srv", "/opt", "/mnt", "/media", "/var", "/usr", "/etc"),  # noqa: S108
    *("/private/tmp", "/private/var/tmp", "/private/var", "/private", "/Users", "/Users/Shared", "/Volumes"),
    *("/Applications", "/Library", "/System"),
)


SYSTEM_FOLDERS = (
    *("/usr/", "/etc/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/boot/", "/dev/", "/proc/", "/sys/", "/run/"),
    *("/var/lib/", "/var/cache/", "/var/log/", "/var/spool/", "/nix/", "/gnu/"),
    *("/private/etc/", "/private/var/db/", "/private/var/log/", "/System/", "/Library/", "/Applications/"),
)
_SECRETS = tuple(dict.fromkeys(f"{secret}/" for secret in (*OF_LINUX, *OF_MAC)))


@frozen
class Project:
    """`folder`: what may be written. `git`: the common git directory of a worktree outside of the folder."""

    folder: str
    git: str | None = None


@frozen
class Repositories:
    """Those in a folder: paths of `.git` and of bare repositories. `seen` are the folders that were looked at, and
    `left` those that were not."""

    found: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    is_whole: bool = True  # all were looked at, but for installed packages


def find_project(working: str, home: str) -> Project | None:
    """*working* and *home* are real paths. None: a session there gets no project, as in the home itself, in `/`, at a
    place of secrets and, without a mark, in a folder of settings or of the system."""
    if _holds_too_much(working, home):
        return None
    above: list[str] = []
    folder = working
    while not _holds_too_much(folder, home):
        above.append(folder)
        marks = [mark for mark in REPOSITORY_MARKS if os.path.lexists(f"{folder}/{mark}")]
        if marks:
            return _with_git(folder, home) if ".git" in marks else Project(folder)
        folder = os.path.dirname(folder)
    for folder in above:
        if any(os.path.lexists(f"{folder}/{mark}") for mark in WORKSPACE_MARKS) or _is_workspace(folder, working):
            return Project(folder)
    return None if _is_for_programs(working, home) else Project(working)


def _is_workspace(folder: str, working: str) -> bool:
    """Whether a manifest in *folder* makes it the workspace of *working*, which lies below it."""
    if folder == working:
        return False
    found = [name for name in MANIFESTS if os.path.lexists(f"{folder}/{name}")]
    if not found:
        return False
    from netsandbox.policy.workspaces import is_root

    member = working[len(folder) + 1 :]
    return any(is_root(name, _text(f"{folder}/{name}", os.O_NOFOLLOW, MAX_MANIFEST), member) for name in found)


def _holds_too_much(folder: str, home: str) -> bool:
    is_shared = is_within(home, folder) or folder in NOT_PROJECTS or folder == "/"
    return is_shared or touches(folder, home, _SECRETS)


def _is_for_programs(folder: str, home: str) -> bool:
    """Whether programs, not people, keep their files there: `~/.config/x`, `/usr/lib`."""
    if is_within(folder, home):
        return folder[len(home) + 1 :].startswith(".")
    return f"{folder}/".startswith(SYSTEM_FOLDERS) and not is_within(folder, "/usr/src")


def _with_git(folder: str, home: str) -> Project:
    """The project of a folder with `.git`; a `.git` file names the folder that has the repository.

    A session writes the folder, and so the `.git` file. It counts only if that repository, which such a session cannot
    write, knows the folder as its worktree or submodule.
    """
    named = one_line(f"{folder}/.git", "gitdir:")
    if named is None:
        return Project(folder)
    git = os.path.realpath(os.path.join(folder, named))
    if is_within(git, folder) or not _knows(git, folder):
        return Project(folder)
    above = os.path.dirname(folder)
    while not _holds_too_much(above, home):  # a submodule, or a worktree inside of the repository
        if is_within(git, f"{above}/.git"):
            return Project(above)
        above = os.path.dirname(above)
    parent, kind = os.path.split(os.path.dirname(git))  # <common>/worktrees/<name>
    if kind != "worktrees" or not os.path.isdir(f"{parent}/objects") or _holds_too_much(parent, home):
        return Project(folder)
    return Project(folder, parent)


def _knows(git: str, folder: str) -> bool:
    """Whether the git directory *git* belongs to the worktree or the submodule at *folder*."""
    back = one_line(f"{git}/gitdir", "")
    if back is not None:
        return os.path.realpath(os.path.join(git, back)) == f"{folder}/.git"
    for line in _lines(f"{git}/config"):
        name, _, value = line.partition("=")
        if name.strip().lower() == "worktree":
            return os.path.realpath(os.path.join(git, value.strip().strip('"'))) == folder
    return False


def find_repositories(folder: str, most: int) -> Repositories:
    """Look for each `.git` in *folder* and below it, and for bare repositories. The nearest come first. *most* folders
    are looked at, those of installed packages last."""
    search = _search([folder], most, folder)
    beside = [git for git in (f"{here}/.git" for here in search.left[:MAX_LEFT]) if os.path.lexists(git)]
    return Repositories((*search.found, *beside), search.seen, search.left, search.is_whole)


def _search(folders: Iterable[str], most: int, top: str | None = None) -> Repositories:
    """Look in *folders* and below them. *top* counts as no bare repository: the project may look like one."""
    end = time.monotonic() + MAX_SECONDS
    found: list[str] = []
    seen: list[str] = []
    waiting, later = list(folders), list[str]()
    is_whole = not waiting
    for here in waiting:
        if len(seen) == most or time.monotonic() > end:  # a command can make folders that take long
            break
        seen.append(here)
        is_bare, has_git, names = _look(here)
        if has_git:
            found.append(f"{here}/.git")
        if is_bare and here != top:
            found.append(here)
            names = [name for name in names if name not in GIT_DATA]
        for name in names:
            (later if name in INSTALLED else waiting).append(f"{here}/{name}")
        if len(waiting) == len(seen):
            is_whole = True
            waiting += later
            later = []
    return Repositories(tuple(found), tuple(seen), (*waiting[len(seen) :], *later), is_whole)


def all_repositories(folder: str, kept: str) -> Repositories:
    """Those of a whole project. In a large one the search takes long, so what it finds serves the sessions of the next
    hour: it is kept in the file *kept*, and its folders in another. Installed packages are left out."""
    near = find_repositories(folder, MAX_FOLDERS)
    if near.is_whole:
        return _with_known(near, f"{kept}-known")
    deep = _kept_search(kept)
    if deep is None:
        deep = _search([path for path in near.left if os.path.basename(path) not in INSTALLED], MAX_DEEPER)
        try:
            replace(f"{kept}-folders", b"".join(os.fsencode(path) + b"\0" for path in deep.seen))
            head = b"whole\0" if deep.is_whole else b"part\0"
            replace(kept, head + b"".join(os.fsencode(path) + b"\0" for path in deep.found))
        except OSError:  # the next session searches again
            pass
    found = tuple(dict.fromkeys((*near.found, *filter(None, map(_place_of, deep.found)))))
    return _with_known(Repositories(found, near.seen, near.left, deep.is_whole), f"{kept}-known")


def _with_known(search: Repositories, file: str) -> Repositories:
    """With those that earlier sessions found, which come first and are kept in *file*: a command could make so many
    folders or repositories that the others are not reached any more."""
    top = f"{search.seen[0]}/.git" if search.seen else ""
    try:
        known = [os.fsdecode(path) for path in content(file, MAX_KEPT).split(b"\0")[:-1]]
    except OSError:
        known = []
    there = {path: place for path in known if (place := _place_of(path)) is not None}
    first = [top] if top in search.found else []
    found = tuple(dict.fromkeys((*first, *there.values(), *search.found)))
    nested = list(dict.fromkeys((*there, *(path for path in search.found if path != top))))
    if nested != known:
        try:
            replace(file, b"".join(os.fsencode(path) + b"\0" for path in nested))
        except OSError:  # the next session finds what it can reach
            pass
    return Repositories(found, search.seen, search.left, search.is_whole)


def _place_of(repository: str) -> str | None:
    """One that was found earlier, or the folder on the way that we may not look into, as in `_look`. None: it is gone,
    or a command put a link on the way. A bare one may lack what a command can remove, but not its configuration."""
    place = repository
    try:
        while not _can_see(place):
            place = os.path.dirname(place)
    except (OSError, ValueError):
        return None
    is_bare = place == repository and os.path.basename(place) != ".git"
    if is_bare and not os.path.isfile(f"{place}/config") and not _look(place)[0]:
        return None
    folder = os.path.dirname(place) if place == repository else place
    return place if os.path.isabs(place) and os.path.realpath(folder) == folder else None


def _can_see(path: str) -> bool:
    try:
        os.lstat(path)
    except PermissionError:
        return False
    return True


def _kept_search(kept: str) -> Repositories | None:
    try:
        if not 0 <= time.time() - os.stat(kept).st_mtime < KEPT_FOR:
            return None
        head, *found = content(kept, MAX_KEPT).split(b"\0")[:-1]
    except (OSError, ValueError):
        return None
    return Repositories(tuple(map(os.fsdecode, found)), is_whole=head == b"whole")


def deeper_folders(kept: str) -> frozenset[str]:
    """Those that `all_repositories` looked at when it searched the whole project."""
    try:
        return frozenset(map(os.fsdecode, content(f"{kept}-folders", MAX_KEPT).split(b"\0")[:-1]))
    except OSError:
        return frozenset()


def new_repositories(
    before: Repositories, since: float, most: int, deeper: frozenset[str] = frozenset()
) -> Repositories:
    """Those that were made after the search *before*, which began at *since*. Only folders with other entries are
    looked at again, at most *most* of them: the time of that change cannot be set by a program. In the folders
    *deeper* an earlier search looked; what it found is in *before*."""
    found: list[str] = []
    known = {*before.found, *before.seen, *before.left, *deeper}
    top = before.seen[0]
    waiting = [(here, True) for here in before.seen if _changed(here) >= since]
    waiting += [(here, False) for here in deeper if _changed(here) >= since]
    left = [here for here in before.left[:MAX_LEFT] if here not in deeper]
    waiting += [(here, False) for here in left if _changed(here) >= since or _is_changed(here, since)]
    later: list[tuple[str, bool]] = []
    is_whole, done = not waiting, 0
    while done < min(most, len(waiting)):
        here, is_new = waiting[done]  # whether everything unknown in it is new
        is_bare, has_git, names = _look(here)
        here_found = [f"{here}/.git"] if has_git else []
        if is_bare and here != top:
            here_found.append(here)
            names = [name for name in names if name not in GIT_DATA]
        found += [path for path in here_found if path not in before.found and (is_new or _is_changed(path, since))]
        for name in names:
            if f"{here}/{name}" not in known:
                (later if name in INSTALLED else waiting).append((f"{here}/{name}", is_new))
        done += 1
        if done == len(waiting):
            is_whole = True
            waiting += later
            later = []
    return Repositories(tuple(dict.fromkeys(found)), is_whole=is_whole)


def later_repositories(folder: str, known: tuple[str, ...], since: float, most: int) -> tuple[str, ...]:
    """Those in *folder* that are not *known* and were made or configured from *since* on."""
    found = _search([folder], most, folder).found
    return tuple(path for path in found if path not in known and _is_changed(path, since))


def _look(folder: str) -> tuple[bool, bool, list[str]]:
    """Whether it is a bare repository or may hold some, whether it has a `.git`, and the folders in it."""
    names: list[str] = []
    has_git = False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == ".git":
                    has_git = True
                elif entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
    except PermissionError:  # a command could give the right back, so it counts as a repository
        return _is_ours(folder), False, []
    except OSError:  # it is gone
        return False, False, []
    names.sort()
    is_bare = os.path.lexists(f"{folder}/HEAD") and (
        all(os.path.isdir(f"{folder}/{name}") for name in ("objects", "refs")) or os.path.isfile(f"{folder}/commondir")
    )
    return is_bare, has_git, names


def _is_ours(folder: str) -> bool:
    try:
        return os.lstat(folder).st_uid == os.geteuid()
    except OSError:
        return False


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_ctime
    except OSError:
        return 0


def _is_changed(repository: str, since: float) -> bool:
    """Whether one that may be older was made or configured anew; a commit changes other files."""
    names = ("config", "hooks", "commondir")
    is_file_or_closed = os.path.isfile(repository) or not os.access(repository, os.R_OK)
    return any(_changed(f"{repository}/{name}") >= since for name in names) or (
        is_file_or_closed and _changed(repository) >= since
    )


def one_line(path: str, prefix: str) -> str | None:
    """The path in a one-line file of git; None if there is no such file."""
    line = next(iter(_lines(path)), "")
    rest = line[len(prefix) :].strip() if line.startswith(prefix) else ""
    return rest or None


def _lines(path: str) -> list[str]:
    return _text(path, os.O_NOFOLLOW).partition("\0")[0].splitlines()  # no path has a zero byte


def _text(path: str, flags: int = 0, most: int = MAX_FILE) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(descriptor, most))
    except OSError:  # a folder
        return ""
    finally:
        os.close(descriptor)


def base_of(tree: str) -> str | None:
    """The interpreter's folder that a virtual environment was made from."""
    for line in _text(f"{tree}/pyvenv.cfg").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and value.strip().startswith("/") and "\0" not in value:
            return os.path.dirname(os.path.realpath(value.strip()))
    return None
