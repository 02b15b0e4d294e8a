"""The whole examination: checks of this machine, then probes in real sessions of each backend that can run here."""

from __future__ import annotations

from collections.abc import Callable

from netsandbox.backends import BACKENDS
from netsandbox.doctor.check import MISSING, Check
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.report import BackendReport, Report
from netsandbox.errors import HostError, NetsandboxError, UsageError
from netsandbox.system import DEFAULT_BACKEND

Examination = tuple[list[Check], Callable[[], list[Finding]]]


def examine(backend: str | None = None) -> Report:
    """The report on this machine, or on one *backend* of it. All checks come before the first thread is started."""
    names = _backends()
    if backend is not None and backend not in names:
        raise UsageError(f"there is no backend {backend!a} here; use --backend {' or '.join(names)}")
    wanted = [backend] if backend is not None else names
    shared = _shared()
    examinations = [(name, EXAMINATIONS[name]()) for name in wanted]
    lacking = _lacking(shared)
    return Report(shared, [backend_report(name, *found, lacking=lacking) for name, found in examinations])


def _backends() -> list[str]:
    """Those of this system, the one that a session prefers first."""
    if DEFAULT_BACKEND is None:
        raise HostError("there is no session on this system that doctor could prove; run it on Linux or macOS")
    return [name for name, system in BACKENDS.items() if system == BACKENDS[DEFAULT_BACKEND]]


def _shared() -> list[Check]:
    if DEFAULT_BACKEND == "seatbelt":
        return []
    from netsandbox.doctor.linux_checks import shared_checks

    return shared_checks()


def _namespaces() -> Examination:
    from netsandbox.doctor.file_probes import prove_linux
    from netsandbox.doctor.linux_checks import checks

    return checks(), prove_linux


def _broker() -> Examination:
    from netsandbox.doctor.broker_checks import checks
    from netsandbox.doctor.broker_probes import prove_broker

    return checks(), prove_broker


def _macos() -> Examination:
    from netsandbox.backends.seatbelt.launch import library_trouble
    from netsandbox.backends.seatbelt.mac_system import this_mac
    from netsandbox.doctor.mac_checks import checks
    from netsandbox.doctor.mac_probes import prove_mac

    here = this_mac()
    return checks(here), lambda: prove_mac(library=not library_trouble(here.library))


EXAMINATIONS = {"namespaces": _namespaces, "broker": _broker, "seatbelt": _macos}


def backend_report(
    name: str, checks: list[Check], prove: Callable[[], list[Finding]], *, lacking: str = ""
) -> BackendReport:
    """Probes run only if a session can be created: nothing is missing, neither here nor in what is *lacking*."""
    missing = ", ".join(filter(None, (lacking, _lacking(checks))))
    if missing:
        return BackendReport(name, checks, [], f"{missing} missing")
    try:
        return BackendReport(name, checks, prove())
    except (NetsandboxError, OSError) as error:
        return BackendReport(name, checks, [], str(error))


def _lacking(checks: list[Check]) -> str:
    return ", ".join(check.name for check in checks if check.status == MISSING)
