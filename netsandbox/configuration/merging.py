"""Layers, laid over one another, become settings (pure): lists add up, of other values the highest layer's is taken.

An empty list allows nothing (INV-6). A layer that nobody trusts says only what narrows; what it says beyond is listed.
"""

from __future__ import annotations

from netsandbox.configuration.keys import KEYS
from netsandbox.configuration.layer import Said
from netsandbox.configuration.settings import Settings
from netsandbox.localhost.settings import LocalhostSettings
from netsandbox.record import record
from netsandbox.settings import Bounds
from netsandbox.variables import Layer as VariableLayer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from netsandbox.configuration.key import Key
    from netsandbox.configuration.layer import Layer, Place


@record
class Merged:
    """`ignored`: what layers said without being trusted to say it."""

    values: Mapping[Place, Said]
    ignored: tuple[tuple[Place, Said], ...] = ()


def merge(layers: Iterable[Layer]) -> Merged:
    """*layers* from the lowest to the highest."""
    values: dict[Place, Said] = {}
    ignored: list[tuple[Place, Said]] = []
    for rank, layer in enumerate(layers):
        for place, said in layer.values.items():
            key = _key(place)
            if not layer.trusted and key.widens(said.value):
                ignored.append((place, said))
            elif key.stacks:
                values[place] = _joined(values.get(place), Said(((rank, said.value),), said.items, said.empties))
            else:
                values[place] = _joined(values.get(place), said) if key.adds else said
    return Merged(values, tuple(ignored))


def settings(merged: Merged, kept: Iterable[str] = ()) -> Settings:
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
    return Settings(**fields, bounds=Bounds(**bounds), localhost=LocalhostSettings(**own, chosen="strategy" in own))


def _variables(passed: dict[int, tuple[str, ...]], denied: dict[int, tuple[str, ...]]) -> tuple[VariableLayer, ...]:
    return tuple(VariableLayer(passed.get(rank, ()), denied.get(rank, ())) for rank in sorted({*passed, *denied}))


def _key(place: Place) -> Key:
    table, name = place
    return KEYS[table][name]


def _joined(lower: Said | None, higher: Said) -> Said:
    if lower is None:
        return higher
    first: Any = lower.value
    second: Any = higher.value
    return Said((*first, *second), (*lower.items, *higher.items), (*lower.empties, *higher.empties))
