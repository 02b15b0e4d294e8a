"""The limits of a configuration file are kept by the doors and the log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.inside import attack

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces")]

CROWD = """
import socket
held = [socket.create_connection(("127.0.0.1", 1008)) for _ in range(3)]
answers = []
for each in held:
    each.settimeout(10)
    each.sendall(b"GET http://allowed.test:%d/ HTTP/1.1\\r\\nHost: allowed.test:%d\\r\\n\\r\\n" % (good, good))
    answers.append(each.recv(12).decode())
out["answers"] = sorted(answers)
"""


@pytest.mark.parametrize(
    ("most", "answers"), [(2, ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 503"]), (3, ["HTTP/1.1 200"] * 3)]
)
def test_no_more_connections_than_the_file_allows(netsandbox: Any, origin: Any, most: int, answers: list[str]) -> None:
    good, options = origin
    config = netsandbox.home().path / "limits.toml"
    config.write_text(f"[limits]\nconnections = {most}\n")
    tried = attack(netsandbox, [*options, "--config", str(config)], CROWD, arguments={"good": good.port})
    assert tried.out["answers"] == answers
