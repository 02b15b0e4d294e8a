"""One port of the window for one port that was requested: always the same, never a reserved one; None when full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap.assignment import Assignment

BASE = 20000


def window(count=100, reserved=(), busy=()):
    return Assignment(BASE, count, reserved, lambda port: port not in busy)


def test_a_port_is_preferred_by_its_last_digits():
    ports = window()
    assert [ports.assign(requested) for requested in (3000, 8080, 5173)] == [20000, 20080, 20073]
    assert ports.pairs() == [(3000, 20000), (8080, 20080), (5173, 20073)]


def test_the_next_one_is_taken_when_the_preferred_one_is_not_to_be_had():
    ports = window(reserved=[20001], busy={20002})
    assert ports.assign(3000) == 20000
    assert ports.assign(4000) == 20003
    assert ports.assign(3099) == 20099
    assert ports.assign(4099) == 20004


def test_a_port_of_the_window_stands_for_itself():
    ports = Assignment(BASE + 7, 100, [], lambda port: True)
    assert ports.assign(BASE + 50) == BASE + 50


def test_a_port_of_the_window_that_is_taken_moves_on_like_any_other():
    ports = window()
    assert ports.assign(3000) == 20000
    assert ports.assign(20000) == 20001
    assert ports.requested_port(20001) == 20000
    assert ports.requested_port(20000) == 3000


def test_both_directions_can_be_read():
    ports = window()
    port = ports.assign(3000)
    assert ports.port_of(3000) == port
    assert ports.requested_port(port) == 3000
    assert ports.port_of(3001) is None
    assert ports.requested_port(20001) is None


def test_what_stands_once_is_not_asked_of_the_host_again():
    """We hold it ourselves by then, so the host would say no."""
    busy: set[int] = set()
    ports = window(busy=busy)
    assert ports.assign(3000) == 20000
    busy.add(20000)
    assert ports.assign(3000) == 20000


@pytest.mark.parametrize("requested", [0, -1, 65536])
def test_what_is_no_port_gets_none(requested):
    assert window().assign(requested) is None


@pytest.mark.parametrize(("base", "count"), [(0, 10), (-1, 10), (20000, 0), (65536, 1), (65530, 7), (1, 65536)])
def test_a_window_lies_within_the_ports(base, count):
    with pytest.raises(ValueError, match="no window"):
        Assignment(base, count, [], lambda port: True)


def test_the_window_may_be_every_port_there_is():
    ports = Assignment(1, 65535, [], lambda port: True)
    assert [ports.assign(requested) for requested in (1, 65535)] == [1, 65535]


def test_a_full_window_gives_none_and_keeps_what_it_has():
    ports = window(count=3, reserved=[20002])
    assert {ports.assign(3000), ports.assign(3001)} == {20000, 20001}
    before = ports.pairs()
    assert ports.assign(3002) is None
    assert ports.any_port() is None
    assert ports.pairs() == before


def test_a_port_that_the_host_refuses_is_replaced_and_not_given_out_again():
    ports = window(count=3)
    assert ports.assign(3000) == 20000
    assert ports.reassign(3000) == 20001
    assert ports.port_of(3000) == 20001
    assert ports.requested_port(20000) is None
    assert ports.assign(3003) == 20002
    assert ports.assign(3006) is None
    assert ports.reassign(3000) is None
    assert ports.port_of(3000) is None


def test_reassigning_what_was_never_assigned_assigns_it():
    assert window().reassign(3000) == 20000


def test_any_port_stands_for_itself():
    ports = window()
    first, second = ports.any_port(), ports.any_port()
    assert (first, second) == (20099, 20098)
    assert ports.requested_port(first) == first
    assert ports.port_of(second) == second


@pytest.mark.attack(111)
def test_any_port_is_never_a_reserved_one():
    """Attack 111: binding port 0 in a loop never gives the port of a door."""
    ports = window(count=10, reserved=[20009, 20004])
    assert not {ports.any_port() for _ in range(200)} & {20009, 20004, None}


def test_any_port_is_not_one_that_another_port_stands_for():
    busy = {20002}
    ports = window(count=3, busy=busy)
    assert ports.assign(20002) == 20000
    busy.clear()
    assert ports.any_port() == 20001


def test_a_program_that_asks_for_any_port_for_ever_leaves_half_of_the_window():
    ports = window()
    given_out = [ports.any_port() for _ in range(1000)]
    assert len(set(given_out)) == 50
    assert given_out[50:100] == given_out[:50]  # the one from longest ago comes first
    assert ports.assign(3000) == 20000


def test_any_port_takes_the_other_half_when_none_came_free_again():
    busy: set[int] = set()
    ports = window(count=10, busy=busy)
    for _ in range(10):
        port = ports.any_port()
        assert port is not None
        assert port not in busy
        busy.add(port)
    assert ports.any_port() is None
    busy.discard(20003)
    assert ports.any_port() == 20003


def test_an_any_port_that_the_host_refuses_is_not_offered_again():
    ports = window(count=2)
    port = ports.any_port()
    assert port == 20001
    assert ports.reassign(port) == 20000
    assert ports.any_port() is None


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.integers(0, 65536) | st.integers(BASE - 2, BASE + 20)),
        st.tuples(st.just("any"), st.just(0)),
        st.tuples(st.just("reassign"), st.integers(BASE - 2, BASE + 20)),
    ),
    max_size=60,
)


@given(
    count=st.integers(1, 20),
    reserved=st.sets(st.integers(BASE - 2, BASE + 22), max_size=8),
    busy=st.sets(st.integers(BASE - 2, BASE + 22), max_size=8),
    steps=STEPS,
)
def test_it_is_one_to_one_within_the_window_and_stable(count, reserved, busy, steps):
    ports = window(count, reserved, busy)
    standing: dict[int, int] = {}
    usable = set(range(BASE, BASE + count)) - reserved - busy
    for step, wanted in steps:
        if step == "reassign" and wanted in standing:
            usable.discard(standing.pop(wanted))
        port = ports.any_port() if step == "any" else getattr(ports, step)(wanted)
        requested = port if step == "any" else wanted
        if port is not None:
            assert port in usable
            assert standing.setdefault(requested, port) == port
        elif step == "any":
            assert usable <= set(standing.values()) | set(standing)
        elif 0 < requested < 65536:
            assert usable == set(standing.values())
        assert dict(ports.pairs()) == standing
        assert len(set(standing.values())) == len(standing)
        assert all(
            ports.requested_port(port) == requested and ports.port_of(requested) == port
            for requested, port in standing.items()
        )


def test_a_released_port_stands_for_another() -> None:
    pairs = Assignment(40000, 1, (), lambda port: True)
    assert pairs.assign(3000) == 40000
    assert pairs.assign(3001) is None
    assert pairs.full
    pairs.release(3000)
    assert not pairs.full
    pairs.release(3000)
    assert pairs.assign(3001) == 40000
    assert pairs.requested_port(40000) == 3001
