"""netsandbox: run a command so that it reaches only the names it is allowed.

    from netsandbox import Policy, Sandbox

    with Sandbox(Policy(allow_domains=["example.com"])) as box:
        box.run(["curl", "https://example.com/"])

The names are loaded on first use: importing the package must cost the path to exec nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"  # the build reads it too

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import LocalhostSettings as LocalhostSettings

    from netsandbox.api import Result as Result
    from netsandbox.api import Sandbox as Sandbox
    from netsandbox.api import file_rules as file_rules
    from netsandbox.policy.policy import Policy as Policy
    from netsandbox.settings import RunSettings as RunSettings

__all__ = ["LocalhostSettings", "Policy", "Result", "RunSettings", "Sandbox", "__version__", "file_rules"]

_HOMES = {
    "LocalhostSettings": "netsandbox_portmap.localhost_settings",
    "Policy": "netsandbox.policy.policy",
    "Result": "netsandbox.api",
    "RunSettings": "netsandbox.settings",
    "Sandbox": "netsandbox.api",
    "file_rules": "netsandbox.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'netsandbox' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
