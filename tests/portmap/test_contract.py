"""What the component says in its own name is in the launcher's closed list (INV-11)."""

from __future__ import annotations

from netsandbox_portmap import contract

from netsandbox.policy import reasons


def test_every_reason_of_the_component_is_one_of_the_launchers() -> None:
    given = {value for name, value in vars(contract).items() if name.isupper() and isinstance(value, str)}
    assert given
    assert given <= reasons.ALL
    assert given & reasons.ALLOWING == {contract.LOOPBACK}
