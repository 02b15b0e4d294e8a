"""Merges layers into settings (pure): lists add up; for other values the highest layer wins.

An empty list allows nothing (INV-6). An untrusted layer may only narrow the policy; its other settings are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.config.file_settings import FileSettings
from netsandbox.config.key import Key
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import KeyPath, Layer, Setting
from netsandbox.frozen import frozen
from netsandbox.policy.variables import Layer as VariableLayer
from netsandbox.settings import Bounds


@frozen
class Merged:
    """`ignored`: settings of untrusted layers that would widen the policy."""

    values: Mapping[KeyPath, Setting]
    ignored: tuple[tuple[KeyPath, Setting], ...] = ()


def merge(layers: Iterable[Layer]) -> Merged:
    """*layers* from the lowest to the highest."""
    values: dict[KeyPath, Setting] = {}
    ignored: list[tuple[KeyPath, Setting]] = []
    for rank, layer in enumerate(layers):
        for place, setting in layer.values.items():
            key = _key(place)
            if not layer.trusted and key.widens(setting.value):
                ignored.append((place, setting))
            elif key.stacks:
                values[place] = _joined(
                    values.get(place), Setting(((rank, setting.value),), setting.items, setting.empties)
                )
            else:
                values[place] = _joined(values.get(place), setting) if key.adds else setting
    return Merged(values, tuple(ignored))


def file_settings(merged: Merged, kept: Iterable[str] = ()) -> FileSettings:
    ignored = tuple((".".join(place), setting.origin) for place, setting in merged.ignored)
    fields: dict[str, Any] = {"kept": tuple(kept), "ignored": ignored}
    localhost: dict[str, Any] = {}  # of the [localhost] table
    bounds: dict[str, Any] = {}  # of [limits]
    for place, setting in merged.values.items():
        if _key(place).field:
            {"localhost": localhost, "limits": bounds}.get(place[0], fields)[_key(place).field] = setting.value
    fields["variables"] = _variables(dict(fields.pop("pass_env", ())), dict(fields.pop("deny_env", ())))
    if "connect_host" in localhost:
        localhost["connect_host"] = tuple(sorted(set(localhost["connect_host"])))
    return FileSettings(
        **fields, bounds=Bounds(**bounds), localhost=LocalhostSettings(**localhost, chosen="strategy" in localhost)
    )


def _variables(passed: dict[int, tuple[str, ...]], denied: dict[int, tuple[str, ...]]) -> tuple[VariableLayer, ...]:
    return tuple(VariableLayer(passed.get(rank, ()), denied.get(rank, ())) for rank in sorted({*passed, *denied}))


def _key(place: KeyPath) -> Key:
    table, name = place
    return KEYS[table][name]


def _joined(lower: Setting | None, higher: Setting) -> Setting:
    if lower is None:
        return higher
    first: Any = lower.value
    second: Any = higher.value
    return Setting((*first, *second), (*lower.items, *higher.items), (*lower.empties, *higher.empties))
