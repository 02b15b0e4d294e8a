"""What a Mac's programs print is read as they print it; what is not understood is no fact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.doctor.mac_facts import loopback_aliases, name_servers, product_version, protection

SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t14.6.1\nBuildVersion:\t\t23G93\n"
LO0 = """lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
\tinet 127.0.0.2 netmask 0xff000000
\tinet 127.78.32.1 netmask 0xff000000
\tnd6 options=201<PERFORMNUD,DAD>
"""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (SW_VERS, (14, 6, 1)),
        ("ProductVersion: 26.0", (26, 0)),
        ("ProductVersion: 10.15.7 ", (10, 15, 7)),
        ("ProductVersion:", None),
        ("ProductVersion: 14.x", None),
        ("ProductVersion: 14.\u0661", None),
        ("ProductName: macOS", None),
        ("", None),
    ],
)
def test_the_version_is_read(text: str, version: tuple[int, ...] | None) -> None:
    assert product_version(text) == version


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("System Integrity Protection status: enabled.\n", True),
        ("System Integrity Protection status: disabled.\n", False),
        ("System Integrity Protection status: unknown (Custom Configuration).\n\nConfiguration:\n", False),
        ("System Integrity Protection status: perhaps.\n", None),
        ("status: enabled.", None),
        ("csrutil: failed", None),
        ("", None),
    ],
)
def test_protection_is_on_or_not_or_not_known(text: str, enabled: bool | None) -> None:
    assert protection(text) is enabled


def test_aliases_are_the_addresses_beside_the_first() -> None:
    assert loopback_aliases(LO0) == ("127.0.0.2", "127.78.32.1")
    assert loopback_aliases("\tinet 127.0.0.1 netmask 0xff000000\n\tinet 192.0.2.1\n\tinet\n") == ()


def test_name_servers_are_named_one_a_line() -> None:
    assert name_servers("# x\nsearch a.test\nnameserver 192.0.2.53\nnameserver\nnameserver fe80::1%en0\n") == (
        "192.0.2.53",
        "fe80::1%en0",
    )


@given(st.text(max_size=60))
def test_any_text_is_facts_or_none(text: str) -> None:
    version = product_version("ProductVersion: " + text)
    assert version is None or all(part >= 0 for part in version)
    assert protection("System Integrity Protection status:" + text) in (True, False, None)
    assert all(alias.startswith("127.") for alias in loopback_aliases(text))
    name_servers(text)
