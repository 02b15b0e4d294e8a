"""Classifies this host's paths for `netsandbox learn`, before the command runs."""

from __future__ import annotations

import os

from netsandbox.backends.namespaces.file_view import always_writable
from netsandbox.frozen import frozen
from netsandbox.paths import home, packages
from netsandbox.policy import home_paths
from netsandbox.policy.path_folding import EntryLimits
from netsandbox.runtime.protection import config_paths, hidden_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.namespaces.file_view import FileView


@frozen
class WatchedPaths:
    """Real paths: where every session may write, what this one does not see, and where rules are possible."""

    writable: tuple[str, ...]
    hidden: tuple[str, ...]
    limits: EntryLimits


def watched_paths(view: FileView, environment: Mapping[bytes, bytes]) -> WatchedPaths:
    """*environment* is the command's."""
    hidden = (*view.folders, *view.files)
    return WatchedPaths(always_writable(environment), hidden, entry_limits(hidden))


def entry_limits(hidden: tuple[str, ...] = ()) -> EntryLimits:
    """Paths that rules may not name: places of secrets, whether they exist or not, and our own files."""
    own = os.path.realpath(home())
    secrets = (*(f"{own}/{name}" for name in home_paths.OF_LINUX), *home_paths.LINUX_SYSTEM)
    ours = (*hidden_homes(), *config_paths(), *packages())
    return EntryLimits(own, tuple(dict.fromkeys((*hidden, *secrets, *map(os.path.realpath, ours)))))
