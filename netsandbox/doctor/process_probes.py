"""The probes on a process of the user outside the session, for backends whose sessions see such processes."""

from __future__ import annotations

from netsandbox.doctor import judgement
from netsandbox.doctor.probe import SILENCE, Absent, Probe, refused
from netsandbox.doctor.scene import Scene


def process_probes(scene: Scene) -> list[Probe | Absent]:
    """The other process is signalled last, because it may not survive that."""
    other_process = scene.other_process()
    return [
        refused("read-process", "read-environment", pid=other_process.pid),
        refused("trace-process", "trace-process", pid=other_process.pid),
        Probe(
            "signal-process",
            SILENCE,
            "end-process",
            {"pid": other_process.pid},
            lambda seen: judgement.spared(seen.answer, ended=other_process.was_ended),
        ),
    ]
