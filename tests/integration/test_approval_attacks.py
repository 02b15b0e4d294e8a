"""A session that asks gives nothing away before the yes: no question leaves, and only the one spelling is a yes."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig.inside import attack

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces")]

PATIENCE = 30
WAITS = """
import socket
print("begun", flush=True)
try:
    with socket.create_connection(("asked.test", PORT), 60) as client:
        client.sendall(b"GET / HTTP/1.1\\r\\nHost: asked.test:PORT\\r\\nConnection: close\\r\\n\\r\\n")
        print("got", client.recv(12), flush=True)
except OSError as error:
    print("refused", flush=True)
"""


@pytest.mark.attack(66)
@pytest.mark.attack(67)
def test_66_67_no_question_of_any_type_leaves_before_the_yes(netsandbox: Any, canary: Any, authority: Any) -> None:
    """Forwarded types neither, though the twin's is; and labels that could carry data are not even asked about."""
    server = canary.http(body=b"reached")
    authority.answer("*.test", "127.0.0.1")
    authority.records("ruled.test", ("TXT", '"twin"'))
    script = """
import base64
def noise():
    return base64.b32encode(os.urandom(39)).decode().lower().rstrip("=").encode()
types = {"A": 1, "CNAME": 5, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "HTTPS": 65, "ANY": 255}
for tcp in (False, True):
    for name, number in types.items():
        ask(b"%s.asked.test" % name.encode(), number, tcp=tcp)
out["noise"] = ask(b"%s.asked.test" % noise())
out["loud"] = [reason(get(b"%s.asked.test" % noise(), port)) for _ in range(3)]
out["silence"] = [reason(get(b"asked.test", port)), socks(b"asked.test", port)]
out["twin"] = ask(b"ruled.test", 16)
"""
    options = ["--ask", "--ask-wait", "1", "--allow-domain", "ruled.test", "--allow-query-type", "TXT"]
    options += ["--allow-query-type", "MX", "--allow-address", f"127.0.0.1:{server.port}"]
    tried = attack(netsandbox, [*options, "--upstream-dns", authority.address], script, arguments={"port": server.port})
    assert tried.out["noise"] == [3, []]
    assert tried.out["loud"] == ["tunnel-label"] * 3
    assert tried.out["silence"][0] == "unanswered"
    assert tried.out["silence"][1] != 0
    assert tried.out["twin"][0] == 0
    assert set(authority.names) == {"ruled.test"}
    assert server.accepts == 0
    assert {record["host"] for record in tried.run.events("approval")} == {"asked.test"}


@pytest.mark.attack(17)
@pytest.mark.attack(185)
def test_17_only_the_one_spelling_of_a_yes_is_a_yes(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.answer("asked.test", "127.0.0.1")
    options = ["--allow-address", f"127.0.0.1:{server.port}", "--upstream-dns", authority.address]
    body = WAITS.replace("PORT", str(server.port))
    running = netsandbox.spawn(
        "run", "--ask", "--ask-wait", "600", *options, "--", netsandbox.python, "-c", body, stdin=-1
    )
    running.read_until(b"begun\n")
    number = _question(netsandbox)
    (control,) = Path(netsandbox.home().state, "netsandbox", "sessions").glob("*/control")
    right = f'{{"op":"approve","id":{number},"scope":"session","ttl":0}}\n'
    wrong = [
        "true\n", "1\n", "yes\n", '{"ok":true}\n', '{"allow":true}\n', f'{{"op":"approve","id":{number}}}\n',
        right.replace("{", "{ "), right.replace(str(number), f'"{number}"'), right.replace(str(number), f"0{number}"),
        right.replace("session", "always"), right.replace('"ttl":0', '"ttl":true'), right.replace("approve", "Approve"),
        right.replace(str(number), str(number + 10000)), right.replace("\n", "\r\n"), right * 2, right[:-1],
    ]  # fmt: skip
    replies = [_said(control, line) for line in wrong]
    assert not any(b"true" in reply for reply in replies), replies
    assert _question(netsandbox) == number
    assert (server.accepts, authority.names) == (0, [])
    assert _said(control, right) == b'{"ok":true}\n'
    running.read_until(b"got b'HTTP/1.1 200'")
    assert running.wait() == 0
    outcomes = [record["outcome"] for record in running.audit if record["event"] == "approval"]
    assert outcomes == ["asked", "approved"]


def _question(netsandbox: Any) -> int:
    """The number of the one that waits."""
    until = time.monotonic() + PATIENCE
    while not (found := json.loads(netsandbox("pending", "--json").stdout)):
        assert time.monotonic() < until
        time.sleep(0.05)
    (question,) = found
    return int(question["id"])


def _said(control: Path, line: str) -> bytes:
    """The reply to *line*, sent whole and followed by the end."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(str(control))
        client.sendall(line.encode())
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            return client.recv(4096)
    return b""
