"""Mutations of seeds, as many as the profile of hypothesis says: `make fuzz` runs a million at the engine's edges.

Hypothesis makes some hundred inputs a second, since it must be able to shrink them; this makes ten thousand. A failure
names the seed of its run, the number of the input and the input, which is enough to run it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import settings

FUZZ = pytest.mark.hypothesis  # so that `make fuzz` selects it
BASE = 30  # examples of the profile `fast`
SEED = os.environ.get("NETSANDBOX_FUZZ_SEED")


def rounds(times: int) -> int:
    """Inputs for an edge: *times* for each example of the profile."""
    return times * settings().max_examples


def fuzz(times: int, seeds: Sequence[bytes], tokens: Sequence[bytes], check: Callable[[bytes, Random], None]) -> None:
    """Call *check* with each seed, and with mutations of them. *tokens* are put in."""
    is_deep = settings().max_examples > BASE
    seed = int(SEED) if SEED else int.from_bytes(os.urandom(4), "little") if is_deep else 0
    random = Random(seed)
    for number in range(rounds(times)):
        data = seeds[number] if number < len(seeds) else mutated(random, seeds, tokens)
        try:
            check(data, random)
        except Exception as error:
            raise AssertionError(f"NETSANDBOX_FUZZ_SEED={seed}, input {number}: {data!r}") from error


def mutated(random: Random, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(8)
        if kind == 0:
            data[at : at + 1] = bytes((random.randrange(256),))
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            del data[at : at + random.choice((1, 1, 2, 4, 16))]
        elif kind in (3, 4, 5):
            data[at:at] = random.choice(tokens)
        elif kind == 6:
            data[at:at] = data[at : at + random.choice((1, 4, 16, 64))]
        else:
            other = random.choice(seeds)
            data[at:] = other[random.randrange(len(other) + 1) :]
    return bytes(data)


def split(random: Random, data: bytes) -> list[bytes]:
    """The same bytes in one to four parts."""
    places = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 1, 3))))
    return [part for begin, end in zip([0, *places], [*places, len(data)], strict=True) if (part := data[begin:end])]
