"""What the places of this host are to `netsandbox learn`: looked up before the command runs."""

from __future__ import annotations

import os

from netsandbox import secret_places
from netsandbox.audit.places import home, state_home
from netsandbox.configuration.places import config_folders
from netsandbox.learning.path_folding import Ground
from netsandbox.linux.file_view import always_writable
from netsandbox.linux.view import packages
from netsandbox.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.linux.file_view import FileView


@record
class WatchedPlaces:
    """Real paths: where every session may write, what this one does not see, and where rules may stand."""

    writable: tuple[str, ...]
    hidden: tuple[str, ...]
    ground: Ground


def watched_places(view: FileView, environment: Mapping[bytes, bytes]) -> WatchedPlaces:
    """*environment* is the command's."""
    hidden = (*view.folders, *view.files)
    return WatchedPlaces(always_writable(environment), hidden, ground(hidden))


def ground(hidden: tuple[str, ...] = ()) -> Ground:
    """Closed to rules: places of secrets, whether they are there or not, and what is ours."""
    own = os.path.realpath(home())
    secrets = (*(f"{own}/{name}" for name in secret_places.OF_LINUX), *secret_places.LINUX_SYSTEM)
    ours = (state_home(), *config_folders(), *packages())
    return Ground(own, tuple(dict.fromkeys((*hidden, *secrets, *map(os.path.realpath, ours)))))
