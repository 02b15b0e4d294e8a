"""The session in which a tool is queried. Without it, a command that can write to the user's PATH, or to files that a
tool loads, could make us run its programs outside every session.

The session is offline, with no configuration, no profile and no published port; it sees the system and toolchains. It
works in a new, empty folder, which must still be empty afterwards: another session may see it and leave settings there.
It has no home, so that the user's settings do not change what the tool prints (on a Mac it has the user's, where
sessions write no settings and the profile is made for it); what it writes at the home's path is thrown away. The log is
removed with the folder. Where no session can be made, nothing is run (INV-1).

Cargo has no command that prints its default registry. It gets a proxy on loopback instead, which records the first
tunnel that Cargo requests and refuses it (`first_destination`). Nothing leaves the machine: the session reaches this
one port. The proxy's password is new for each query, so that no other user of the machine can answer in its place.
"""

from __future__ import annotations

import os
import sys

from netsandbox import system
from netsandbox.config.registries import tool_process
from netsandbox.runtime.written_folders import forget_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import subprocess
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import NoReturn

GRACE = 2.0  # for a session to end by itself
MAX_HEAD = 8192
# Nothing can be created in the kernel's folder. Tools accept that a home is missing. Below a file yarn and pdm fail,
# and below /proc npm tries to create one for ever.
_NO_HOME = "/sys/none" if os.path.isdir("/sys/kernel") else "/dev/null"
# Our packages may be a checkout that only PYTHONPATH names, which an isolated interpreter does not read.
_PROGRAM = """\
import sys
sys.path[:0] = [folder for folder in sys.argv.pop(1).split(":") if folder not in sys.path]
from netsandbox.config.registries.query_sandbox import main
main()
"""


class QuerySandbox:
    """One query. `port`: the only port of this machine that the tool may reach."""

    def __init__(self, port: int | None = None) -> None:
        self._port = port
        self._base = ""
        self._changed = 0

    def __enter__(self) -> QuerySandbox:
        from tempfile import mkdtemp

        self._base = mkdtemp(prefix="netsandbox-")
        os.mkdir(self._folder, 0o700)
        self._changed = os.stat(self._folder).st_ctime_ns
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from shutil import rmtree

        rmtree(self._base, ignore_errors=True)
        forget_written(os.path.realpath(self._folder))

    @property
    def _folder(self) -> str:
        return os.path.join(self._base, "work")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], home: str
    ) -> subprocess.Popen[bytes] | None:
        """The session around *command*, whose variables are *environment*. The session's process has ours, as in any
        session."""
        from netsandbox.paths import packages

        folders = ":".join(dict.fromkeys(os.path.dirname(path) for path in packages()))
        log = os.path.join(self._base, "audit.jsonl")
        session = [sys.executable, "-I", "-B", "-c", _PROGRAM, folders, log, str(self._port or "")]
        inside = {**environment, "HOME": home if system.IS_MACOS else _NO_HOME}
        data = "\0".join(f"{name}={value}" for name, value in inside.items()).encode("utf-8", "surrogateescape")
        return tool_process.start([*session, *command], os.environ, data, self._folder)

    def is_untouched(self) -> bool:
        """Whether the folder has been empty all the time."""
        try:
            return os.stat(self._folder).st_ctime_ns == self._changed
        except OSError:
            return False


def run(
    command: Sequence[str], environment: Mapping[str, str], home: str, *, timeout: float = tool_process.TIMEOUT
) -> bytes | None:
    """The output of *command* in a separate session; None if it fails, prints too much or takes too long."""
    try:
        with QuerySandbox() as sandbox:
            process = sandbox.start(command, environment, home)
            printed = None if process is None else tool_process.output(process, timeout, GRACE)
            return printed if sandbox.is_untouched() else None
    except OSError:  # no temporary folder
        return None


def main() -> NoReturn:
    """The process that is the session: `python -I -c … LOG PORT COMMAND…`, with the tool's variables on standard input.

    It exits as the command does, and with 1 if no session can be made.
    """
    from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

    from netsandbox.errors import NetsandboxError
    from netsandbox.policy.file_rules import FileRules
    from netsandbox.policy.policy import OFFLINE, Policy
    from netsandbox.runtime.inherited import exit_with
    from netsandbox.session.launch import encoded, run_session
    from netsandbox.settings import Command, RunSettings

    log, port, *command = sys.argv[1:]
    environment = variables(sys.stdin.buffer.read())
    null = os.open(os.devnull, os.O_RDWR)
    ports = (HostPort(int(port)),) if port else ()
    settings = RunSettings(
        mode=OFFLINE,
        proxy_env=False,
        audit_log=log,
        localhost=LocalhostSettings(publish=(), connect_host=ports),
        files=FileRules(fresh_home=True),
    )
    try:
        inside = Command(command, encoded(environment.items()), (null, 1, null))
        status = run_session(lambda: Policy(mode=OFFLINE), settings, inside).returncode
    except NetsandboxError:
        status = 1
    exit_with(status)


def variables(data: bytes) -> dict[str, str]:
    """The variables that were passed, with zero bytes between them (pure)."""
    pairs = (pair.partition("=") for pair in os.fsdecode(data).split("\0"))
    return {name: value for name, equals, value in pairs if name and equals}


def first_destination(
    command: Sequence[str],
    environment: Mapping[str, str],
    home: str,
    variable: str,
    *,
    timeout: float = tool_process.TIMEOUT,
) -> str | None:
    """`HOST:PORT` of the first tunnel that *command* requests when *variable* names its proxy."""
    import socket

    password = os.urandom(16).hex()
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, QuerySandbox(server.getsockname()[1]) as sandbox:
            proxy = f"http://registry:{password}@127.0.0.1:{server.getsockname()[1]}"
            process = sandbox.start(command, {**environment, variable: proxy}, home)
            found = None if process is None else _first_tunnel(process, server, password, timeout)
            return found if sandbox.is_untouched() else None
    except OSError:  # no port, or no temporary folder
        return None


def _first_tunnel(process: subprocess.Popen[bytes], server: socket.socket, password: str, timeout: float) -> str | None:
    """The tunnel that *process* requests. Then the process is ended."""
    from time import monotonic

    deadline = monotonic() + timeout
    try:
        while process.poll() is None and monotonic() < deadline:
            found = _next_tunnel(server, password)
            if found is not None:
                return found
        return None
    finally:
        tool_process.end(process, GRACE)


def _next_tunnel(server: socket.socket, password: str) -> str | None:
    """The tunnel that the next client requests, if it connects in time and has the password."""
    server.settimeout(0.1)
    try:
        client, _ = server.accept()
    except OSError:
        return None
    head = b""
    with client:
        client.settimeout(2)
        try:
            while b"\r\n\r\n" not in head and len(head) < MAX_HEAD:
                piece = client.recv(MAX_HEAD)
                if not piece:
                    break
                head += piece
            client.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        except OSError:
            pass
    return tunnel_of(head, f"registry:{password}")


def tunnel_of(head: bytes, credentials: str) -> str | None:
    """The target of a CONNECT request that carries *credentials* (pure)."""
    from base64 import b64encode

    lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
    words = lines[0].split(b" ")
    given = [line.partition(b":") for line in lines[1:]]
    tokens = [value.split() for name, _, value in given if name.lower() == b"proxy-authorization"]
    if len(words) != 3 or words[0] != b"CONNECT" or not words[1].isascii():
        return None
    return words[1].decode("ascii") if tokens == [[b"Basic", b64encode(credentials.encode("ascii"))]] else None
