"""One line a denial: what, why, to whom, and what would help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.denial_text import LONGEST, denial_text

MORE = "`netsandbox explain --last` says more"
GOLDEN = [
    (
        "egress",
        {"host": "a.test", "port": 443, "reason": "not-allowed", "exe": "/bin/curl", "hint": "--allow-domain a.test"},
        "denied a.test:443 (not-allowed) to curl; allow it with --allow-domain a.test",
    ),
    (
        "egress",
        {"host": "2001:db8::1", "port": 22, "reason": "address-literal", "hint": "--allow-address [2001:db8::1]:22"},
        "denied [2001:db8::1]:22 (address-literal); allow it with --allow-address [2001:db8::1]:22",
    ),
    (
        "egress",
        {"host": "a.test", "port": 443, "reason": "lookup-failed"},
        "denied a.test:443 (lookup-failed); it is allowed but was not reached; check the name and the host's own"
        " network",
    ),
    ("egress", {"reason": "malformed", "detail": "no request"}, f"denied no request (malformed); {MORE}"),
    (
        "dns",
        {"host": "a.test", "reason": "offline", "hint": "--allow-domain a.test"},
        "denied looking up a.test (offline); allow it with --allow-domain a.test",
    ),
    ("udp", {"address": "192.0.2.1", "port": 123, "reason": "udp"}, f"denied UDP to 192.0.2.1:123 (udp); {MORE}"),
    (
        "socket",
        {"family": "unix", "type": "stream", "reason": "unix-socket", "exe": "/bin/ls"},
        f"denied a socket of the kind unix/stream (unix-socket) to ls; {MORE}",
    ),
    (
        "socket",
        {"path": "/run/d.sock", "reason": "unix-socket", "hint": "--allow-unix-socket /run/d.sock"},
        "denied the socket /run/d.sock (unix-socket); allow it with --allow-unix-socket /run/d.sock",
    ),
    (
        "seatbelt",
        {"operation": "file-read-data", "path": "/etc/x", "reason": "seatbelt"},
        f"denied file-read-data /etc/x (seatbelt); {MORE}",
    ),
    (
        "bind",
        {"address": "127.0.0.1", "port": 80, "reason": "wrong-device"},
        f"denied binding 127.0.0.1:80 (wrong-device); {MORE}",
    ),
    ("policy", {"reason": "internal"}, f"denied policy (internal); {MORE}"),
]


@pytest.mark.parametrize(("event", "fields", "text"), GOLDEN)
def test_people_read_what_why_and_what_to_do(event: str, fields: dict[str, object], text: str) -> None:
    assert denial_text(event, fields) == text


NAMES = ("host", "reason", "exe", "hint", "path", "detail", "operation", "target", "address", "family", "type")


@pytest.mark.attack(172)
@given(
    st.sampled_from(["egress", "dns", "udp", "socket", "seatbelt", "bind", "x\x1b[2J"]),
    st.dictionaries(st.sampled_from(NAMES), st.text(max_size=600)),
)
def test_172_no_field_can_write_to_the_terminal(event: str, fields: dict[str, object]) -> None:
    shown = denial_text(event, fields)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= LONGEST + 3
