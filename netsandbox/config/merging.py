"""Layers, laid over one another, become settings (pure): lists add up, of other values the highest layer's is taken.

An empty list allows nothing (INV-6). A layer that nobody trusts says only what narrows; what it says beyond is listed.
"""

from __future__ import annotations

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.config.file_settings import FileSettings
from netsandbox.config.keys import KEYS
from netsandbox.config.layer import Setting
from netsandbox.frozen import frozen
from netsandbox.policy.variables import Layer as VariableLayer
from netsandbox.settings import Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from netsandbox.config.key import Key
    from netsandbox.config.layer import Layer, Place


@frozen
class Merged:
    """`ignored`: what layers said without being trusted to say it."""

    values: Mapping[Place, Setting]
    ignored: tuple[tuple[Place, Setting], ...] = ()


def merge(layers: Iterable[Layer]) -> Merged:
    """*layers* from the lowest to the highest."""
    values: dict[Place, Setting] = {}
    ignored: list[tuple[Place, Setting]] = []
    for rank, layer in enumerate(layers):
        for place, said in layer.values.items():
            key = _key(place)
            if not layer.trusted and key.widens(said.value):
                ignored.append((place, said))
            elif key.stacks:
                values[place] = _joined(values.get(place), Setting(((rank, said.value),), said.items, said.empties))
            else:
                values[place] = _joined(values.get(place), said) if key.adds else said
    return Merged(values, tuple(ignored))


def settings(merged: Merged, kept: Iterable[str] = ()) -> FileSettings:
    ignored = tuple((".".join(place), said.origin) for place, said in merged.ignored)
    fields: dict[str, Any] = {"kept": tuple(kept), "ignored": ignored}
    own: dict[str, Any] = {}  # of the [localhost] table
    bounds: dict[str, Any] = {}  # of [limits]
    for place, said in merged.values.items():
        if _key(place).field:
            {"localhost": own, "limits": bounds}.get(place[0], fields)[_key(place).field] = said.value
    fields["variables"] = _variables(dict(fields.pop("pass_env", ())), dict(fields.pop("deny_env", ())))
    if "connect_host" in own:
        own["connect_host"] = tuple(sorted(set(own["connect_host"])))
    return FileSettings(**fields, bounds=Bounds(**bounds), localhost=LocalhostSettings(**own, chosen="strategy" in own))


def _variables(passed: dict[int, tuple[str, ...]], denied: dict[int, tuple[str, ...]]) -> tuple[VariableLayer, ...]:
    return tuple(VariableLayer(passed.get(rank, ()), denied.get(rank, ())) for rank in sorted({*passed, *denied}))


def _key(place: Place) -> Key:
    table, name = place
    return KEYS[table][name]


def _joined(lower: Setting | None, higher: Setting) -> Setting:
    if lower is None:
        return higher
    first: Any = lower.value
    second: Any = higher.value
    return Setting((*first, *second), (*lower.items, *higher.items), (*lower.empties, *higher.empties))
