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
    from netsandbox_portmap.localhost_settings import HostPort as HostPort
    from netsandbox_portmap.localhost_settings import LocalhostSettings as LocalhostSettings

    from netsandbox.api.async_process import AsyncProcess as AsyncProcess
    from netsandbox.api.process import CalledProcessError as CalledProcessError
    from netsandbox.api.process import Popen as Popen
    from netsandbox.api.process import Result as Result
    from netsandbox.api.process import TimeoutExpired as TimeoutExpired
    from netsandbox.api.request_rules import request_rules as request_rules
    from netsandbox.api.sandbox import Sandbox as Sandbox
    from netsandbox.api.sandbox import file_rules as file_rules
    from netsandbox.errors import NetsandboxError as NetsandboxError
    from netsandbox.policy.policy import Policy as Policy
    from netsandbox.session.launch import Denial as Denial
    from netsandbox.session.launch import FileDenial as FileDenial
    from netsandbox.settings import RunSettings as RunSettings

_HOMES = {
    "AsyncProcess": "netsandbox.api.async_process",
    "CalledProcessError": "netsandbox.api.process",
    "Denial": "netsandbox.session.launch",
    "FileDenial": "netsandbox.session.launch",
    "HostPort": "netsandbox_portmap.localhost_settings",
    "LocalhostSettings": "netsandbox_portmap.localhost_settings",
    "NetsandboxError": "netsandbox.errors",
    "Policy": "netsandbox.policy.policy",
    "Popen": "netsandbox.api.process",
    "Result": "netsandbox.api.process",
    "RunSettings": "netsandbox.settings",
    "Sandbox": "netsandbox.api.sandbox",
    "TimeoutExpired": "netsandbox.api.process",
    "file_rules": "netsandbox.api.sandbox",
    "request_rules": "netsandbox.api.request_rules",
}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 (strings)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'netsandbox' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
