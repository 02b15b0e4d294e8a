"""Starts the engine's process: the interpreter of this one, isolated, with an empty environment and one channel.

It starts before the command runs, so that everything it imports is as the user installed it. It starts before anything
else of inspection, since the command waits for its CA: what is imported here the command waits for too.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import sys

from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CONTROL = 3
SIGKILL = 9
SECONDS = 20  # for the CA; a machine that is so slow has other problems
START = "import sys; sys.path += {paths!r}; from netsandbox_proxy.inspect.engine import main; main({arguments!r})"


class EngineProcess:
    """The engine of one session. *paths* are the folders to import from."""

    def __init__(self, session: str, paths: Sequence[str]) -> None:
        self.control, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        source = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, CONTROL + 1)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        stdio = fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, CONTROL + 1)
        actions = [(os.POSIX_SPAWN_DUP2, stdio, number) for number in range(CONTROL)]
        actions.append((os.POSIX_SPAWN_DUP2, source, CONTROL))
        code = START.format(paths=list(paths), arguments=[session])
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-B", "-c", code],
                {},
                file_actions=actions,
                setsigmask=[],
                setpgroup=0,  # signals of the terminal are for the command
            )
        except OSError as error:
            self.control.close()
            raise HostError(
                f"the engine for inspection cannot be started: {error.strerror}; see `netsandbox doctor`"
            ) from None
        finally:
            theirs.close()
            for descriptor in (source, nothing, stdio):
                os.close(descriptor)

    def authority(self) -> str:
        """Wait for the certificate of the session's CA, in PEM."""
        from netsandbox_proxy.inspect import channel

        seconds = SECONDS.to_bytes(8, sys.byteorder) + bytes(8)  # struct timeval
        self.control.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, seconds)
        try:
            received = channel.receive(self.control)
        except (OSError, channel.ChannelError):
            received = None
        if received is None or received[0][0]["kind"] != "authority":
            raise HostError("the engine for inspection did not start; run `netsandbox doctor` to find out why")
        pem = received[0][0].get("pem")
        if not isinstance(pem, str) or not pem.startswith("-----BEGIN CERTIFICATE-----"):
            raise HostError("the engine for inspection made no certificate; please report this")
        return pem

    def proceed(self) -> None:
        """Let it import the rest, now that the command has started."""
        try:
            self.control.send(b"g", _socket.MSG_NOSIGNAL)
        except OSError:  # it has ended, which the first connection will find out
            pass

    def close(self) -> None:
        """End it; its workers end with it."""
        if not self.pid:
            return
        self.control.close()
        os.kill(self.pid, SIGKILL)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass
        self.pid = 0
