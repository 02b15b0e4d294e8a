"""The variables that pnpm and uv need in the mode `project`, where a cache is a mount of its own: policy/tool_caches.py
says why. A variable that the user set stays."""

from __future__ import annotations

import os

from netsandbox.paths import home
from netsandbox.policy import tool_caches
from netsandbox.policy.file_rules import PathRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOUNTS = "/proc/self/mounts"


def tool_variables(caches: Iterable[PathRule], environment: Mapping[str, str], program: str) -> dict[str, str]:
    known = tuple(caches)
    with_pnpm, with_uv = tool_caches.needs_variables(known, program)
    added = {}
    if with_pnpm and not any(name in environment for name in tool_caches.STORE_VARIABLES):
        added = dict.fromkeys(tool_caches.STORE_VARIABLES, _store(known, environment))
    if with_uv and tool_caches.LINK_MODE not in environment:
        added[tool_caches.LINK_MODE] = tool_caches.link_mode(_file_system())
    return added


def _store(caches: tuple[PathRule, ...], environment: Mapping[str, str]) -> str:
    """The store that pnpm uses on the host. Its folder is a toolchain, which is read-only inside: a store that is
    missing in it, or whose cache no profile opens, is made beside it in the private home."""
    own = PathRule(f"{home()}/{tool_caches.PNPM}", "")
    path = next(rule.path for _, rule in tool_caches.followed((own,), environment, home()))
    is_cache = os.path.isdir(path) and any(rule.path == own.path for rule in caches)
    return path if is_cache or not os.path.isdir(os.path.dirname(path)) else f"{home()}/.cache/pnpm-store"


def _file_system() -> str:
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            return tool_caches.file_system_of(os.getcwd(), file.read().split("\n"))
    except OSError:  # copying works everywhere
        return ""
