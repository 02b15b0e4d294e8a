"""The host's resolver files are read as the C library reads them, and nothing in them raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.resolv_conf import is_address, parse_hosts, parse_resolv_conf


def test_servers_and_options_are_read_from_resolv_conf() -> None:
    read = parse_resolv_conf(
        "# comment\n; other\nnameserver 192.0.2.1\nnameserver\t2001:db8::1\nnameserver fe80::1%eth0\n"
        "nameserver 192.0.2.4\noptions timeout:5 attempts:3 rotate ndots:15 timeout:x\n"
    )
    assert read.places == [("192.0.2.1", 53), ("2001:db8::1", 53), ("fe80::1%eth0", 53)]
    assert (read.timeout, read.attempts) == (5.0, 3)


def test_limits_of_options_and_the_default_server() -> None:
    read = parse_resolv_conf("options timeout:0 attempts:99\nnameserver not-an-address\nnameserver\n")
    assert (read.places, read.timeout, read.attempts) == ([("127.0.0.1", 53)], 1.0, 5)


@pytest.mark.attack(82)
def test_the_search_list_is_not_inherited() -> None:
    read = parse_resolv_conf("search evil.test\ndomain evil.test\noptions ndots:15\nnameserver 192.0.2.1\n")
    assert not any("evil" in str(getattr(read, slot)) for slot in read.__slots__)


def test_hosts_keep_the_order_of_the_file() -> None:
    table = parse_hosts(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost # no\n192.0.2.7 A.test. b.test\n192.0.2.7 b.test\n"
    )
    assert table == {
        "localhost": ["127.0.0.1", "::1"],
        "ip6-localhost": ["::1"],
        "a.test": ["192.0.2.7"],
        "b.test": ["192.0.2.7"],
    }


@given(st.text(max_size=300))
def test_no_text_makes_a_parser_raise(text: str) -> None:
    assert 1 <= len(parse_resolv_conf("nameserver " + text).places) <= 3
    assert all(is_address(a) for addresses in parse_hosts("192.0.2.1 " + text).values() for a in addresses)
    is_address(text)
