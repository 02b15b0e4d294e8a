"""Which registries a toolchain uses, so that a profile allows these hosts and no others.

`hosts` is the whole of it. No registry is known to this package: what no file and no variable says, the tool is asked.
"""

from __future__ import annotations

from netsandbox.registries.answer import Answer, Registry
from netsandbox.registries.lookup import TOOLS, hosts

__all__ = ["TOOLS", "Answer", "Registry", "hosts"]
