"""mitmproxy's most used paths, with the same results in less time. Each has its gain beside it: processor time of a
request on a connection that is open (bench/inspection.py).

They touch parts that are not mitmproxy's public interface, so `installed` names the versions that were tested.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

from mitmproxy.http import Headers, MessageData
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
HELD_MEMORY = 2 << 20  # bytes


def install() -> None:
    """Once, before the first connection."""
    _keep_freed_memory()
    # A hook is carried out while the layer that called it waits for the next line of its generator, so nothing else
    # needs to pause. Only the decision on a request comes later. (A fifth: three of six events of a request go.)
    commands.StartHook.blocking = False
    http.HttpRequestHeadersHook.blocking = True
    # Compares the type of each field of each message with its annotation. (A tenth.)
    MessageData.__post_init__ = lambda self: None
    # A request looks some thirty headers up, each by four calls for each field. (A fifth.)
    Headers.get_all = _get_all
    Headers.get = _get
    Headers.__contains__ = _contains
    # Each layer has a queue for the events of a pause, and a deque takes 600 bytes even if it is empty. (5 KB of each
    # connection.)
    layer.collections = SimpleNamespace(deque=_Queue)
    # Makes a server's connection that is thrown away. (A twentieth.)
    Context.fork = _fork


class _Queue(list[Any]):
    """Like a deque, for a handful of events."""

    def popleft(self) -> Any:
        return self.pop(0)


def _keep_freed_memory() -> None:
    """Let malloc keep the memory of the buffers of a body for the next ones: it would give it back to the kernel each
    time, and every page would have to be made again. (A body takes less than half the time.)"""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl has none
        return
    mallopt(M_TRIM_THRESHOLD, HELD_MEMORY)
    mallopt(M_MMAP_THRESHOLD, HELD_MEMORY)


def _get_all(self: Headers, name: str | bytes) -> list[str]:
    wanted = _lower(name)
    return [value.decode("utf-8", "surrogateescape") for key, value in self.fields if key.lower() == wanted]


def _get(self: Headers, name: str | bytes, default: Any = None) -> Any:
    found = _get_all(self, name)
    return ", ".join(found) if found else default


def _contains(self: Headers, name: object) -> bool:
    if not isinstance(name, str | bytes):
        return False
    wanted = _lower(name)
    return any(key.lower() == wanted for key, _ in self.fields)


def _lower(name: str | bytes) -> bytes:
    return (name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")).lower()


def _fork(self: Context) -> Context:
    made = Context.__new__(Context)
    made.client, made.server, made.options = self.client, self.server, self.options
    made.layers = self.layers.copy()
    return made
