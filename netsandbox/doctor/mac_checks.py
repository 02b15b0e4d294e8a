"""Checks of a Mac, each with its remedy. Each fact is read first and then judged."""

from __future__ import annotations

import os
import subprocess
import tempfile

from netsandbox_portmap.ranges import RangeLock

from netsandbox.backends.seatbelt.launch import helper_trouble
from netsandbox.backends.seatbelt.mac_system import MacSystem, macos_version
from netsandbox.backends.seatbelt.reservation import alias_command
from netsandbox.doctor.check import MISSING, NOTE, OK, UNTRIED, Check, state_directory
from netsandbox.paths import new_session_id
from netsandbox.runtime.control_socket import MAX_ADDRESS

LEAST = 11
MACHINES = ("arm64", "x86_64")
SECONDS = 10.0
REINSTALL = "reinstall netsandbox"
SW_VERS, CSRUTIL, CODESIGN, IFCONFIG = "/usr/bin/sw_vers", "/usr/bin/csrutil", "/usr/bin/codesign", "/sbin/ifconfig"
RESOLV_CONF = "/etc/resolv.conf"
MAX_STATE = MAX_ADDRESS - len(f"/sessions/{new_session_id()}/control")  # in bytes, for a socket in it


def checks(system: MacSystem) -> list[Check]:
    """Every check of the machine."""
    return [
        version(_output_of(SW_VERS), system.release),
        architecture(os.uname().machine),
        integrity(_output_of(CSRUTIL, "status")),
        helper(system.helper, helper_trouble(system.helper)),
        preload(system.library, there=os.path.exists(system.library)),
        signature("helper", system.helper, verified(system.helper)),
        signature("library", system.library, verified(system.library)),
        signed_here(system.unsigned),
        state_directory(),
        control_socket(state_directory()),
        locks(works=locks_work()),
        aliases(_output_of(IFCONFIG, "lo0")),
        resolver(_read(RESOLV_CONF)),
    ]


def version(sw_vers: str | None, release: str) -> Check:
    """The version by `sw_vers`, or by the kernel if that fails."""
    parts = product_version(sw_vers or "")
    text = ".".join(map(str, parts)) if parts else macos_version(release)
    if text is None:
        return Check(
            "macOS", NOTE, "its version is unknown", "nothing to do; each session tries whether it is confined"
        )
    if int(text.partition(".")[0]) < LEAST:
        return Check("macOS", MISSING, f"macOS {text}", f"use macOS {LEAST} or newer")
    return Check("macOS", OK, f"macOS {text}")


def architecture(machine: str) -> Check:
    if machine in MACHINES:
        return Check("architecture", OK, machine)
    return Check("architecture", MISSING, machine, f"use one of {', '.join(MACHINES)}")


def integrity(csrutil: str | None) -> Check:
    name = "SIP"
    enabled = protection(csrutil or "")
    if enabled is None:
        return Check(name, NOTE, "csrutil does not say", "nothing to do; no session depends on it")
    if enabled:
        return Check(name, OK, "on; programs of the system run without the preload library")
    return Check(name, NOTE, "off, or on in part", "nothing to do for a session; `csrutil enable` protects the system")


def helper(path: str, trouble: str) -> Check:
    if not trouble:
        return Check("native helper", OK, f"{path} runs")
    return Check("native helper", MISSING, trouble, REINSTALL)


def preload(path: str, *, there: bool) -> Check:
    if there:
        return Check("preload library", OK, path)
    found = f"no {path}: servers have ports of the window only, and only proxies lead out"
    return Check("preload library", NOTE, found, REINSTALL)


def signature(name: str, path: str, answer: str | None) -> Check:
    """*answer* of codesign: None if it was not run, empty if it has no complaint."""
    title = f"{name}'s signature"
    if answer is None:
        return Check(title, UNTRIED, f"needs {path} and {CODESIGN}")
    if not answer:
        return Check(title, OK, "accepted by codesign")
    return Check(title, NOTE, answer, f"{REINSTALL}, or sign it: codesign --force --sign - {path}")


