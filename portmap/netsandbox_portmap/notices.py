"""The notices about a session's localhost: a bind that was refused, a port that cannot be published."""

from __future__ import annotations

from netsandbox.runtime.inherited import write_notice
from netsandbox.text import join_host_port
from netsandbox_portmap.bind_rule import BindRule, needs_capability

MAX_LINES = 64


class Notices:
    """Writes each notice once."""

    def __init__(self, stderr: int) -> None:
        self._stderr = stderr
        self._written: set[str] = set()

    def refused(self, rule: BindRule, address: str, port: int) -> None:
        allowed = f"this session may listen {rule.text()}"
        if rule.window is None and needs_capability(port):
            allowed = "ports below 1024 are for administrators, and no session is one; take a higher port"
        self.write(f"bind to {join_host_port(address, port)} refused: {allowed}")

    def hidden(self, port: object, why: str) -> None:
        """*port* listens inside and is not published."""
        advice = "stop what is in the way, or choose with --publish PORT:HOSTPORT"
        self.write(f"port {port} listens, but the host cannot show it: {why}; {advice}")

    def unheard(self, port: int) -> None:
        """The command connected to a port of --connect-host, and nobody answered."""
        advice = f"start its server on this machine, or leave out --connect-host {port} for one of the command"
        self.write(f"nothing listens at port {port} of this machine's localhost; {advice}")

    def write(self, text: str) -> None:
        if text in self._written or len(self._written) >= MAX_LINES:
            return
        self._written.add(text)
        write_notice(self._stderr, text)
