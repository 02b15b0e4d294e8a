"""What is wanted: everything, a list, or nothing."""

from __future__ import annotations

import pytest
from netsandbox_portmap.published import Published, Wanted


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(automatic=True), (True, True)),
        (Wanted(automatic=False, fixed={3000: None}), (True, False)),
        (Wanted(automatic=False, fixed={3000: 8080}), (True, False)),
        (Wanted(automatic=False), (False, False)),
    ],
)
def test_which_ports_are_wanted(wanted: Wanted, expected: tuple[bool, bool]) -> None:
    assert (wanted.wants(3000), wanted.wants(4000)) == expected


def test_the_device_may_be_missing() -> None:
    one = Published(3000, ("::", 3000), ("127.0.0.1", 20000), None, "http://shop.localhost:20099/", 1, "node", 0.0)
    assert (one.device_address, one.device) == (None, None)
