"""Which profiles a Mac takes: each operation that we know of, those of sessions, long ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from netsandbox.backends.seatbelt.profile.operations import KNOWN
from netsandbox.backends.seatbelt.profile.profile_settings import DOORS, NetworkSettings, ProfileSettings, resolve
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.backends.seatbelt.profile.switches import SWITCHES
from netsandbox.backends.seatbelt.profile.tag import new_tag, tagged
from tests.rig.mac_questions import OPEN
from tests.rig.seatbelt_trial import FREE, SANDBOX_EXEC, confined, on_a_mac

pytestmark = on_a_mac
Answer = Callable[[str, str], None]
LENGTHS = (100, 1_000, 10_000, 50_000)
PATIENCE = 120


def test_operations(answer: Answer) -> None:
    unknown = []
    for name in sorted(KNOWN - {"default"}):
        done = confined(f"{FREE}(allow {name})\n", "/usr/bin/true")
        if done.returncode:
            unknown.append(name)
    answer("operations", f"not known: {', '.join(unknown) or 'none'}")
    assert confined(f"{FREE}(allow no-such-operation)\n", "/usr/bin/true").returncode


def session(folder: Path, switches: tuple[str, ...]) -> str:
    network = NetworkSettings(DOORS, OPEN, OPEN + 10, OPEN + 20, base=OPEN + 30, count=3, connect_host=(5432,))
    planned = ProfileSettings(
        str(folder),
        str(Path.home()),
        temporary=("/tmp",),
        executables=(sys.prefix,),
        network=network,
        switches=switches,
    )
    return tagged(session_profile(resolve(planned, os.path.realpath, os.path.isdir)), new_tag())


def test_session_profile(answer: Answer, tmp_path: Path) -> None:
    said = {}
    for switches in ((), *((each,) for each in SWITCHES), SWITCHES):
        done = confined(session(tmp_path, switches), "/usr/bin/true")
        said["+".join(switches) or "none"] = "taken" if done.returncode == 0 else done.stderr.strip()[-300:]
    answer("session-profile", "; ".join(f"switches {name}: {what}" for name, what in said.items()))
    assert set(said.values()) == {"taken"}


def test_profile_length(answer: Answer, tmp_path: Path) -> None:
    """From a file, since an argument has bounds of its own."""
    said = []
    for count in LENGTHS:
        profile = tmp_path / f"{count}.sb"
        rules = (f'(deny file-read* (subpath "/private/tmp/nowhere/{number:0100}"))' for number in range(count))
        profile.write_text(FREE + "\n".join(rules) + "\n")
        started = time.monotonic()
        line = [SANDBOX_EXEC, "-f", str(profile), "/usr/bin/true"]
        try:
            status = subprocess.run(line, capture_output=True, timeout=PATIENCE, check=False).returncode
        except subprocess.TimeoutExpired:
            said.append(f"{count} paths: no answer in {PATIENCE} s")
            break
        taken = "taken" if status == 0 else f"refused ({status})"
        said.append(f"{count} paths, {profile.stat().st_size} bytes: {taken} in {time.monotonic() - started:.2f} s")
    answer("profile-length", "; ".join(said))
    assert ": taken" in said[0]
