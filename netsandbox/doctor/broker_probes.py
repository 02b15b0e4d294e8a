"""The probes in sessions of the backend `broker`, and what does not hold there by its design.

A probe that finds exactly this is a note that says what is weaker. Anything else that it finds is a leak.
"""

from __future__ import annotations

from netsandbox.doctor.file_probes import prove_linux
from netsandbox.doctor.jail import Finding, linux_probes
from netsandbox.doctor.judgement import LEAK, NOTE
from netsandbox.doctor.process_probes import process_probes
from netsandbox.frozen import copy_with, frozen


@frozen
class Weakness:
    """`found` is how the probe's result begins."""

    found: str
    weaker: str


WEAKNESSES = {
    "namespaces": Weakness(
        "the host's own: ", "it has the host's namespaces; its sockets are made by the broker, its files are Landlock's"
    ),
    "host-processes": Weakness(
        "", "it sees the host's processes and their command lines, but not their memory or variables"
    ),
}
# Emptying the bounding set takes a capability. Without one, no_new_privs lets nobody gain what is in it.
BOUNDING = Weakness("not empty: CapBnd", "the bounding set stays, and no_new_privs lets no program gain from it")


def prove_broker() -> list[Finding]:
    """The session sees a process of the host, so it is tried on one, too."""
    return [noted(each) for each in prove_linux("broker", lambda scene: [*linux_probes(scene), *process_probes(scene)])]


def noted(finding: Finding) -> Finding:
    weakness = WEAKNESSES.get(finding.probe)
    is_known = weakness is not None and finding.happened.startswith(weakness.found)
    if finding.probe == "capabilities":  # any other set is a leak
        weakness, is_known = BOUNDING, finding.happened == BOUNDING.found
    if finding.status != LEAK or weakness is None or not is_known:
        return finding
    return copy_with(finding, status=NOTE, happened=weakness.weaker)
