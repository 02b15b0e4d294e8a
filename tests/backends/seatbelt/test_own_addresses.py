"""The Mac's own addresses, out of what ifconfig prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.own_addresses import InterfaceAddresses, parse_ifconfig
from netsandbox.errors import HostError
from netsandbox.policy.ip import parse

PRINTED = """\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 02:00:00:00:00:01
\tinet 192.0.2.7 netmask 0xffffff00 broadcast 192.0.2.255
\tinet6 2001:db8::7 prefixlen 64 autoconf secured
\tstatus: active
"""


def test_every_address_is_found_and_no_other() -> None:
    expected = ["127.0.0.1", "::1", "fe80::1", "192.0.2.7", "2001:db8::7"]
    assert parse_ifconfig(PRINTED) == {parse(text) for text in expected}


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    parse_ifconfig(text)
    parse_ifconfig("\tinet " + text)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "ifconfig"
    made.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path / 'printed'}\n")
    made.chmod(0o755)
    (tmp_path / "printed").write_text(PRINTED)
    return made


def test_it_is_asked_again_after_five_seconds_and_the_same_answer_is_the_same_object(
    program: Path, tmp_path: Path
) -> None:
    now = 0.0
    addresses = InterfaceAddresses(lambda: now, str(program))
    first = addresses()
    assert parse("192.0.2.7") in first
    now = 6.0
    assert addresses() is first
    (tmp_path / "printed").write_text("\tinet 192.0.2.8 netmask 0xffffff00\n")
    assert addresses() is first
    now = 12.0
    assert addresses() == {parse("192.0.2.8")}


def test_what_was_known_stays_when_nothing_is_said(program: Path, tmp_path: Path) -> None:
    """INV-1: a question that failed opens no address of the host."""
    now = 0.0
    addresses = InterfaceAddresses(lambda: now, str(program))
    first = addresses()
    (tmp_path / "printed").unlink()
    now = 6.0
    assert addresses() is first
    program.unlink()
    now = 12.0
    assert addresses() is first


def test_before_anything_is_known_a_question_that_fails_is_no_answer(program: Path, tmp_path: Path) -> None:
    """INV-1: else a command that lets no process start would open the Mac's own addresses by that."""
    (tmp_path / "printed").unlink()
    addresses = InterfaceAddresses(lambda: 0.0, str(program))
    with pytest.raises(HostError, match="lists no address of this Mac"):
        addresses()
    (tmp_path / "printed").write_text(PRINTED)
    assert parse("192.0.2.7") in addresses()
