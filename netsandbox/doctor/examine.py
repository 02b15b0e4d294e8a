"""The whole examination: checks of this machine, then probes in a real session. The backend decides which ones."""

from __future__ import annotations

from collections.abc import Callable

from netsandbox.doctor.check import MISSING, Check
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.report import Report
from netsandbox.errors import HostError, NetsandboxError
from netsandbox.system import DEFAULT_BACKEND


def examine() -> Report:
    """The report on this machine."""
    if DEFAULT_BACKEND not in EXAMINATIONS:
        raise HostError("there is no session on this system that doctor could prove; run it on Linux or macOS")
    return report_of(*EXAMINATIONS[DEFAULT_BACKEND]())


def _linux() -> tuple[list[Check], Callable[[], list[Finding]]]:
    from netsandbox.doctor.file_probes import prove_linux
    from netsandbox.doctor.linux_checks import checks

    return checks(), prove_linux


def _macos() -> tuple[list[Check], Callable[[], list[Finding]]]:
    from netsandbox.backends.seatbelt.launch import library_trouble
    from netsandbox.backends.seatbelt.mac_system import this_mac
    from netsandbox.doctor.mac_checks import checks
    from netsandbox.doctor.mac_probes import prove_mac

    here = this_mac()
    return checks(here), lambda: prove_mac(library=not library_trouble(here.library))


EXAMINATIONS = {"namespaces": _linux, "seatbelt": _macos}


def report_of(machine: list[Check], prove: Callable[[], list[Finding]]) -> Report:
    """The checks of the machine come first; probes run only if a session can be created."""
    lacking = [check.name for check in machine if check.status == MISSING]
    if lacking:
        return Report(machine, [], f"{', '.join(lacking)} missing")
    try:
        return Report(machine, prove())
    except (NetsandboxError, OSError) as error:
        return Report(machine, [], str(error))
