"""The preload library and its compiled port map, loaded while the files on the disk can still be trusted."""

from __future__ import annotations

import os

from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.contract import Native


def load_native() -> Native:
    """The compiled side of the port map. The library must exist too, or nothing would be rewritten."""
    from netsandbox_interpose.library import LIBRARY

    try:
        import netsandbox_interpose._native as native
    except ImportError as error:
        raise _not_built(str(error)) from None
    if not os.path.exists(LIBRARY):
        raise _not_built(f"there is no {LIBRARY}")
    return native


def _not_built(why: str) -> HostError:
    advice = "reinstall netsandbox with a C compiler at hand, or use --rewrite-engine kernel"
    return HostError(f"the preload library cannot be used ({why}); {advice}")
