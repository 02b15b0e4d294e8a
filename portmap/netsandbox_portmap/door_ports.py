"""The ports of the supervisor's doors inside a session's network namespace.

The namespace is private, so the ports are constants. All are below 1024: the command has no capability, so it can
neither bind them nor get one as an ephemeral port.
"""

from __future__ import annotations

DNS = 53
MIXED = 1008
TRANSPARENT = 1009
DATAGRAM = 1010
ASKING = 1011  # where the preload library requests ports, in sessions that load it
ALL = (DNS, MIXED, TRANSPARENT, DATAGRAM, ASKING)
PROXY_URL = b"http://127.0.0.1:%d" % MIXED
