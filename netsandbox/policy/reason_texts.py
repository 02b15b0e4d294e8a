"""The reasons that are not the policy's own, in words: why a door or the resolver says no, and what to do. Pure.

`explain` has the words for what the policy decides.
"""

from __future__ import annotations

from netsandbox.policy import reasons

# reason: (why, what to do, "" where nothing helps)
TEXTS: dict[str, tuple[str, str]] = {
    reasons.QUERY_TYPE: (
        "DNS questions of this type are not forwarded",
        "forward them for allowed names with --allow-query-type TYPE",
    ),
    reasons.TUNNEL_LABEL: (
        "a long or random-looking name below a wildcard could carry data out",
        "allow this host exactly",
    ),
    reasons.TUNNEL_RATE: (
        "too many new names below one wildcard in a minute could carry data out",
        "allow the hosts exactly, or wait",
    ),
    reasons.LOOKUP_FAILED: (
        "it is allowed, but the name has no address or nobody answered",
        "check the name, the host's own network and --upstream-dns",
    ),
    reasons.UNREACHABLE: ("it is allowed and was tried, but no address answered", "check that the server runs"),
    reasons.MALFORMED: ("the bytes are no HTTP, SOCKS5 or DNS, or could be read in two ways", "correct the client"),
    reasons.UNSUPPORTED: (
        "no door carries this protocol or feature",
        "use another, such as HTTP CONNECT, SOCKS5 or HTTP/2 over TLS",
    ),
    reasons.HOST_MISMATCH: (
        "the Host header names another host than the one that was decided on",
        "let the client ask for the host that it connects to",
    ),
    reasons.SNI_MISMATCH: (
        "the TLS client names another host than the one that was decided on",
        "let the client name the host that it connects to",
    ),
    reasons.SNI_MISSING: ("the TLS client names no host", "let the client name the host that it connects to (SNI)"),
    reasons.TLS_UNREADABLE: ("the beginning of the TLS connection cannot be read whole", "correct the client"),
    reasons.ECH: ("Encrypted ClientHello hides which host is wanted", "turn it off in the client"),
    reasons.DEADLINE: ("the client took too long to say what it wants", "try again"),
    reasons.LIMIT: ("there were too many connections or questions at once", "let it make fewer at a time"),
    reasons.SOCKET_FAMILY: ("raw, packet and other kinds of sockets could walk past the doors", ""),
    reasons.UNIX_SOCKET: (
        "a Unix socket of the host may lead to a program that is not confined",
        "if it needs one, name it with --allow-unix-socket PATH; many programs only ask whether there is one",
    ),
    reasons.OUTSIDE_WINDOW: (
        "the port is not of the session's window",
        "take a port from LISTENING_BASE_PORT on, or use --network-strategy isolate",
    ),
    reasons.WRONG_DEVICE: (
        "the address is not the session's",
        "use localhost, or the address in LISTENING_LOOPBACK_DEVICE",
    ),
    reasons.WINDOW_FULL: (
        "no port of the session's window is left",
        "ask for more with --listening-port-count, or choose with --publish",
    ),
    reasons.PORT_TAKEN: (
        "a program of the host has the one port that would do",
        "stop that program, or choose with --publish PORT:HOSTPORT",
    ),
    reasons.SEATBELT: (
        "the session's Seatbelt profile does not allow it",
        "`netsandbox run --dry-run --backend seatbelt` prints its rules",
    ),
    reasons.AUDIT_UNWRITABLE: ("the record could not be written, so nothing was dialled", "free space on the disk"),
    reasons.INTERNAL: (
        "a fault of netsandbox; denied to be safe",
        "report it, with the `policy` record beside it",
    ),
}
