"""The replayed netlink messages are what pyroute2 writes today, byte for byte."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import pytest
from netsandbox_portmap import DATAGRAM_PORT, DNS_PORT, TRANSPARENT_PORT

from netsandbox.backends.namespaces import plan

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what pyroute2 deprecates is not ours to mend
    pytest.importorskip("pyroute2", reason="pyroute2 is missing (pip install pyroute2)")
    from scripts import nft_rules


def headers(data: bytes) -> list[tuple[int, int, int]]:
    """(type, flags, sequence) of each message; the lengths must add up."""
    found = []
    while data:
        length, kind, flags, sequence, _ = struct.unpack_from("=IHHII", data)
        assert 16 <= length <= len(data)
        assert length % 4 == 0
        found.append((kind, flags, sequence))
        data = data[length:]
    return found


def test_capture_is_what_rules_generates() -> None:
    assert nft_rules.constants() in Path(plan.__file__).read_text()


@pytest.mark.parametrize(
    ("messages", "acknowledgements"),
    [(plan.ROUTE, plan.ROUTE_ACKNOWLEDGEMENTS), (plan.FILTER, plan.FILTER_ACKNOWLEDGEMENTS)],
)
def test_each_message_is_a_request_and_those_that_matter_are_acknowledged(
    messages: bytes, acknowledgements: int
) -> None:
    found = headers(messages)
    assert all(flags & 1 for _, flags, _ in found)
    assert sum(bool(flags & 4) for _, flags, _ in found) == acknowledgements
    assert [sequence for _, _, sequence in found] == list(range(1, len(found) + 1))


def test_the_filter_is_one_batch() -> None:
    kinds = [kind for kind, _, _ in headers(plan.FILTER)]
    assert (kinds[0], kinds[-1]) == (16, 17)
    assert all(kind >> 8 == 10 for kind in kinds[1:-1])


def test_both_transparent_doors_are_named_and_the_resolver_is_spared() -> None:
    for port in (TRANSPARENT_PORT, DATAGRAM_PORT, DNS_PORT):
        assert port.to_bytes(2, "big") in plan.FILTER
