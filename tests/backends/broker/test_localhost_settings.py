"""The localhost settings that the broker backend keeps, and those that it refuses."""

from __future__ import annotations

import pytest
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.backends.broker.localhost_settings import broker_settings
from netsandbox.errors import UsageError


@pytest.mark.parametrize("strategy", ["rewire-device", "rewire-port", "fail"])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_strategy_that_needs_no_network_is_kept(strategy: str, chosen: bool) -> None:
    wanted = LocalhostSettings(strategy=strategy, chosen=chosen, base=20000, connect_host=(HostPort(5432),))
    assert broker_settings(wanted) == wanted


def test_the_default_becomes_a_device_of_the_session_and_the_rest_stays() -> None:
    found = broker_settings(LocalhostSettings(strategy="isolate", count=7, connect_host=(HostPort(5432),)))
    assert found == LocalhostSettings(strategy="rewire-device", count=7, connect_host=(HostPort(5432),))


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (LocalhostSettings(strategy="isolate", chosen=True), "use --network-strategy rewire-device, or --backend"),
        (LocalhostSettings(strategy="rewire-port", engine="preload"), "leave out --rewrite-engine preload"),
        (LocalhostSettings(publish=()), "leave out --publish and --no-publish"),
        (LocalhostSettings(publish=((3000, None),)), "leave out --publish and --no-publish"),
    ],
)
def test_what_only_a_network_of_its_own_could_keep_says_what_to_use(wanted: LocalhostSettings, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        broker_settings(wanted)
