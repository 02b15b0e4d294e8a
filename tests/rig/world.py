"""The small world of an attack: an origin that is allowed, one that is not, and a name server that leads to both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.rig.inside import Attack, attack


@dataclass
class World:
    """An origin that is allowed as allowed.test, and one that no name leads to legally."""

    good: Any
    bad: Any
    authority: Any
    netsandbox: Any

    @property
    def options(self) -> list[str]:
        rules = ["--allow-domain", f"allowed.test:{self.good.port}", "--allow-domain", f"other.test:{self.good.port}"]
        # Both addresses pass the address guard, so a denial below is the policy's or the door's, never the guard's.
        rules += ["--allow-address", f"127.0.0.1:{self.good.port}", "--allow-address", f"127.0.0.1:{self.bad.port}"]
        return [*rules, "--upstream-dns", self.authority.address]

    def attack(self, script: str, **arguments: Any) -> Attack:
        ports = {"good": self.good.port, "bad": self.bad.port}
        return attack(self.netsandbox, self.options, script, arguments={**ports, **arguments})
