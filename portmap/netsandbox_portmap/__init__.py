"""Ports of the host that stand for ports of a session; see ../README.md.

Here are the names of the network strategies, and the ports of the doors. A strategy is what the host sees of a
session's localhost. Its name is spelled only here: a misspelled one in a comparison would be another strategy.
"""

from __future__ import annotations

ISOLATE = "isolate"
FAIL = "fail"
REWIRE_DEVICE = "rewire-device"
REWIRE_PORT = "rewire-port"
STRATEGIES = (ISOLATE, FAIL, REWIRE_DEVICE, REWIRE_PORT)
MAC_STRATEGIES = (FAIL, REWIRE_DEVICE, REWIRE_PORT)  # all programs of macOS share one localhost, so none is isolated

# The ports of the supervisor's doors inside a session's network namespace, which is private, so they are constants. All
# are below 1024: the command has no capability, so it can neither bind them nor get one as an ephemeral port.
DNS_PORT = 53
MIXED_PORT = 1008
TRANSPARENT_PORT = 1009
DATAGRAM_PORT = 1010
REQUESTS_PORT = 1011  # where the preload library requests ports, in sessions that load it
DOOR_PORTS = (DNS_PORT, MIXED_PORT, TRANSPARENT_PORT, DATAGRAM_PORT, REQUESTS_PORT)
PROXY_URL = b"http://127.0.0.1:%d" % MIXED_PORT


def default_strategy(system: str) -> str:
    """*system* is a value of `sys.platform`."""
    return REWIRE_PORT if system == "darwin" else ISOLATE


MAX_NAME = 40
NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def is_name(text: str) -> bool:
    """Whether *text* can be the name of a session; `session_name` has the rules."""
    return (
        0 < len(text) <= MAX_NAME
        and NAME_LETTERS.issuperset(text)
        and text[0] != "-"
        and text[-1] != "-"
        and text[2:4] != "--"
        and not text.isdigit()
        and text != "localhost"
    )
