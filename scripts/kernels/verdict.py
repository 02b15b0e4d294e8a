"""Compares what a guest saw with what a case expects. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cases import Case, Expected

NOTE = "note"
PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"
UNBUILT = "not built yet"


@dataclass(frozen=True)
class Verdict:
    """`backends` and `doctor` say in a few words what was seen; `trouble` lists what is not as expected."""

    case: Case
    status: str
    kernel: str
    doctor: str
    backends: Mapping[str, str]
    trouble: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        if self.status == SKIPPED:
            return f"{self.case.name:<22} {self.status}  {'; '.join(self.trouble)}"
        seen = "; ".join(f"{name} {what}" for name, what in self.backends.items())
        lines = [f"{self.case.name:<22} {self.status}  {self.kernel}; doctor: {self.doctor}; {seen}"]
        return "\n".join([*lines, *(f"    {each}" for each in self.trouble)])


def judge(case: Case, result: Mapping[str, Any]) -> Verdict:
    kernel = str(result.get("kernel", "no kernel"))
    if "skipped" in result:
        return Verdict(case, SKIPPED, kernel, "not run", {}, (str(result["skipped"]),))
    seen = result.get("backends", {})
    trouble = [str(result["broken"])] if "broken" in result else []
    trouble += _doctor_trouble(case, result.get("doctor"))
    for name, expected in case.expected.items():
        if name in seen:
            trouble += [f"{name}: {each}" for each in backend_trouble(expected, seen[name])]
        elif "broken" not in result:
            trouble.append(f"{name}: not tried")
    words = {name: in_words(found) for name, found in seen.items()}
    status = FAILED if trouble else PASSED
    if not trouble and all(found == UNBUILT for found in words.values()):
        status, trouble = SKIPPED, [UNBUILT]
    return Verdict(case, status, kernel, doctor_in_words(result.get("doctor")), words, tuple(trouble))


def backend_trouble(expected: Expected, seen: Mapping[str, Any]) -> list[str]:
    """A refusal must be one line of netsandbox that has all expected words, with the exit status 1."""
    state, message = seen["state"], str(seen["message"])
    if state == "unbuilt":
        return []
    if expected.runs:
        if state != "ran":
            return [f"did not run: {message}"]
        return [f"{name}: {what}" for name, what in seen["checks"].items() if what]
    if state == "ran":
        return ["ran, but should have refused"]
    lacking = [word for word in expected.words if word not in message]
    trouble = [f"the message does not name {', '.join(lacking)}: {message}"] if lacking else []
    if "\n" in message or not message.startswith("netsandbox: "):
        trouble.append(f"the message is not one line of netsandbox: {message}")
    if seen["status"] != 1:
        trouble.append(f"refused with status {seen['status']}, not 1")
    return trouble


def _doctor_trouble(case: Case, doctor: Mapping[str, Any] | None) -> list[str]:
    """No probe may fail; a note is what a backend cannot keep by design. Where namespaces run, the doctor must prove
    it."""
    if doctor is None:
        return []
    failed = [each for each in doctor.get("not_holding", ()) if each["status"] != NOTE]
    bad = [f"doctor: {each['probe']}: {each['happened']}, {each['status']}" for each in failed]
    namespaces = case.expected.get("namespaces")
    if not bad and not doctor["ok"] and namespaces is not None and namespaces.runs:
        bad.append(f"doctor: {doctor['unproven']}")
    return bad


def in_words(seen: Mapping[str, Any]) -> str:
    """What a backend did, for a line and a table."""
    if seen["state"] == "unbuilt":
        return UNBUILT
    if seen["state"] == "refused":
        return f"refused: {str(seen['message']).removeprefix('netsandbox: ')}"
    held = sum(not what for what in seen["checks"].values())
    return f"ran, {held} of {len(seen['checks'])} checks held"


def doctor_in_words(doctor: Mapping[str, Any] | None) -> str:
    if doctor is None:
        return "not run"
    if not doctor["probes"]:
        return f"not proven, {doctor['unproven']}"
    counts = dict(doctor["probes"])
    words = [f"{counts.pop('ok', 0)} probes hold", f"{counts.pop('skipped', 0)} cannot be tried"]
    words += [f"{count} {status}" for status, count in sorted(counts.items())]
    notes = [name for name, found in doctor["machine"].items() if found.startswith("note:")]
    return ", ".join(words) + (f" (notes: {', '.join(notes)})" if notes else "")


def totals(verdicts: list[Verdict]) -> str:
    counts = [sum(verdict.status == status for verdict in verdicts) for status in (PASSED, FAILED, SKIPPED)]
    return "{} passed, {} failed, {} skipped".format(*counts)
