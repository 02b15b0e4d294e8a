"""The probes of files, tried in a second session that has the default mode: what it must not read or change.

The session gets a home and a project of the scene, so no file of the user is touched. A control must be written, or the
other probes prove nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from netsandbox.doctor import judgement
from netsandbox.doctor.jail import Finding, Probes, linux_probes, prove, run_in_session, run_with
from netsandbox.doctor.judgement import FAILED, OK, Judgement
from netsandbox.doctor.probe import REFUSED, UNCHANGED, Absent, Evidence, Probe, refused
from netsandbox.doctor.scene import MARK, Scene
from netsandbox.paths import PACKAGE
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.policy import Policy
from netsandbox.settings import RunSettings

WRITTEN = "written"
SECRET, SETTINGS, HOOK = ".netrc", ".bashrc", ".git/hooks/post-checkout"
CONTROL, READY, DONE = "control", "ready", "done"
POLL_SECONDS = 0.01
MAX_FILES = 128
CONTROLS = ("/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/vsock")  # devices of the host; the first that we may open


def prove_linux(backend: str = "namespaces", probes: Callable[[Scene], Probes] = linux_probes) -> list[Finding]:
    """The findings of both sessions. *probes* are those of the one with open files."""
    closed = partial(run_closed, backend=backend)
    return [
        *prove(run=partial(run_open, backend=backend), probes=probes),
        *prove(lambda scene, chosen: Policy(), closed, probes=file_probes),
    ]


def file_probes(scene: Scene) -> Probes:
    home, work = _home(scene), scene.work
    beside = os.path.join(scene.directory, "beside", "file")
    for path in (f"{home}/{SECRET}", f"{home}/{SETTINGS}", f"{work}/{HOOK}", f"{work}/{CONTROL}", beside):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("before\n")
    return [
        Probe(
            "file-control",
            WRITTEN,
            "append",
            {"path": f"{work}/{CONTROL}", "text": MARK},
            lambda seen: _written(f"{work}/{CONTROL}"),
        ),
        refused("read-home", "read", path=f"{home}/{SECRET}"),
        Probe(
            "read-replaced",
            REFUSED,
            "read-replaced",
            {"path": f"{home}/{SECRET}", "ready": f"{work}/{READY}", "done": f"{work}/{DONE}"},
            lambda seen: _replaced(seen, f"{work}/{DONE}"),
        ),
        refused("read-temporary", "read", path=beside),
        _unchanged("write-home", f"{home}/{SETTINGS}"),
        _unchanged("write-hook", f"{work}/{HOOK}"),
        _device_probe(),
        refused("limit-files", "many-files", count=2 * MAX_FILES),
    ]


def _device_probe() -> Probe | Absent:
    path = next((path for path in CONTROLS if os.access(path, os.R_OK)), None)
    if path is None:
        return Absent("device", REFUSED, f"this user may open none of {', '.join(CONTROLS)}")
    return refused("device", "device", path=path)


def _unchanged(name: str, path: str) -> Probe:
    return Probe(
        name,
        UNCHANGED,
        "append",
        {"path": path, "text": MARK},
        lambda seen: judgement.untouched(seen.answer, changed=_is_marked(path)),
    )


def _written(path: str) -> Judgement:
    return Judgement(OK, "written") if _is_marked(path) else Judgement(FAILED, "the project was not written")


def _replaced(seen: Evidence, done: str) -> Judgement:
    """A refusal counts only if the host has replaced the file before."""
    return judgement.refusal(seen.answer) if os.path.exists(done) else Judgement(FAILED, "the host was not in time")


def _is_marked(path: str) -> bool:
    with open(path) as file:
        return MARK in file.read()


def run_closed(scene: Scene, policy: Policy, command: list[str], output: int, backend: str | None = None) -> str | None:
    """Run in the scene's project and home. Our package is shown, which may lie anywhere."""
    rules = FileRules((PathRule(PACKAGE, "doctor"),))
    ended = threading.Event()
    host = threading.Thread(target=_replace_secret, args=(scene, ended))
    host.start()
    try:
        with _folders_of(scene):
            settings = RunSettings(name="doctor", files=rules, limits=(("files", MAX_FILES),), backend=backend)
            return run_with(settings, policy, command, output)
    finally:
        ended.set()
        host.join()


def run_open(scene: Scene, policy: Policy, command: list[str], output: int, backend: str | None = None) -> str | None:
    with _folders_of(scene):
        return run_in_session(scene, policy, command, output, backend)


@contextmanager
def _folders_of(scene: Scene) -> Iterator[None]:
    """A session notes in the home that it ran; one of the doctor must not count. Nor may it matter where the doctor was
    started: a backend refuses a working folder that netsandbox itself is installed in."""
    known, here = os.environ.get("HOME"), os.getcwd()
    os.makedirs(_home(scene), exist_ok=True)
    os.environ["HOME"] = _home(scene)
    os.chdir(scene.work)
    try:
        yield
    finally:
        os.chdir(here)
        if known is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = known


def _replace_secret(scene: Scene, ended: threading.Event) -> None:
    """Replace the secret once the probe is ready, as editors and `git credential` do: by a new file of the name."""
    while not os.path.exists(f"{scene.work}/{READY}"):
        if ended.wait(POLL_SECONDS):
            return
    with open(f"{_home(scene)}/new", "w") as file:
        file.write("after\n")
    os.replace(f"{_home(scene)}/new", f"{_home(scene)}/{SECRET}")
    with open(f"{scene.work}/{DONE}", "x"):
        pass


def _home(scene: Scene) -> str:
    return os.path.join(scene.directory, "home")
