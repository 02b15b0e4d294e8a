"""Where a session may listen: in its window and on its device, and nowhere else (INV-7)."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.bind_rule import BindRule, needs_capability, rule_for
from netsandbox_portmap.localhost_settings import STRATEGIES
from netsandbox_portmap.window import Window

ANY = "0.0.0.0"
OURS = "127.117.48.1"
WINDOW = Window(30000, 10, OURS)
addresses = st.one_of(
    st.sampled_from(["127.0.0.1", ANY, OURS, "127.0.0.2", "127.0.0.10", "::2", "192.0.2.1", "127.0.0.1 ", ""]),
    st.ip_addresses(v=4).map(str),
)
windows = st.builds(Window, st.integers(1024, 65000), st.integers(1, 500), st.just(OURS))


@given(windows, addresses, st.integers(0, 65535))
def test_a_yes_is_a_port_of_the_window_on_a_device_of_the_rule(window: Window, address: str, port: int) -> None:
    for given_device in (False, True):
        verdict = rule_for("fail", window, device_given=given_device).check(address, port)
        inside = port == 0 or window.base <= port < window.base + window.count
        devices = {window.device} if given_device else {"127.0.0.1", ANY}
        assert (verdict is None) == (inside and address in devices)


@given(windows, addresses, st.integers(0, 65535))
def test_a_no_says_which_of_the_two_is_wrong(window: Window, address: str, port: int) -> None:
    verdict = rule_for("fail", window, device_given=False).check(address, port)
    if verdict is None:
        return
    outside = port != 0 and port not in window
    assert verdict == ((errno.EACCES, "outside-window") if outside else (errno.EADDRNOTAVAIL, "wrong-device"))


@pytest.mark.parametrize("port", [WINDOW.base - 1, WINDOW.base + 10, 1, 65535])
def test_the_neighbours_of_the_window_are_outside(port: int) -> None:
    rule = rule_for("fail", WINDOW, device_given=False)
    assert rule.check("127.0.0.1", port) == (errno.EACCES, "outside-window")
    assert rule.check("127.0.0.1", WINDOW.base) is rule.check("127.0.0.1", WINDOW.base + 9) is None


@given(addresses, st.integers(0, 65535))
def test_rewire_device_has_every_port_of_its_own_device_but_privileged_ones(address: str, port: int) -> None:
    for given_device in (False, True):
        verdict = rule_for("rewire-device", WINDOW, device_given=given_device).check(address, port)
        if 0 < port < 1024:
            assert verdict == (errno.EACCES, "outside-window")
        else:
            assert verdict == (None if address == OURS else (errno.EADDRNOTAVAIL, "wrong-device"))


def test_rewire_port_has_its_window_of_localhost() -> None:
    rule = rule_for("rewire-port", WINDOW, device_given=False)
    assert rule == BindRule(WINDOW, ("127.0.0.1", ANY))


def test_a_device_of_its_own_excludes_the_wildcard() -> None:
    """It would be bound on every device, more than was given."""
    assert rule_for("fail", WINDOW, device_given=True).check(ANY, WINDOW.base) == (errno.EADDRNOTAVAIL, "wrong-device")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("device_given", [False, True])
def test_no_strategy_lets_a_foreign_address_through(strategy: str, device_given: bool) -> None:
    rule = rule_for(strategy, WINDOW, device_given=device_given)
    for address in ("192.0.2.1", "127.0.0.2", "127.117.48.2", "2001:db8::1", "", "localhost"):
        assert rule.check(address, WINDOW.base) is not None


def test_the_sentence_names_what_would_be_allowed() -> None:
    for device_given, device in ((False, "localhost"), (True, OURS)):
        assert f"ports 30000-30009 of {device} only; " in rule_for("fail", WINDOW, device_given=device_given).text()
    assert f"on {OURS} only; " in rule_for("rewire-device", WINDOW, device_given=False).text()


def test_ports_that_need_a_capability() -> None:
    assert [port for port in range(65536) if needs_capability(port)] == list(range(1, 1024))
