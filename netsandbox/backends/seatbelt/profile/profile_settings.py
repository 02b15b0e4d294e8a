"""The settings of a session's profile: a frozen value, and how its paths are resolved.

Seatbelt compares resolved paths, so a rule with an unresolved path would match nothing. The function that resolves is
passed in: the file system's on macOS, a plain one elsewhere and in tests.
"""

from __future__ import annotations

from netsandbox_portmap import FAIL

from netsandbox.backends.seatbelt.profile.mac_paths import (
    ALIASES,
    ALL_TOOLCHAINS,
    CACHES,
    RUN_AT_HOME,
    RUN_IN_PROJECT,
    SETTINGS,
    below,
    home_secrets,
    resolved,
    secrets,
    toolchains,
)
from netsandbox.backends.seatbelt.profile.switches import ON
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with, frozen
from netsandbox.policy.file_rules import PROJECT, ResolvedPath, is_lifted
from netsandbox.policy.home_paths import OF_MAC, moved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NOTHING, DOORS = "nothing", "doors"


@frozen
class NetworkSettings:
    """Ports of localhost, each opened by number; 0 means none."""

    mode: str = NOTHING
    http_door: int = 0  # HTTP and SOCKS
    dns_door: int = 0
    requests_door: int = 0  # where the preload library requests ports
    strategy: str = FAIL
    base: int = 0  # first port of the window in which the command may listen
    count: int = 0  # its ports; 0: the command may not listen
    connect_host: tuple[int, ...] = ()
    unix_sockets: tuple[str, ...] = ()


@frozen
class OwnPaths:
    """Our own paths, out of the command's reach (INV-8)."""

    hidden: tuple[str, ...] = ()  # neither read nor written: state folder, audit log, control socket, lock file
    sealed: tuple[str, ...] = ()  # read, never written: policy file, preload library, our packages
    port_map: str = ""  # read, though its folder is hidden; empty if none


@frozen
class ProfileSettings:
    """Paths are resolved and absolute; see `resolve`."""

    working: str
    home: str
    mode: str = PROJECT  # one of FILE_MODES
    projects: tuple[str, ...] | None = None  # the folders of the project; None: the working directory
    temporary: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # paths that the user opens, with the secrets at or below them
    lifted: tuple[str, ...] = ()  # the secrets that this opens
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()  # never written, under any rule
    kept: tuple[tuple[str, str], ...] = ()  # folder and name in it: written only if `write` names it
    deny_write: tuple[tuple[str, str], ...] = ()  # folder and name in it, as the user closed it
    executables: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()  # folders of the home that are elsewhere; see `policy.home_paths`
    links: tuple[str, ...] = ()  # links on the way to these paths; each may be read, to be followed
    terminal: str = ""
    own: OwnPaths = OwnPaths()
    network: NetworkSettings = NetworkSettings()
    switches: tuple[str, ...] = ON
    raw: tuple[tuple[str, str], ...] = ()  # SBPL rules, each text with its origin


def resolve(
    settings: ProfileSettings, realpath: Callable[[str], str], is_folder: Callable[[str], bool]
) -> ProfileSettings:
    """*settings* with every path resolved. A missing working directory is an error."""
    if not is_folder(settings.working):
        raise UsageError(f"the working directory {settings.working!a} does not exist; change to one that does")
    links = _Links(realpath)
    values = dict(vars(settings))
    shown = tuple(ResolvedPath(path, links.one(path)) for path in settings.shown)
    for name in ("working", "home", "terminal"):
        values[name] = links.one(values[name])
    for name, places in _moved_in(settings).items():
        elsewhere = [
            path for path in moved(places, settings.moves) if name != "deny" or not _is_lifted(path, shown, links)
        ]
        values[name] = links.all((*values[name], *elsewhere))
    for name in ("kept", "deny_write"):
        values[name] = tuple((links.one(folder), inside) for folder, inside in values[name])
    if settings.projects is not None:
        values["projects"] = links.all(settings.projects)
    own, network = settings.own, settings.network
    values["own"] = OwnPaths(links.all(own.hidden), links.all(own.sealed), links.one(own.port_map))
    values["network"] = copy_with(network, unix_sockets=links.all(network.unix_sockets))
    home = values["home"]
    values["executables"] += links.elsewhere(toolchains(home))
    values["read"] += links.elsewhere(below(home, SETTINGS))
    values["shown"] = tuple(place.real for place in shown)
    values["lifted"] = tuple(path for path in home_secrets(home) if _is_lifted(path, shown, links))
    values["deny"] += links.elsewhere(path for path in secrets(home) if path not in values["lifted"])
    later = (below(home, RUN_AT_HOME), *(below(folder, RUN_IN_PROJECT) for folder in values["projects"] or ()))
    obeyed = [path for paths in later for path in links.elsewhere(paths)]
    values["protect"] += tuple(path for path in obeyed if path not in values["write"])
    if "tool-caches" in settings.switches:
        values["write"] += links.elsewhere(below(home, CACHES))
    values["links"] = tuple(sorted(links.followed.union(settings.links)))
    return ProfileSettings(**values)


def _moved_in(settings: ProfileSettings) -> dict[str, tuple[str, ...]]:
    """Each list of paths, with the moved places of the home that belong to it."""
    return {
        "temporary": (),
        "read": (),
        "write": CACHES if "tool-caches" in settings.switches else (),
        "deny": OF_MAC,
        "protect": RUN_AT_HOME,
        "executables": ALL_TOOLCHAINS,
    }


def _is_lifted(secret: str, shown: Iterable[ResolvedPath], links: _Links) -> bool:
    return bool(shown) and is_lifted(ResolvedPath(secret, links.one(secret)), shown)


class _Links:
    """Follows links, and collects their names."""

    def __init__(self, realpath: Callable[[str], str]) -> None:
        self._realpath = realpath
        self.followed: set[str] = set()

    def one(self, path: str) -> str:
        if not path:
            return path
        found = resolved(self._realpath(path))
        if found != path and path.startswith("/"):
            self._note(path)
        return found

    def _note(self, path: str) -> None:
        """Add each link on the way, with its parent resolved and its own name not."""
        at = ""
        for name in path.split("/"):
            if name in ("", ".", ".."):
                at = resolved(f"{at}/{name}").rstrip("/")
                continue
            link, at = f"{at}/{name}", resolved(self._realpath(f"{at}/{name}"))
            if link not in (at, *ALIASES):
                self.followed.add(link)

    def all(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.one(path) for path in paths)

    def elsewhere(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The targets of those *paths* that are links: a file in a folder of settings, a cache on another disk."""
        return tuple(found for path in paths if (found := self.one(path)) != path)
