"""The notices about a session's localhost: where a server is reached, a bind that was refused, a port that cannot be
published."""

from __future__ import annotations

from netsandbox.runtime.inherited import write_notice
from netsandbox.text import join_host_port
from netsandbox_portmap.bind_rule import BindRule, needs_capability

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_portmap.localhost_settings import HostPort

MAX_LINES = 64
MAX_ANNOUNCED = 16


class Notices:
    """Writes each notice once."""

    def __init__(self, stderr: int) -> None:
        self._stderr = stderr
        self._written: set[str] = set()
        self._announced = 0

    def refused(self, rule: BindRule, address: str, port: int) -> None:
        allowed = f"this session may listen {rule.text()}"
        if rule.window is None and needs_capability(port):
            allowed = "ports below 1024 are for administrators, and no session is one; take a higher port"
        self.write(f"bind to {join_host_port(address, port)} refused: {allowed}")

    def hidden(self, port: object, crowded: str | None) -> None:
        """*port* listens inside and is not published, since it is taken or there is no room. The latter is written for
        the first port only, because a test suite may open thousands."""
        advice = "stop what is in the way, or choose with --publish PORT:HOSTPORT"
        text = f"port {port} listens, but the host cannot show it: {crowded or 'it is taken'}; {advice}"
        self.write(text, about=crowded)

    def unheard(self, door: HostPort, why: str) -> None:
        """The command connected to a port of --connect-host, and was not let through; *why* is of `session_dial`. What
        was reported before the start is not repeated."""
        port = door.reached
        if door.session is None:
            advice = f"start its server on this machine, or leave out --connect-host {door} for one of the command"
            self.write(f"nothing listens at port {port} of this machine's localhost; {advice}")
            return
        if why and why == door.reported:
            return
        texts = {
            "nobody": f"no session is called {door.session}; start it with `netsandbox run --name {door.session}`",
            "hidden": f"the session {door.session} does not publish port {port}; start it with --publish {port}",
            "unheard": f"nothing listens at port {port} in the session {door.session}; start its server there",
        }
        otherwise = f"the session {door.session} did not answer; see `netsandbox ps`"
        self.write(f"--connect-host {door}: {texts.get(why, otherwise)}")

    def served(self, url: str, port: int, plain: str) -> None:
        """A server of the session is published. Browsers and curl resolve every name below localhost, and many other
        programs do not, so *plain* is the URL with the address."""
        if self._announced < MAX_ANNOUNCED:
            self._announced += 1
            self.write(f"{url} is port {port} of this session" + (f", as is {plain}" if plain != url else ""))

    def not_shared(self, wanted: int, port: int | None) -> None:
        """Another program has the gateway's port."""
        instead = "this session has no names" if port is None else f"names of this session are at port {port}"
        self.write(f"port {wanted} is taken by another program, so {instead}; choose with --gateway-port PORT")

    def write(self, text: str, about: str | None = None) -> None:
        """*about*: what is written only once, if that is not the text itself."""
        about = about or text
        if about in self._written or len(self._written) >= MAX_LINES:
            return
        self._written.add(about)
        write_notice(self._stderr, text)
