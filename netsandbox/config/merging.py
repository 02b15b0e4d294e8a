"""Merges layers into settings (pure): lists add up; for other values the highest layer wins.

An empty list allows nothing (INV-6). An untrusted layer may only narrow the policy; its other settings are listed.

The mode of the network is decided by the highest layer that sets one or allows something: rules lift a mode below them
that lets nothing out, and `localhost` with rules in one file is both. No layer has wider modes than one that bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from netsandbox_portmap.localhost_settings import LocalhostSettings, joined

from netsandbox.config.file_settings import FileSettings
from netsandbox.config.key import Key
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import KeyPath, Layer, Setting
from netsandbox.config.layer import joined as joined_values
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import FILE_MODES
from netsandbox.policy.policy import CLOSED, FILTERED, LOCALHOST, ONLINE
from netsandbox.policy.variables import Layer as VariableLayer
from netsandbox.settings import Bounds

MODE, FILES = ("network", "mode"), ("filesystem", "mode")
RULES = (("network", "allow_domains"), ("network", "allow_addresses"), ("network", "allow_http"))
WIDTHS = {**dict.fromkeys(CLOSED, 0), FILTERED: 1, ONLINE: 2, **{mode: width for width, mode in enumerate(FILE_MODES)}}


@frozen
class Merged:
    """`ignored`: settings of untrusted layers that would widen the policy. `bounds`: the widest modes. `narrowed`: what
    was wider, each with its bound."""

    values: Mapping[KeyPath, Setting]
    ignored: tuple[tuple[KeyPath, Setting], ...] = ()
    bounds: Mapping[KeyPath, Setting] = MappingProxyType({})
    narrowed: tuple[tuple[KeyPath, Setting, Setting], ...] = ()


def merge(layers: Iterable[Layer]) -> Merged:
    """*layers* from the lowest to the highest."""
    values: dict[KeyPath, Setting] = {}
    ignored: list[tuple[KeyPath, Setting]] = []
    bounds: dict[KeyPath, Setting] = {}
    narrowed: list[tuple[KeyPath, Setting, Setting]] = []
    for rank, layer in enumerate(layers):
        mode = _mode(layer, values.get(MODE))
        for place, setting in layer.values.items():
            key = _key(place)
            if not layer.trusted and key.widens(setting.value):
                ignored.append((place, setting))
            elif key.stacks:
                values[place] = joined_values(
                    values.get(place), Setting(((rank, setting.value),), setting.items, setting.empties)
                )
            else:
                values[place] = joined_values(values.get(place), setting) if key.adds else setting
        if mode is not None:
            values[MODE] = mode
        for place in (MODE, FILES):
            if layer.bounds and place in layer.values:
                bounds[place] = values[place]
            elif place in bounds and is_wider(values[place].value, bounds[place].value):
                narrowed.append((place, values[place], bounds[place]))
                values[place] = bounds[place]
    return Merged(values, tuple(ignored), bounds, tuple(narrowed))


def is_wider(mode: object, bound: object) -> bool:
    return WIDTHS[str(mode)] > WIDTHS[str(bound)]


def _mode(layer: Layer, below: Setting | None) -> Setting | None:
    """The mode of the network with this layer, if *below* is the one without it."""
    effective = {
        place: setting
        for place in (MODE, *RULES)
        if (setting := layer.values.get(place)) and (layer.trusted or not _key(place).widens(setting.value))
    }
    mode = effective.get(MODE, below)
    rules = next((effective[place] for place in RULES if place in effective and effective[place].value), None)
    is_lifted = mode is not None and mode.value in ((LOCALHOST,) if MODE in effective else CLOSED)
    return Setting(FILTERED, ((FILTERED, rules.origin),)) if rules is not None and is_lifted else mode


def file_settings(merged: Merged, kept: Iterable[str] = ()) -> FileSettings:
    ignored = tuple((".".join(place), setting.origin) for place, setting in merged.ignored)
    fields: dict[str, Any] = {"kept": tuple(kept), "ignored": ignored}
    if MODE in merged.values:
        fields["mode_origin"] = merged.values[MODE].origin
    fields["bounded"] = tuple((_key(place).field, each.value, each.origin) for place, each in merged.bounds.items())
    fields["narrowed"] = tuple(
        f"{each.origin}: {'.'.join(place)} {each.value} is wider than {bound.origin} allows, so {bound.value} holds;"
        " leave it out"
        for place, each, bound in merged.narrowed
    )
    localhost: dict[str, Any] = {}  # of the [localhost] table
    bounds: dict[str, Any] = {}  # of [limits]
    for place, setting in merged.values.items():
        if _key(place).field:
            {"localhost": localhost, "limits": bounds}.get(place[0], fields)[_key(place).field] = setting.value
    fields["variables"] = _variables(dict(fields.pop("pass_env", ())), dict(fields.pop("deny_env", ())))
    if "connect_host" in localhost:
        localhost["connect_host"] = joined(localhost["connect_host"])
    return FileSettings(
        **fields, bounds=Bounds(**bounds), localhost=LocalhostSettings(**localhost, chosen="strategy" in localhost)
    )


def _variables(passed: dict[int, tuple[str, ...]], denied: dict[int, tuple[str, ...]]) -> tuple[VariableLayer, ...]:
    return tuple(VariableLayer(passed.get(rank, ()), denied.get(rank, ())) for rank in sorted({*passed, *denied}))


def _key(place: KeyPath) -> Key:
    table, name = place
    return KEYS[table][name]
