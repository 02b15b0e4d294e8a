"""Rules that end: `until` below [approvals] names rules of the same file and when each stops to count. Pure.

    [approvals]
    until = ["2026-11-18T09:30:00Z registry.example.com:443"]

A rule that is named several times counts until the latest of its times. `netsandbox approve --ttl` writes these lines.
"""

from __future__ import annotations

import time
from calendar import timegm

from netsandbox.config.layer import Layer, Setting
from netsandbox.frozen import copy_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.config.layer import KeyPath

UNTIL: KeyPath = ("approvals", "until")
ENDING: tuple[KeyPath, ...] = (
    ("network", "allow_domains"),
    ("filesystem", "allow_read"),
    ("filesystem", "allow_write"),
)
FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def written_end(rule: str, until: int) -> str:
    return f"{time.strftime(FORMAT, time.gmtime(until))} {rule}"


def read_end(text: str) -> tuple[str, int]:
    """The rule and the time. ValueError: it is none."""
    moment, _, rule = text.partition(" ")
    until = timegm(time.strptime(moment, FORMAT))
    if not rule or written_end(rule, until) != text:
        raise ValueError(f"{text!a} is not a time and a rule")
    return rule, until


def current_layer(layer: Layer, now: float) -> Layer:
    """*layer* without the rules that have ended."""
    ended = {rule for rule, until in ends_of(layer).items() if until <= now}
    if not ended:
        return layer
    kept = {place: _without(setting, ended) if place in ENDING else setting for place, setting in layer.values.items()}
    return copy_with(layer, values=kept)


def ends_of(layer: Layer) -> dict[str, int]:
    setting = layer.values.get(UNTIL)
    ends: dict[str, int] = {}
    for rule, until in setting.value if setting is not None else ():  # type: ignore[attr-defined]
        ends[rule] = max(until, ends.get(rule, 0))
    return ends


def seconds_left(layers: Iterable[Layer], now: float, most: float) -> float:
    """How long what *layers* say stays true."""
    return min([most, *(until - now for layer in layers for until in ends_of(layer).values() if until > now)])


def _without(setting: Setting, ended: set[str]) -> Setting:
    assert isinstance(setting.value, tuple)
    kept = [each for each in zip(setting.value, setting.items, strict=True) if each[1][0] not in ended]
    return copy_with(setting, value=tuple(value for value, _ in kept), items=tuple(item for _, item in kept))
