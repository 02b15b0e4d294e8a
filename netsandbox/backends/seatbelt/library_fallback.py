"""What a session on a Mac is without the preload library (pure): stricter, and said so."""

from __future__ import annotations

from netsandbox_portmap.strategies import FAIL, REWIRE_DEVICE, REWIRE_PORT

from netsandbox.errors import HostError
from netsandbox.frozen import copy_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import LocalhostSettings


def stricter(wanted: LocalhostSettings, trouble: str) -> LocalhostSettings:
    """*wanted* by Seatbelt alone. A strategy that somebody chose is not replaced; *trouble* says what is missing."""
    if wanted.strategy not in (REWIRE_DEVICE, REWIRE_PORT):
        return wanted
    if wanted.chosen:
        advice = "reinstall netsandbox, or use --network-strategy fail, which needs no library"
        raise HostError(f"{trouble}, and {wanted.strategy} needs the preload library; {advice}")
    return copy_with(wanted, strategy=FAIL)


def notice(trouble: str, *, helper: bool) -> str:
    """One line for the user; *helper*: whether it is the library alone that is missing."""
    instead = "" if helper else ", so sandbox-exec starts the session, without the preload library"
    return (
        f"{trouble}{instead}: its servers can listen on ports of its window only (see LISTENING_BASE_PORT), and only"
        " programs that use the proxy variables reach what is allowed; reinstall netsandbox to change that"
    )
