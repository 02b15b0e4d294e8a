"""Without the library a session is stricter, never laxer, and what was chosen is refused and not replaced."""

from __future__ import annotations

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.library_fallback import notice, stricter
from netsandbox.errors import HostError

TROUBLE = "the preload library is missing"


def test_a_default_becomes_fail_and_the_rest_stays() -> None:
    wanted = LocalhostSettings(strategy="rewire-port", base=31000, connect_host=(5432,))
    assert stricter(wanted, TROUBLE) == LocalhostSettings(strategy="fail", base=31000, connect_host=(5432,))


@pytest.mark.parametrize("strategy", ["rewire-port", "rewire-device"])
def test_what_was_chosen_is_refused(strategy: str) -> None:
    with pytest.raises(HostError, match=rf"is missing, and {strategy} needs .*use --network-strategy fail"):
        stricter(LocalhostSettings(strategy=strategy, chosen=True), TROUBLE)


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("strategy", ["fail", "isolate"])
def test_what_needs_no_library_is_not_touched(strategy: str, chosen: bool) -> None:
    """Whether there is such a strategy on a Mac at all is said elsewhere."""
    wanted = LocalhostSettings(strategy=strategy, chosen=chosen)
    assert stricter(wanted, TROUBLE) == wanted


def test_the_notice_is_one_line_with_what_is_missing_and_what_to_do() -> None:
    line = notice(TROUBLE, helper=True)
    assert line.startswith(f"{TROUBLE}: ")
    assert "sandbox-exec starts the session" in notice(TROUBLE, helper=False)
    assert "LISTENING_BASE_PORT" in line
    assert "reinstall" in line
    assert "\n" not in line
