"""Four names, as users write them."""

from __future__ import annotations

import netsandbox_portmap as strategies


def test_every_name_is_in_the_list_once() -> None:
    named = [value for name, value in vars(strategies).items() if name.isupper() and isinstance(value, str)]
    assert sorted(named) == sorted(strategies.STRATEGIES)
    assert strategies.STRATEGIES == ("isolate", "fail", "rewire-device", "rewire-port")


def test_each_system_has_a_default_that_it_can_keep() -> None:
    assert strategies.default_strategy("linux") == "isolate"
    assert strategies.default_strategy("darwin") == "rewire-port"
    assert set(strategies.STRATEGIES) - set(strategies.MAC_STRATEGIES) == {"isolate"}
