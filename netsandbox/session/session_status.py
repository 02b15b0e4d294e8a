"""Checks a session's status reply. Pure. Readers may rely on the types in a status, never on its texts.

The reply comes from a process of the same user, which may be another version of netsandbox or no session at all. The
fields that identify and stop a session must be present and valid; a field that is only displayed is None if invalid.
"""

from __future__ import annotations

from netsandbox.session.approvals.file_places import OPERATIONS
from netsandbox.session.control import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Status = dict[str, "Any"]

_TEXTS = ("folder", "mode", "strategy", "engine", "device", "audit_log", "limits")
_COUNTS = ("init", "allowed", "denied", "flows", "processes", "memory_bytes")
_PORT_TEXTS = ("address", "device_address", "url", "exe")
_SCALARS = (str, int, float, bool, type(None))


def read_status(line: bytes, session: str) -> Status | None:
    """The status of *session* in *line*, or None if *line* is not a status."""
    try:
        import json

        answer = json.loads(line.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or answer.get("v") != VERSION or answer.get("session") != session:
        return None
    name, command, ports = answer.get("name"), answer.get("command"), answer.get("ports")
    if not isinstance(name, str) or not _is_count(answer.get("pid")) or not _is_moment(answer.get("started")):
        return None
    if (
        not isinstance(ports, list)
        or not isinstance(command, list)
        or not all(isinstance(word, str) for word in command)
    ):
        return None
    return {
        **{key: value for key, value in answer.items() if isinstance(value, _SCALARS) and not _is_endless(value)},
        **{key: _text(answer.get(key)) for key in _TEXTS},
        **{key: _count(answer.get(key)) for key in _COUNTS},
        "cpu_seconds": answer.get("cpu_seconds") if _is_moment(answer.get("cpu_seconds")) else None,
        "command": command,
        "window": _window(answer.get("window")),
        "ports": [port for port in map(_port, ports) if port is not None],
        "pending": _questions(answer.get("pending")),
    }


def _questions(answer: object) -> list[Status]:
    """The questions that wait for the user; empty for a session that does not know questions."""
    found = map(_question, answer) if isinstance(answer, list) else ()
    return [question for question in found if question is not None]


def _question(answer: object) -> Status | None:
    if not isinstance(answer, dict) or not _is_count(answer.get("id")) or not _is_moment(answer.get("until")):
        return None
    if isinstance(answer.get("path"), str):
        if answer.get("operation") not in OPERATIONS:
            return None
        target = {"path": answer["path"], "operation": answer["operation"], "secret": answer.get("secret") is True}
    elif isinstance(answer.get("host"), str) and _is_port(answer.get("port")):
        target = {"host": answer["host"], "port": answer["port"]}
    else:
        return None
    return {
        **target,
        **{key: answer[key] for key in ("id", "until")},
        "pid": _count(answer.get("pid")),
        "exe": _text(answer.get("exe")),
        "waiting": _count(answer.get("waiting")),
    }


def _port(answer: object) -> Status | None:
    if not isinstance(answer, dict) or not _is_port(answer.get("port")):
        return None
    if not isinstance(answer.get("host_address"), str) or not _is_port(answer.get("host_port")):
        return None
    return {
        **{key: answer[key] for key in ("port", "host_address", "host_port")},
        **{key: _text(answer.get(key)) for key in _PORT_TEXTS},
        "pid": _count(answer.get("pid")),
        "since": answer.get("since") if _is_moment(answer.get("since")) else None,
    }


def _window(answer: object) -> Status | None:
    if not isinstance(answer, dict) or not _is_port(answer.get("base")) or not _is_port(answer.get("count")):
        return None
    return {"base": answer["base"], "count": answer["count"]}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _is_count(value: object) -> bool:
    return _count(value) is not None


def _is_port(value: object) -> bool:
    return type(value) is int and 0 < value < 65536


def _is_moment(value: object) -> bool:
    return type(value) in (int, float) and not _is_endless(value)


def _is_endless(value: object) -> bool:
    """1e999 is valid JSON and becomes infinite."""
    return isinstance(value, float) and value - value != 0


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
