"""The table of attempts of the probe program, and the outcome of one: its achievement, or what prevented it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from netsandbox.doctor.inside import Prevented, host, network

ATTEMPTS: dict[str, Callable[..., str]] = {
    "tcp": network.tcp,
    "connect-door": network.connect_door,
    "socks-door": network.socks_door,
    "visit": network.visit,
    "udp": network.udp,
    "dns-query": network.query,
    "unix-stream": network.unix_stream,
    "unix-late": network.late_unix_stream,
    "unix-own": network.own_unix_stream,
    "unix-datagram": network.unix_datagram,
    "socket": host.open_socket,
    "io-uring": host.io_uring,
    "user-namespace": host.user_namespace,
    "trace-parent": host.trace_parent,
    "signal-group": host.signal_group,
    "capabilities": host.capabilities,
    "new-privileges": host.new_privileges,
    "no-filter": host.no_filter,
    "shared-namespaces": host.shared_namespaces,
    "foreign-processes": host.foreign_processes,
    "inherited": host.inherited_descriptors,
    "end-process": host.end_process,
    "trace-process": host.trace_process,
    "read-environment": host.read_environment,
    "listen": network.listen,
    "lookup": network.lookup,
    "read": host.read,
    "device": host.device,
    "many-files": host.many_files,
    "read-log": host.read_log,
    "read-replaced": host.read_replaced,
    "listing": host.listing,
    "append": host.append,
    "append-log": host.append_log,
    "move": host.move,
    "open-for-writing": host.open_for_writing,
}


def attempt(name: str, arguments: Mapping[str, object]) -> tuple[bool, str]:
    """Whether the attempt achieved something, and the details."""
    try:
        return True, ATTEMPTS[name](**arguments)
    except Prevented as reason:
        return False, str(reason)
    except OSError as error:
        return False, errno.errorcode.get(error.errno or 0, "") or str(error)