def signed_here(unsigned: str) -> Check:
    """*unsigned* is the reason why helper and library are used as installed; empty if signed copies are used."""
    if not unsigned:
        return Check("signed by this Mac", OK, "helper, library and module, in copies")
    remedy = "nothing to do while they run; else `xcode-select --install`, or XDG_STATE_HOME in a folder of yours"
    return Check("signed by this Mac", NOTE, unsigned, remedy)


def control_socket(state: Check) -> Check:
    name = "control socket"
    if state.status != OK:
        return Check(name, UNTRIED, "needs a state directory")
    if len(os.fsencode(state.found)) <= MAX_STATE:
        return Check(name, OK, "its path is short enough")
    found = f"the state directory's path is longer than {MAX_STATE} bytes, so `ps` and `stop` see no session"
    return Check(name, NOTE, found, "set XDG_STATE_HOME to a shorter path")


def locks(*, works: bool) -> Check:
    if works:
        return Check("locks by open file", OK, "two sessions exclude each other")
    return Check("locks by open file", MISSING, "the system does not give them", "keep the state on a local disk")


def aliases(ifconfig: str | None) -> Check:
    found = loopback_aliases(ifconfig or "")
    if found:
        return Check("lo0 aliases", OK, f"{', '.join(found)}, for --network-strategy rewire-device")
    remedy = f"needed for --network-strategy rewire-device alone: {alias_command('127.0.0.2')}"
    return Check("lo0 aliases", NOTE, "none beside 127.0.0.1", remedy)


def resolver(resolv_conf: str) -> Check:
    found = name_servers(resolv_conf)
    if found:
        return Check("resolver", OK, f"{RESOLV_CONF} names {', '.join(found)}")
    remedy = "give --upstream-dns, or no allowed name is found"
    return Check("resolver", NOTE, f"{RESOLV_CONF} names no server", remedy)


def verified(path: str) -> str | None:
    """The complaint of codesign about the file; empty for none, None if it cannot be run."""
    if not os.path.exists(path):
        return None
    try:
        done = subprocess.run(
            [CODESIGN, "-v", path], capture_output=True, text=True, timeout=SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"codesign ended with {done.returncode}"])[0]


def locks_work() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ports")
        try:
            first, second = (RangeLock.open(path, shared=False) for _ in range(2))
        except OSError:
            return False
        try:
            return first.take(0, 2) and not second.take(1, 1)
        except OSError:
            return False
        finally:
            first.close()
            second.close()


def _output_of(*words: str) -> str | None:
    """The output of a program of the system; None if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False, env={})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


LOOPBACK = "127.0.0.1"


def product_version(sw_vers: str) -> tuple[int, ...] | None:
    """`ProductVersion:  14.6.1` of `sw_vers`."""
    for line in sw_vers.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "ProductVersion":
            parts = value.strip().split(".")
            if all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
                return tuple(int(part) for part in parts)
    return None


def protection(csrutil: str) -> bool | None:
    """Whether System Integrity Protection is on, by `csrutil status`; partly on is not on."""
    first, colon, rest = csrutil.partition("status:")
    if "System Integrity Protection" not in first or not colon:
        return None
    word = rest.strip().partition(".")[0].partition(" ")[0].lower()
    return {"enabled": True, "disabled": False, "unknown": False}.get(word)


def loopback_aliases(ifconfig: str) -> tuple[str, ...]:
    """The addresses of `ifconfig lo0`, except the one that every Mac has."""
    found = []
    for line in ifconfig.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "inet" and words[1].startswith("127.") and words[1] != LOOPBACK:
            found.append(words[1])
    return tuple(found)


def name_servers(resolv_conf: str) -> tuple[str, ...]:
    lines = (line.split() for line in resolv_conf.splitlines())
    return tuple(words[1] for words in lines if len(words) > 1 and words[0] == "nameserver")
