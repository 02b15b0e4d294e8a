"""Plans for the native helper where a test drives it by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.namespaces import launch, plan

Start = Callable[..., launch.Helper]


def view(**fields: Any) -> plan.View:
    """Of this account; it hides and protects nothing but what *fields* say."""
    nothing: dict[str, Any] = {"files": (), "hidden": (), "read_only": ()}
    return plan.View(uid=os.geteuid(), gid=os.getegid(), **{**nothing, **fields})


def planned(seen: plan.View | None = None, extra: tuple[plan.Door, ...] = (), more: bytes = b"") -> bytes:
    """A plan that can be carried out, with *more* steps before its last."""
    return plan.build(seen or view(), seccomp.build(syscall_table(os.uname().machine)), extra, more)
