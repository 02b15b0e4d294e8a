"""Which refused connects the native brokers report (native/refused_ports.c): few of many, and each recovery."""

from __future__ import annotations

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from tests.rig.native_units import Library

SLOTS = 64


def counter(library: Library) -> ctypes.CDLL:
    unit = library("refused_ports.c")
    for port in range(1, SLOTS + 1):  # whatever an earlier example left
        unit.refused_times(port, 1)
        unit.refused_times(port, 0)
    return unit


@given(refusals=st.integers(0, 70))
def test_a_port_that_answers_after_any_number_of_refusals_is_reported(library: Library, refusals: int) -> None:
    unit = counter(library)
    reported = [unit.refused_times(3000, 1) for _ in range(refusals)]
    assert [times for times in reported if times] == [1 << power for power in range(7) if 1 << power <= refusals]
    assert unit.refused_times(3000, 0) == (1 if refusals else 0)
    assert unit.refused_times(3000, 0) == 0


def test_ports_that_share_a_slot_begin_anew(library: Library) -> None:
    unit = counter(library)
    assert [unit.refused_times(port, 1) for port in (5, 5, 5 + SLOTS, 5)] == [1, 2, 1, 1]
    assert unit.refused_times(5 + SLOTS, 0) == 0
    assert unit.refused_times(5, 0) == 1
