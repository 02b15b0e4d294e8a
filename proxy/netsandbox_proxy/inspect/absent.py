"""Keeps parts of mitmproxy out of the engine that no inspected connection uses: QUIC and HTTP/3, DNS, messages of
WebSockets, decompression, files of options, a list of CAs, asyncio. They would take four tenths of the engine's start
and a quarter of its memory.

In their place are empty modules. Every name in them is an empty class, so that they can be imported from, subclassed
and compared with; nothing is ever an instance of one, and a call gives None.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

NAMES = (
    "aioquic",
    "asyncio",
    "brotli",
    "certifi",
    "email",
    "mitmproxy.options",
    "mitmproxy.proxy.layers.dns",
    "mitmproxy.proxy.layers.http._http3",
    "mitmproxy.proxy.layers.quic",
    "mitmproxy.version",
    "mitmproxy_rs",
    "wsproto",
    "zstandard",
)


class _EmptyType(type):
    def __getattr__(cls, name: str) -> Any:
        return _empty(name)

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return None


class _EmptyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _empty(name)


def keep_out() -> None:
    """Once, before mitmproxy is imported."""
    sys.meta_path.insert(0, EmptyFinder())


class EmptyFinder:
    """The first finder on the path."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if any(name == absent or name.startswith(f"{absent}.") for absent in NAMES):
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return _EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _empty(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _EmptyType(name, (), {})
