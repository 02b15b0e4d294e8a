"""The reasons that the component records are in the launcher's closed list (INV-11)."""

from __future__ import annotations

import ast
from pathlib import Path

from netsandbox_portmap import contract

from netsandbox.policy import reasons


def test_every_reason_of_the_component_is_one_of_the_launchers() -> None:
    assert contract.__file__ is not None
    modules = [ast.parse(file.read_text("utf-8")) for file in Path(contract.__file__).parent.glob("*.py")]
    named = {
        getattr(reasons, node.attr)
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "reasons"
    }
    assert named <= reasons.ALL
    assert {reasons.WINDOW_FULL, reasons.PORT_TAKEN} <= named
    assert reasons.LOOPBACK in named & reasons.ALLOWING
    own = {value for name, value in vars(contract).items() if name.isupper() and isinstance(value, str)}
    assert not own  # a second spelling could differ
