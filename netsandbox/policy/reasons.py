"""The closed list of reasons (INV-11): every verdict carries exactly one of them."""

from __future__ import annotations

# Allowed.
RULE = "rule"
ONLINE = "online"
LOOPBACK = "loopback"
APPROVED = "approved"
ASK = "ask"
INSPECTED = "inspected"

# Denied by the policy.
OFFLINE = "offline"
NOT_ALLOWED = "not-allowed"
DENY_RULE = "deny-rule"
DOH_ENDPOINT = "doh-endpoint"
PORT_NOT_ALLOWED = "port-not-allowed"
ADDRESS_LITERAL = "address-literal"
ADDRESS_GUARD = "address-guard"
BAD_NAME = "bad-name"
BAD_PORT = "bad-port"

# Denied by a door, the resolver or the backend.
QUERY_TYPE = "query-type"
TUNNEL_LABEL = "tunnel-label"
TUNNEL_RATE = "tunnel-rate"
LOOKUP_FAILED = "lookup-failed"
MALFORMED = "malformed"
UNSUPPORTED = "unsupported"
HOST_MISMATCH = "host-mismatch"
SNI_MISMATCH = "sni-mismatch"
SNI_MISSING = "sni-missing"
TLS_UNREADABLE = "tls-unreadable"
ECH = "ech"
DEADLINE = "deadline"
LIMIT = "limit"
UNREACHABLE = "unreachable"
REQUEST_NOT_ALLOWED = "request-not-allowed"
REQUEST_DENIED = "request-denied"
REQUEST_METHOD = "request-method"
REQUEST_UNCLEAR = "request-unclear"
NOT_HTTP = "not-http"
CERTIFICATE = "certificate"
CLIENT_TLS = "client-tls"
INSPECTION = "inspection"
SECRET_MISPLACED = "secret-misplaced"  # noqa: S105 (a reason)
SECRET_ANSWER = "secret-answer"  # noqa: S105 (a reason)
BUDGET = "budget"
UDP = "udp"
SOCKET_FAMILY = "socket-family"
UNIX_SOCKET = "unix-socket"
OUTSIDE_WINDOW = "outside-window"
WRONG_DEVICE = "wrong-device"
WINDOW_FULL = "window-full"
PORT_TAKEN = "port-taken"
NOT_PUBLISHED = "not-published"
OWN_LOCALHOST = "own-localhost"
SEATBELT = "seatbelt"
NOT_SHOWN = "not-shown"
MADE_LATER = "made-later"
READ_ONLY = "read-only"
NOT_LISTED = "not-listed"
AUDIT_UNWRITABLE = "audit-unwritable"
INTERNAL = "internal"

# Denied by the user, or because nobody answered.
DENIED_BY_USER = "denied-by-user"
UNANSWERED = "unanswered"

ALLOWING = frozenset({RULE, ONLINE, LOOPBACK, APPROVED, ASK, INSPECTED})
ALL = frozenset(value for name, value in vars().items() if name.isupper() and isinstance(value, str))
