"""The probes of the boundary: rights inside the session, and what can be seen or written of the host."""

from __future__ import annotations

import _socket
import os
import socket
import sys
from typing import Any

from netsandbox.audit.verify import verify
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.doctor import judgement
from netsandbox.doctor.probe import SILENCE, UNCHANGED, Absent, Probe, refused
from netsandbox.doctor.scene import MARK, Scene

NAMESPACES = ("user", "net", "mnt", "pid", "ipc")
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def boundary_probes(scene: Scene) -> list[Probe | Absent]:
    return [*_sockets(), *_kernel(scene), *own_files(scene), *_own_code()]


def _sockets() -> list[Probe]:
    internet, internet6, raw = int(socket.AF_INET), int(socket.AF_INET6), int(socket.SOCK_RAW)
    vsock, stream = int(socket.AF_VSOCK), int(socket.SOCK_STREAM)
    return [
        refused("raw-socket", "socket", family=internet, kind=raw, protocol=int(socket.IPPROTO_ICMP)),
        refused("raw6-socket", "socket", family=internet6, kind=raw, protocol=int(socket.IPPROTO_ICMPV6)),
        refused("packet-socket", "socket", family=int(socket.AF_PACKET), kind=raw, protocol=0x0300),
        refused("vsock-socket", "socket", family=vsock, kind=stream),
    ]


def _kernel(scene: Scene) -> list[Probe]:
    calls = syscall_table(os.uname().machine).calls
    host = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}
    return [
        refused("io-uring", "io-uring", number=calls["io_uring_setup"]),
        refused("user-namespace", "user-namespace", **_ways(calls)),
        refused("capabilities", "capabilities", expected="none"),
        refused("new-privileges", "new-privileges", expected="impossible"),
        refused("seccomp-filter", "no-filter", expected="in force"),
        refused("namespaces", "shared-namespaces", expected="all its own", host=host),
        refused("host-processes", "foreign-processes", expected="not visible"),
        refused("trace-init", "trace-parent"),
        Probe(
            "signal-host",
            SILENCE,
            "signal-group",
            {},
            lambda seen: judgement.silence(seen.answer, scene.signals),
        ),
        refused("descriptors", "inherited", expected="none inherited"),
    ]


def _ways(calls: dict[str, int]) -> dict[str, Any]:
    return {name: calls[name] for name in ("unshare", "clone", "clone3")}


def own_files(scene: Scene) -> list[Probe | Absent]:
    """Our files, which the session must not change (INV-8)."""
    return [
        Probe(
            "write-state",
            UNCHANGED,
            "append",
            {"path": scene.forged, "text": MARK},
            lambda seen: judgement.untouched(seen.answer, changed=os.path.exists(scene.forged)),
        ),
        Probe(
            "write-log",
            UNCHANGED,
            "append-log",
            {"state": scene.state, "text": MARK},
            lambda seen: judgement.untouched(seen.answer, changed=_log_changed(seen.log)),
        ),
        refused("move-state", "move", path=os.path.dirname(scene.state)),
        refused("write-code", "open-for-writing", path=os.path.join(PACKAGE, "__init__.py")),
    ]


def _own_code() -> list[Probe]:
    """What this process runs, by every name: an installation may consist of links."""
    paths = {
        "write-linked-code": os.path.join(PACKAGE, "__init__.py"),
        "write-interpreter": sys.executable,
        "write-mapped-code": getattr(_socket, "__file__", None) or os.__file__,
    }
    return [refused(name, "open-for-writing", path=os.path.realpath(path)) for name, path in paths.items()]


def _log_changed(log: str | None) -> bool:
    """An incomplete log counts as changed (INV-1)."""
    return log is None or not verify(log).ok
