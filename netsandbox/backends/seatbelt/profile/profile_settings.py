"""What a session's profile is made from: a frozen value, and how its paths are resolved before they go in.

Seatbelt compares resolved paths, so a path that was not resolved would make a rule that matches nothing. How to resolve
is injected: the file system's answer on a Mac, a plain one elsewhere and in tests.
"""

from __future__ import annotations

from netsandbox_portmap.strategies import FAIL

from netsandbox.backends.seatbelt.profile.mac_paths import (
    ALIASES,
    ALL_TOOLCHAINS,
    CACHES,
    RUN_AT_HOME,
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
from netsandbox.policy.file_rules import ResolvedPath, is_lifted
from netsandbox.policy.moved_paths import moved
from netsandbox.policy.secret_paths import OF_MAC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NOTHING, DOORS = "nothing", "doors"


@frozen
class NetworkSettings:
    """Ports of localhost, each opened by number; 0 stands for none."""

    mode: str = NOTHING
    http_door: int = 0  # HTTP and SOCKS
    dns_door: int = 0
    asking_door: int = 0  # where the interposer asks for mappings and tells what it did
    strategy: str = FAIL
    base: int = 0  # first port of the window in which the command may listen
    count: int = 0  # ports in it; 0: it may not listen
    connect_host: tuple[int, ...] = ()
    unix_sockets: tuple[str, ...] = ()


@frozen
class OwnPaths:
    """Ours, and out of the command's reach (INV-8)."""

    hidden: tuple[str, ...] = ()  # neither read nor written: state folder, audit log, control socket, lock file
    sealed: tuple[str, ...] = ()  # read, never written: policy file, interposer, our packages
    port_map: str = ""  # read, though its folder is hidden; empty for none


@frozen
class ProfileSettings:
    """Paths are resolved and absolute; see `resolve`."""

    working: str
    home: str
    temporary: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # what the user wants read though secrets are there: those at or below these paths
    lifted: tuple[str, ...] = ()  # the secrets that this opens
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()  # never written, whatever allows it
    executables: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()  # places of the home that are elsewhere; see `moved_places`
    links: tuple[str, ...] = ()  # links on the way to the paths here, each of which may be looked at to be followed
    terminal: str = ""
    own: OwnPaths = OwnPaths()
    network: NetworkSettings = NetworkSettings()
    switches: tuple[str, ...] = ON
    raw: tuple[tuple[str, str], ...] = ()  # rules in Seatbelt's own words, each text with its origin


def resolve(
    settings: ProfileSettings, realpath: Callable[[str], str], is_folder: Callable[[str], bool]
) -> ProfileSettings:
    """*settings* with every path resolved. A working directory that is not there is an error."""
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
    own, network = settings.own, settings.network
    values["own"] = OwnPaths(links.all(own.hidden), links.all(own.sealed), links.one(own.port_map))
    values["network"] = copy_with(network, unix_sockets=links.all(network.unix_sockets))
    home = values["home"]
    values["executables"] += links.elsewhere(toolchains(home))
    values["read"] += links.elsewhere(below(home, SETTINGS))
    values["shown"] = tuple(place.real for place in shown)
    values["lifted"] = tuple(path for path in home_secrets(home) if _is_lifted(path, shown, links))
    values["deny"] += links.elsewhere(path for path in secrets(home) if path not in values["lifted"])
    values["protect"] += links.elsewhere(below(home, RUN_AT_HOME))
    if "tool-caches" in settings.switches:
        values["write"] += links.elsewhere(below(home, CACHES))
    values["links"] = tuple(sorted(links.followed.union(settings.links)))
    return ProfileSettings(**values)


def _moved_in(settings: ProfileSettings) -> dict[str, tuple[str, ...]]:
    """Each list of paths, with the places of the home that go into it where they were moved."""
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
    """Follows links, and keeps the names of those it met."""

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
        """Each link on the way, by the name that it is met under: what leads to it resolved, itself not."""
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
        """Where those of *paths* lead that are links: a file kept in a folder of settings, a cache on another disk."""
        return tuple(found for path in paths if (found := self.one(path)) != path)
