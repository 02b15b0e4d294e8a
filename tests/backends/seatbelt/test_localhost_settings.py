"""What a Mac keeps of a session's localhost, and what it refuses."""

from __future__ import annotations

import pytest
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings, check

from netsandbox.backends.seatbelt.localhost_settings import check_for_mac, mac_settings, notice, stricter
from netsandbox.errors import HostError, UsageError


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


TROUBLE = "the preload library is missing"


def test_a_default_becomes_fail_and_the_rest_stays() -> None:
    wanted = LocalhostSettings(strategy="rewire-port", base=31000, connect_host=(HostPort(5432),))
    assert stricter(wanted, TROUBLE) == LocalhostSettings(strategy="fail", base=31000, connect_host=(HostPort(5432),))


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
    line = notice(TROUBLE)
    assert line.startswith(f"{TROUBLE}: ")
    assert "LISTENING_BASE_PORT" in line
    assert "reinstall" in line
    assert "\n" not in line


@pytest.mark.parametrize("door", [HostPort(5432, 6432), HostPort(5432, session="db")])
def test_a_mac_leads_no_port_elsewhere(door: HostPort) -> None:
    with pytest.raises(UsageError, match="a port keeps its number; write --connect-host"):
        check_for_mac(LocalhostSettings(strategy="fail", connect_host=(door,)))
