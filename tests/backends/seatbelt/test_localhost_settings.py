"""What a Mac keeps of a session's localhost, and what it refuses."""

from __future__ import annotations

import pytest
from netsandbox_portmap.localhost_settings import LocalhostSettings, check

from netsandbox.backends.seatbelt.localhost_settings import mac_settings
from netsandbox.errors import UsageError


@pytest.mark.parametrize(
    ("strategy", "library", "engine"),
    [
        ("fail", True, "preload"),
        ("fail", False, "kernel"),
        ("rewire-device", True, "preload"),
        ("rewire-device", False, "preload"),
        ("rewire-port", True, "preload"),
    ],
)
def test_each_strategy_has_the_engine_that_there_is(strategy: str, library: bool, engine: str) -> None:
    """Without the library `fail` is Seatbelt's alone; where it rewrites it cannot be left out."""
    for wanted in ("kernel", "preload"):
        asked = LocalhostSettings(strategy=strategy, engine=wanted, base=20000, count=7)
        found = check(mac_settings(asked, library=library))
        assert (found.strategy, found.engine, found.base, found.count) == (strategy, engine, 20000, 7)
        assert found.guarded


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (LocalhostSettings(), "isolate does not exist on macOS.*use --network-strategy fail"),
        (LocalhostSettings(strategy="fail", publish=()), "leave out --publish and --no-publish"),
        (LocalhostSettings(strategy="rewire-port", publish=((3000, 3000),)), "leave out --publish"),
        (LocalhostSettings(strategy="fail", device="127.0.0.2"), "use --network-strategy rewire-device"),
    ],
)
def test_what_cannot_be_kept_says_what_to_use(wanted: LocalhostSettings, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mac_settings(wanted, library=True)
