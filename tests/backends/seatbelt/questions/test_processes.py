"""What a Mac says of processes: who may signal whom, who types where, how an end is told, what survives the library."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from netsandbox_interpose.library import PRELOAD

from netsandbox.backends.seatbelt.launch import helper_trouble
from netsandbox.backends.seatbelt.mac_system import KqueueExit
from netsandbox.backends.seatbelt.signing import INSTALLED, signed_parts
from netsandbox.doctor.mac_checks import verified
from tests.rig.mac_questions import SIGNAL, TYPE
from tests.rig.seatbelt_trial import FREE, SANDBOX_EXEC, SECONDS, is_answer, on_a_mac, probe

pytestmark = on_a_mac
Answer = Callable[[str, str], None]
PROGRAMS = ("python3", "node", "git", "ruby", "perl", "go", "java", "cargo", "curl", "bash", "brew")


def test_same_sandbox(answer: Answer) -> None:
    profile = f"{FREE}(deny signal)\n(allow signal (target self) (target same-sandbox))\n"
    other = subprocess.Popen([SANDBOX_EXEC, "-p", profile, "/bin/sleep", "60"])
    free = subprocess.Popen(["/bin/sleep", "60"])
    try:
        time.sleep(1)
        equal = probe(profile, SIGNAL, str(other.pid))
        different = probe(f"{profile}; another text\n", SIGNAL, str(other.pid))
        outside = probe(profile, SIGNAL, str(free.pid))
    finally:
        for child in (other, free):
            child.send_signal(signal.SIGKILL)
            child.wait()
    told = f"to a process under an equal profile {equal}, under another text {different}, under none {outside}"
    answer("same-sandbox", told)
    assert is_answer(equal, different, outside)


def test_tiocsti(answer: Answer) -> None:
    free = probe(FREE, TYPE)
    shut = probe(f"{FREE}(deny file-ioctl)\n", TYPE)
    answer("tiocsti", f"without a rule {free}, with file-ioctl denied {shut}")
    assert is_answer(free)


def test_ended_before(answer: Answer) -> None:
    """The end of its output is the end of the process, but for a moment; nobody has waited for it."""
    with subprocess.Popen(["/usr/bin/true"], stdout=subprocess.PIPE) as ended:
        assert ended.stdout is not None
        ended.stdout.read()
        time.sleep(1)
        notice = KqueueExit(ended.pid)
        told = bool(select.select([notice.fileno()], [], [], 5)[0])
        notice.close()
    answer("ended-before", f"a process that had ended when it was asked about is {'told' if told else 'not told'} of")


def test_foreign_signature(answer: Answer) -> None:
    """As it was installed, so as zig signed it: on the Mac that built it, or elsewhere."""
    if not os.path.exists(INSTALLED.helper):
        pytest.skip("the helper is not built here")
    told = f"started: {helper_trouble(INSTALLED.helper) or 'it runs'}; codesign: {verified(INSTALLED.helper)!r}"
    answer("foreign-signature", told)


def test_library_programs(answer: Answer) -> None:
    """Each says its version with the library named to dyld, which is told to say what it loads."""
    parts = signed_parts()
    if not os.path.exists(parts.library):
        pytest.skip("the library is not built here")
    found = {sys.executable, *filter(None, map(shutil.which, PROGRAMS))}
    variables = {os.fsdecode(PRELOAD): parts.library, "DYLD_PRINT_LIBRARIES": "1"}
    said = {path: _with_library(path, variables) for path in sorted(found)}
    answer("library-programs", "; ".join(f"{path} {what}" for path, what in said.items()))


def test_shell_bridge(answer: Answer) -> None:
    """What the library's exec hooks build on: dyld deletes the variable at the start of a protected program only."""
    name, library = os.fsdecode(PRELOAD), signed_parts().library
    if not os.path.exists(library):
        pytest.skip("the library is not built here")
    tell = f'{shlex.quote(sys.executable)} -c \'import os; print(os.environ.get("{name}", "lost"))\''
    own = f"export {name}={shlex.quote(library)}; "
    ways = {
        "handed to sh": (["/bin/sh", "-c", tell], {name: library}),
        "set by sh": (["/bin/sh", "-c", own + tell], {}),
        "set by env": (["/usr/bin/env", f"{name}={library}", "/bin/sh", "-c", tell], {}),
        "set by sh, /bin/ls": (["/bin/sh", "-c", own + "/bin/ls / >/dev/null && echo alive"], {}),
    }
    said = {}
    for way, (command, variables) in ways.items():
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **variables}, timeout=SECONDS, check=False
        )
        said[way] = f"status {done.returncode} {done.stdout.strip().replace(library, 'kept')!r}"
    answer("shell-bridge", "; ".join(f"{way}: {what}" for way, what in said.items()))


def _with_library(path: str, variables: dict[str, str]) -> str:
    word = "version" if path.endswith("/go") else "--version"
    try:
        done = subprocess.run(
            [path, word], capture_output=True, env={**os.environ, **variables}, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "does not end"
    loaded = b"libnetsandbox_interpose" in done.stderr
    return f"status {done.returncode}, {'with' if loaded else 'without'} the library"
