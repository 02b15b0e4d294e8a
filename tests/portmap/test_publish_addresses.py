"""Where a listener appears, by strategy; and which listeners there is a way to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import STRATEGIES
from netsandbox_portmap.publish_addresses import dial_address, faces

DEVICE = "127.78.32.1"
PORTS = st.integers(1, 65535)


class FakeWindow:
    device = DEVICE


@pytest.mark.parametrize(
    ("strategy", "given_device", "expected"),
    [
        ("isolate", False, (("127.0.0.1", None), ("::1", None))),
        ("isolate", True, (("127.0.0.1", None), ("::1", None), (DEVICE, 3000))),
        ("fail", False, (("127.0.0.1", 3000), ("::1", 3000))),
        ("fail", True, ((DEVICE, 3000),)),
        ("rewire-device", False, ((DEVICE, 3000),)),
        ("rewire-port", False, (("127.0.0.1", None), ("::1", None))),
    ],
)
def test_each_strategy_has_its_places(
    strategy: str, given_device: bool, expected: tuple[tuple[str, int | None], ...]
) -> None:
    assert faces(strategy, 3000, FakeWindow(), device_given=given_device) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("isolate", (("127.0.0.1", 8080), ("::1", 8080))),
        ("fail", (("127.0.0.1", 8080), ("::1", 8080))),
        ("rewire-device", ((DEVICE, 8080),)),
        ("rewire-port", (("127.0.0.1", 8080), ("::1", 8080))),
    ],
)
def test_a_fixed_port_takes_the_place_of_the_chosen_one(
    strategy: str, expected: tuple[tuple[str, int | None], ...]
) -> None:
    assert faces(strategy, 3000, FakeWindow(), device_given=False, host_port=8080) == expected


@given(st.sampled_from(STRATEGIES), PORTS, st.booleans(), st.none() | PORTS)
def test_every_face_is_a_loopback_address(strategy: str, port: int, device: bool, host_port: int | None) -> None:
    """INV-7"""
    found = faces(strategy, port, FakeWindow(), device_given=device, host_port=host_port)
    assert found
    assert all(ipaddress.ip_address(address).is_loopback for address, _ in found)


@pytest.mark.parametrize(
    ("address", "dialled"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("::", "::1"),
        ("::1", "::1"),
        ("127.0.0.5", "127.0.0.5"),
        ("::ffff:127.0.0.5", "127.0.0.5"),
        ("::ffff:0.0.0.0", "127.0.0.1"),
        ("192.0.2.1", None),
        ("::ffff:192.0.2.1", None),
        ("2001:db8::1", None),
        ("::127.0.0.1", None),
        ("", None),
    ],
)
def test_only_loopback_and_wildcard_listeners_are_dialled(address: str, dialled: str | None) -> None:
    assert dial_address(address) == dialled


@given(st.ip_addresses())
def test_what_is_dialled_is_loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    dialled = dial_address(str(address))
    assert dialled is None or ipaddress.ip_address(dialled).is_loopback
