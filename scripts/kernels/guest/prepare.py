"""Runs as root, as the first process: sets the machine up as plan.json says, lets the user test, switches it off.

The result is written to the disk `RESULT` after each part, so that a hang loses only what comes after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PREFIX = HERE.parent / "netsandbox"
NETSANDBOX = PREFIX / "bin" / "netsandbox"
RESULT = "/dev/vdc"
USER = 1001
HOME = "/home/guest"
CGROUP = Path("/sys/fs/cgroup")
MAX_OUTPUT = 2000
# Documentation addresses (RFC 5737) on lo: one that sessions may reach, and one that they may not.
TWINS = ("192.0.2.10", "192.0.2.11")
HELPER = PREFIX / "lib/python3*/site-packages/netsandbox/backends/namespaces/native/netsandbox-init"
# As on a host that restricts user namespaces: programs keep all other rights, and one that has its own profile gets it
# (`allow all` would let children inherit this one).
CLOSED = f"""\
abi <abi/4.0>,
profile closed-userns {NETSANDBOX} {{
  /{{,**}} rwlkm,
  /** pix,
  capability,
  change_profile,
  dbus,
  io_uring,
  mount,
  mqueue,
  network,
  pivot_root,
  ptrace,
  remount,
  signal,
  umount,
  unix,
  deny userns,
}}
"""
# The remedy of docs/platform-linux.md
OPENED = f"""\
abi <abi/4.0>,
profile netsandbox-init {HELPER} flags=(unconfined) {{
  userns,
}}
"""


class Skip(Exception):
    """The case cannot be tried here."""


def main() -> None:
    result: dict[str, Any] = {"kernel": os.uname().release, "machine": os.uname().machine}
    try:
        plan = json.loads((HERE / "plan.json").read_text("utf-8"))
        prepare(plan, result)
        save(result)
        test(plan, result)
    except Skip as reason:
        result["skipped"] = str(reason)
    except Exception as error:
        result["broken"] = f"{type(error).__name__}: {error}"
    save(result)


def prepare(plan: dict[str, Any], result: dict[str, Any]) -> None:
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/", LANG="C.UTF-8")
    compiling = threading.Thread(target=run, args=[sys.executable, "-m", "compileall", "-q", str(PREFIX)])
    compiling.start()
    run("ip", "link", "set", "lo", "up")
    for address in TWINS:
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    run("modprobe", "-a", "nft_tproxy", "overlay")
    result["lsm"] = Path("/sys/kernel/security/lsm").read_text("ascii").strip()
    compiling.join()
    for name, value in plan["sysctls"].items():
        place = Path("/proc/sys", *name.split("."))
        if not place.exists():
            raise Skip(f"this kernel has no {name}")
        place.write_text(value, "ascii")
        if place.read_text("ascii").strip() != value:
            raise RuntimeError(f"{name} is not {value}")
    for step in plan["steps"]:
        STEPS[step]()


def close_by_apparmor() -> None:
    load_profile("closed-userns", CLOSED)


def open_by_apparmor() -> None:
    load_profile("netsandbox-init", OPENED)


def load_profile(name: str, text: str) -> None:
    profile = Path("/etc/apparmor.d", name)
    profile.write_text(text, "utf-8")
    run("apparmor_parser", "--replace", "--skip-cache", str(profile))


def fix_by_doctor() -> None:
    run(str(NETSANDBOX), "doctor", "--fix", "--apply")


def delegate_cgroup() -> None:
    """A cgroup that the user owns, as a manager would give it; the tests run in a child of it."""
    (CGROUP / "cgroup.subtree_control").write_text("+memory +pids +cpu", "ascii")
    top = CGROUP / "user"
    (top / "tests").mkdir(parents=True)
    (top / "cgroup.subtree_control").write_text("+memory +pids +cpu", "ascii")
    for place in (top, *top.iterdir(), *(top / "tests").iterdir()):
        if place.is_dir() or place.name.startswith("cgroup."):
            os.chown(place, USER, USER)
    (top / "tests" / "cgroup.procs").write_text(str(os.getpid()), "ascii")


STEPS: dict[str, Callable[[], None]] = {
    "close-by-apparmor": close_by_apparmor,
    "open-by-apparmor": open_by_apparmor,
    "doctor-fix": fix_by_doctor,
    "delegate-cgroup": delegate_cgroup,
}


def run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-MAX_OUTPUT:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {said}")


def test(plan: dict[str, Any], result: dict[str, Any]) -> None:
    """The user's program prints one JSON object for each part that it has done, and an empty one at its end."""
    environment = {"HOME": HOME, "USER": "guest", "LANG": "C.UTF-8", "PATH": f"{PREFIX}/bin:/usr/bin:/bin"}
    command = [sys.executable, str(HERE / "smoke.py"), str(HERE / "plan.json")]
    # A process that a session left behind may hold the pipe open, so its end is not waited for.
    with tempfile.TemporaryFile("w+") as errors:
        tests = subprocess.Popen(
            command, user=USER, group=USER, extra_groups=(), cwd=HOME, env=environment, umask=0o022,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        assert tests.stdout is not None
        for line in tests.stdout:
            part = json.loads(line)
            if not part:
                break
            result.update(part)
            save(result)
        status = tests.wait()
        errors.seek(0)
        trouble = errors.read()
    if status != 0:
        raise RuntimeError(f"the tests ended with {status}: {trouble[-MAX_OUTPUT:]}")
    if plan["backends"] and "backends" not in result:
        raise RuntimeError("the tests said nothing")


def save(result: dict[str, Any]) -> None:
    with open(RESULT, "r+b") as disk:
        disk.write(json.dumps(result).encode() + b"\n\0")
        os.fsync(disk.fileno())


if __name__ == "__main__":
    try:
        main()
    finally:
        Path("/proc/sysrq-trigger").write_text("o", "ascii")
        time.sleep(60)  # the machine is switched off meanwhile; the kernel panics when its first process ends
