"""The probes of a session on a Mac: attempts against each promise of Seatbelt, and controls that must be reached.

The doors are ports of the Mac's localhost, protected by a token; the session's environment has both. Without the
preload library, programs that ignore proxies reach nothing, so that control is skipped then.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable

from netsandbox_portmap import FAIL
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.doctor import judgement
from netsandbox.doctor.jail import Finding, Probes, prove, run_settings, run_with
from netsandbox.doctor.linux_probes import own_files
from netsandbox.doctor.network_probes import (
    DENIED_NAME,
    GLOBAL6,
    METADATA,
    doors,
    ipv4,
    ipv6,
    not_forwarded,
    other_servers,
    unix_paths,
)
from netsandbox.doctor.probe import REACHED, SILENCE, UNCHANGED, Absent, Probe, refused
from netsandbox.doctor.process_probes import process_probes
from netsandbox.doctor.scene import CONTROL_NAME, MARK, Scene
from netsandbox.doctor.servers import Control
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.policy import Policy
from netsandbox.settings import RunSettings

NAME_SERVICE = "/private/var/run/mDNSResponder"
PF_SYSTEM, SYSPROTO_CONTROL = 32, 2  # sys/socket.h, sys/sys_domain.h: sockets to parts of Darwin's kernel
SECRETS = ".ssh"


def mac_probes(scene: Scene, *, library: bool, home: str) -> list[Probe | Absent]:
    """*home* has the user's files; some of them must stay closed."""
    return [
        *_controls(scene, library=library),
        *ipv4(scene),
        refused("tcp-metadata", "tcp", host=METADATA, port=80),
        *ipv6(scene),
        refused("tcp6-global", "tcp", host=GLOBAL6, port=443),
        *doors(scene, None),
        _without_token(scene),
        *other_servers(scene),
        *_names(scene),
        *unix_paths(scene),
        *_servers(),
        *_sockets(),
        *_processes(scene),
        *own_files(scene),
        *_files(scene, home),
    ]


def _controls(scene: Scene, *, library: bool) -> list[Probe | Absent]:
    """The controls: the first by name through the door, the second by address, the third like a program without proxy
    support."""
    name, door = scene.by_name, scene.by_door
    by_door = [
        _reached("control-name", "connect-door", name, door=None, host=CONTROL_NAME),
        _reached("control-door", "connect-door", door, door=None, host="127.0.0.1"),
    ]
    if not library:
        return [*by_door, Absent("control-program", REACHED, "without the preload library only proxies lead out")]
    return [*by_door, _reached("control-program", "visit", name, name=CONTROL_NAME)]


def _reached(probe: str, attempt: str, control: Control, **arguments: object) -> Probe:
    target = {**arguments, "port": control.port}
    return Probe(probe, REACHED, attempt, target, lambda seen: judgement.arrival(seen.answer, control.visits))


def _without_token(scene: Scene) -> Probe:
    """An allowed request without the token: any program of the Mac can connect to the door, so it must be refused."""
    port = scene.by_door.port
    return refused("door-token", "connect-door", door=None, host="127.0.0.1", port=port, token=False)


def _names(scene: Scene) -> list[Probe | Absent]:
    name = f"g.{DENIED_NAME}"
    return [
        Probe("lookup-denied", SILENCE, "lookup", {"name": name}, not_forwarded(scene, "g")),
        refused("name-service", "unix-stream", path=NAME_SERVICE),
    ]


def _servers() -> list[Probe | Absent]:
    """Listening must work in the window, and nowhere else: on no other port, and not for other machines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    window = Probe(
        "control-listen",
        "listens",
        "listen",
        {"address": "127.0.0.1", "port": None},
        lambda seen: judgement.arrival(seen.answer, 1),
    )
    return [
        window,
        refused("listen-elsewhere", "listen", address="127.0.0.1", port=port),
        refused("listen-everywhere", "listen", address="0.0.0.0", port=port),  # noqa: S104 (it must fail)
    ]


def _sockets() -> list[Probe | Absent]:
    raw, datagram = int(socket.SOCK_RAW), int(socket.SOCK_DGRAM)
    return [
        refused("raw-socket", "socket", family=int(socket.AF_INET), kind=raw, protocol=int(socket.IPPROTO_ICMP)),
        refused("raw6-socket", "socket", family=int(socket.AF_INET6), kind=raw, protocol=int(socket.IPPROTO_ICMPV6)),
        refused("kernel-socket", "socket", family=PF_SYSTEM, kind=datagram, protocol=SYSPROTO_CONTROL),
    ]


def _processes(scene: Scene) -> list[Probe | Absent]:
    return [
        *process_probes(scene),
        Probe(
            "signal-host",
            SILENCE,
            "signal-group",
            {},
            lambda seen: judgement.silence(seen.answer, scene.signals),
        ),
        refused("descriptors", "inherited", expected="none inherited"),
    ]


def _files(scene: Scene, home: str) -> list[Probe | Absent]:
    outside = os.path.join(home, os.path.basename(scene.directory))
    secrets = os.path.join(home, SECRETS)
    return [
        refused("read-log", "read-log", state=scene.state),
        Probe(
            "write-home",
            UNCHANGED,
            "append",
            {"path": outside, "text": MARK},
            lambda seen: judgement.untouched(seen.answer, changed=_took_away(outside)),
        ),
        refused("read-secrets", "listing", path=secrets)
        if os.path.isdir(secrets)
        else Absent("read-secrets", "refused", f"there is no {secrets}"),
    ]


def _took_away(path: str) -> bool:
    """Whether a probe created *path*, which must not exist. The path is removed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


PORTS = 4


def mac_run_settings(scene: Scene) -> RunSettings:
    """With `fail` each bind outside the window is refused and not rewritten, so that it can be judged.

    Our Python, which runs the probes, may be in the home directory, where only known toolchains are open.
    """
    places = (interpreter(), os.path.realpath(sys.base_prefix))
    python = tuple(PathRule(place, "netsandbox doctor") for place in places)
    localhost = LocalhostSettings(strategy=FAIL, chosen=True, count=PORTS)
    return run_settings(scene, localhost, FileRules(allow_execute=python))


def interpreter() -> str:
    """Our Python with every link followed, as Seatbelt sees it and without a virtual environment."""
    return os.path.realpath(sys.executable)


def run_on_mac(scene: Scene, policy: Policy, command: list[str], output: int) -> str | None:
    """The path of the session's log. The session works in a separate folder, because some folders are not allowed for a
    session."""
    with contextlib.chdir(scene.work):
        return run_with(mac_run_settings(scene), policy, command, output)


def prove_mac(
    run: Callable[[Scene, Policy, list[str], int], str | None] = run_on_mac,
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    library: bool,
) -> list[Finding]:
    """*library*: whether the session has the preload library."""

    def probes(scene: Scene) -> Probes:
        return mac_probes(scene, library=library, home=os.path.expanduser("~"))

    return prove(run=run, wanted=wanted, probes=probes, python=interpreter())
