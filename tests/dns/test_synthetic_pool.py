"""One name, one address, both ways, in bounded memory; a forgotten address stays nobody's for a whole round."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.synthetic_pool import SyntheticPool

NAMES = st.sampled_from([f"n{i}.test" for i in range(12)])


def text_of(pool: SyntheticPool, name: str) -> str:
    return socket.inet_ntoa(pool.address_of(name))


def test_addresses_begin_after_the_network_and_come_back_to_their_names() -> None:
    pool = SyntheticPool()
    assert text_of(pool, "a.test") == "198.18.0.1"
    assert pool.address_of("b.test") == b"\xc6\x12\0\2"
    assert text_of(pool, "a.test") == "198.18.0.1"
    assert pool.name_of("198.18.0.2") == "b.test"


@pytest.mark.parametrize("address", ["198.18.0.9", "203.0.113.1", "::1", "", "198.18.0.1 ", "198.18.1", "x\0", "ü"])
def test_an_address_never_given_out_has_no_name(address: str) -> None:
    pool = SyntheticPool()
    pool.address_of("a.test")
    assert pool.name_of(address) is None


@pytest.mark.attack(197)
@given(st.lists(NAMES, max_size=80))
def test_memory_is_bounded_and_both_ways_agree(names: list[str]) -> None:
    pool = SyntheticPool("198.18.0.0/28", size=5)
    for name in names:
        text = text_of(pool, name)
        assert pool.name_of(text) == name
        assert len(pool) <= 5
    held = {name: text_of(pool, name) for name in list(pool._numbers)}
    assert len(set(held.values())) == len(held)
    assert not {"198.18.0.0", "198.18.0.15"} & set(held.values())


def test_the_stalest_name_is_forgotten_and_dialling_counts_as_use() -> None:
    pool = SyntheticPool("198.18.0.0/24", size=3)
    first, second = text_of(pool, "a.test"), text_of(pool, "b.test")
    pool.address_of("c.test")
    assert pool.name_of(first) == "a.test"
    pool.address_of("d.test")
    assert pool.name_of(first) == "a.test"
    assert pool.name_of(second) is None


def test_a_forgotten_address_is_not_reused_until_the_pool_has_gone_round() -> None:
    pool = SyntheticPool("198.18.0.0/24", size=10)
    old = text_of(pool, "first.test")
    given_out = [text_of(pool, f"n{i}.test") for i in range(253)]
    assert old not in given_out
    assert pool.name_of(old) is None
    assert text_of(pool, "next.test") == old


def test_eviction_is_announced() -> None:
    pool = SyntheticPool("198.18.0.0/24", size=2)
    heard: list[int] = []
    pool.on_evict = lambda: heard.append(len(pool))
    for name in ("a.test", "b.test"):
        pool.address_of(name)
    assert heard == []
    pool.address_of("c.test")
    assert heard == [1]


def test_a_pool_larger_than_its_network_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        SyntheticPool("198.18.0.0/28", size=15)
