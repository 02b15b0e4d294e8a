"""Every verb the probe program knows, and how an attempt ends: with what it achieved, or with what prevented it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from netsandbox.doctor.inside import files, kernel, listening, processes, questions, status, streams, unix_sockets
from netsandbox.doctor.inside.prevented import Prevented

VERBS: dict[str, Callable[..., str]] = {
    "tcp": streams.tcp,
    "connect-door": streams.connect_door,
    "socks-door": streams.socks_door,
    "visit": streams.visit,
    "udp": questions.udp,
    "ask": questions.ask,
    "unix-stream": unix_sockets.stream,
    "unix-late": unix_sockets.late,
    "unix-datagram": unix_sockets.datagram,
    "socket": kernel.open_socket,
    "io-uring": kernel.io_uring,
    "user-namespace": kernel.user_namespace,
    "trace-parent": kernel.trace_parent,
    "signal-group": kernel.signal_group,
    "capabilities": status.capabilities,
    "new-privileges": status.new_privileges,
    "no-filter": status.no_filter,
    "shared-namespaces": status.shared_namespaces,
    "foreign-processes": status.foreign_processes,
    "open-descriptors": status.open_descriptors,
    "inherited": processes.inherited,
    "end-process": processes.end,
    "trace-process": processes.trace,
    "read-environment": processes.read_environment,
    "listen": listening.listen,
    "lookup": questions.lookup,
    "read": files.read,
    "read-log": files.read_log,
    "listing": files.listing,
    "append": files.append,
    "append-log": files.append_log,
    "move": files.move,
    "open-for-writing": files.open_for_writing,
}


def attempt(verb: str, arguments: Mapping[str, object]) -> tuple[bool, str]:
    """Whether it achieved something, and what there is to say."""
    try:
        return True, VERBS[verb](**arguments)
    except Prevented as reason:
        return False, str(reason)
    except OSError as error:
        return False, errno.errorcode.get(error.errno or 0, "") or str(error)
