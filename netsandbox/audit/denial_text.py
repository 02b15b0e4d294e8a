"""One denial on one line, from the fields of its record. Pure; everything is tamed, since a command chose the words."""

from __future__ import annotations

from netsandbox.text import join_host_port, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 400
_VERBS = {"dns": "looking up ", "udp": "UDP to ", "bind": "binding ", "listen": "listening at ", "publish": "showing "}
_UNREACHED = ("lookup-failed", "unreachable")


def denial_text(event: str, fields: Mapping[str, object]) -> str:
    """What was denied, why, to whom, and the option that would allow it."""
    exe = fields.get("exe")
    by = f" to {printable(exe).rpartition('/')[2]}" if exe else ""
    reason = printable(fields.get("reason", "?"))
    text = f"denied {wanted(event, fields)} ({reason}){by}; {_advice(fields)}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def wanted(event: str, fields: Mapping[str, object]) -> str:
    """What the command wanted, in a few words."""
    host, port = fields.get("host") or fields.get("address"), fields.get("port")
    if event == "seatbelt":
        on = fields.get("path") or fields.get("target") or host or (f"port {port}" if port else "")
        return printable(f"{fields.get('operation') or fields.get('detail') or 'something'} {on}".rstrip())
    if event == "socket" and fields.get("path"):
        return printable(f"the socket {fields['path']}")
    if event == "socket":
        return printable(f"a socket of the kind {fields.get('family', '?')}/{fields.get('type', '?')}")
    if host is None and port is None:
        return printable(fields.get("detail") or event)
    return _VERBS.get(event, "") + place(host, port)


def place(host: object, port: object) -> str:
    """`HOST:PORT`, IPv6 in brackets."""
    if host is None:
        return f"port {printable(port)}"
    shown = printable(host)
    if not port:
        return shown
    return join_host_port(shown, printable(port))


def _advice(fields: Mapping[str, object]) -> str:
    if fields.get("hint"):
        return f"allow it with {printable(fields['hint'])}"
    if fields.get("reason") in _UNREACHED:
        return "it is allowed but was not reached; check the name and the host's own network"
    return "`netsandbox explain --last` says more"
