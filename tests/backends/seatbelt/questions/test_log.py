"""What the system's log tells of refusals: in which form, with the tag or without, and how soon."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from netsandbox.backends.seatbelt.profile import violations
from netsandbox.backends.seatbelt.profile.tag import new_tag, tagged
from tests.rig.mac_questions import BASE, PROGRAMS, READ, SHUT
from tests.rig.seatbelt_trial import confined, on_a_mac, probe

pytestmark = on_a_mac
Answer = Callable[[str, str], None]
PATIENCE = 10.0  # seconds for all of it
BEGIN = 3.0  # after these the act is done even if nothing was printed yet


class Told:
    """What `log stream` printed while *act* was done, and when: seconds after the start, and after the act."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.text = b""
        self.began: float | None = None
        self.pieces: list[tuple[float, bytes]] = []
        watcher = subprocess.Popen(violations.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            self._read(watcher, act)
        finally:
            watcher.kill()
            watcher.communicate()

    def _read(self, watcher: subprocess.Popen[bytes], act: Callable[[], None]) -> None:
        assert watcher.stdout is not None
        started, acted = time.monotonic(), 0.0
        while time.monotonic() < started + PATIENCE and len(self.text) < 1 << 20:
            if select.select([watcher.stdout], [], [], 0.1)[0]:
                piece = os.read(watcher.stdout.fileno(), 65536)
                if not piece:
                    return
                now = time.monotonic()
                self.began = now - started if self.began is None else self.began
                self.text += piece
                if acted:
                    self.pieces.append((now - acted, self.text))
            if not acted and (self.text or time.monotonic() > started + BEGIN):
                acted = time.monotonic()
                act()


def test_violations(answer: Answer, folder: Path) -> None:
    """By programs of the system and by our Python: the kernel is reported to leave out those of the latter."""
    profile = f'{BASE}(deny file-read-data (literal "{folder}/secret"))\n'

    def act() -> None:
        confined(profile, "/bin/cat", f"{folder}/secret")
        probe(profile, READ, f"{folder}/secret")
        probe(profile, PROGRAMS["connect"], "127.0.0.1", str(SHUT))
        confined(profile, "/usr/bin/nc", "-z", "-w", "1", "127.0.0.1", str(SHUT))

    text = Told(act).text
    reader = violations.Reader()
    found = [each.fields() for each in reader.feed(text + b"\n")]
    for line in text.splitlines()[:8]:
        print(f"\nLINE {line[:2000]!r}")
    ours = [each for each in found if f"{folder}/secret" in str(each) or str(SHUT) in str(each)]
    answer("violations", f"{len(found)} read, {len(ours)} of them ours, {reader.dropped} not understood: {ours[:6]}")
    assert ours
    assert reader.dropped == 0


def test_violation_tag(answer: Answer, folder: Path) -> None:
    """By what a shell starts, after a long path, and often enough to be counted as repeats."""
    tag = new_tag()
    profile = tagged(f'{BASE}(deny file-read-data\n  (subpath "{folder}"))\n', tag)
    long = folder / "/".join(["n" * 200] * 4)
    long.parent.mkdir(parents=True)
    long.write_text("text")

    def act() -> None:
        confined(profile, "/bin/sh", "-c", f"for n in 1 2 3 4 5 6; do /bin/cat {folder}/secret; done")
        confined(profile, "/usr/bin/nc", "-z", "-w", "1", "127.0.0.1", str(SHUT))
        confined(profile, "/bin/cat", str(long))

    text = Told(act).text
    everybody, own = violations.Reader(), violations.Reader(tag)
    ours = [each for each in everybody.feed(text + b"\n") if f"{folder}" in each.target or str(SHUT) in each.target]
    found = own.feed(text + b"\n")
    counted = sum(each.count > 1 for each in found)
    kept = any("n" * 200 in each.target for each in found)
    answer("violation-tag", f"{len(found)} of {len(ours)} have it, {counted} of them counts; after a long path: {kept}")
    assert found


def test_log_delay(answer: Answer, folder: Path) -> None:
    """One refusal, made when the log has printed its first line: so whether that says that it listens, too."""
    name = f"{folder}/secret"
    profile = f'{BASE}(deny file-read-data (literal "{name}"))\n'

    def act() -> None:
        confined(profile, "/bin/cat", name)

    told = Told(act)
    when = [
        after
        for after, text in told.pieces
        if any(name in each.target for each in violations.Reader().feed(text + b"\n"))
    ]
    begins = "nothing" if told.began is None else f"the first line after {told.began:.2f} s"
    answer("log-delay", f"{begins}; the refusal {f'{when[0]:.2f} s after the act' if when else 'is not told'}")
    assert told.began is not None
