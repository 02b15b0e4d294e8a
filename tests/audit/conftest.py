"""A finished log to read, and its lines to tamper with."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.audit.log import AuditLog

SESSION = "20250131T120000000-0123456789abcdef"


def write_session(path: Path, session: str = SESSION) -> None:
    log = AuditLog.open(str(path), session)
    assert log.write("session.start", command="npm", args=2)
    assert log.write("dns", verdict="deny", reason="not-allowed", host="evil.test", count=7)
    assert log.write("egress", verdict="allow", reason="rule", host="example.com", port=443, address="203.0.113.7")
    assert log.write("egress.end", host="example.com", port=443, bytes_up=10, bytes_down=2000, ms=5, outcome="closed")
    assert log.write(
        "egress", verdict="deny", reason="not-allowed", host="evil.test", port=443, hint="--allow-domain evil.test"
    )
    assert log.write("udp", verdict="deny", reason="udp", address="203.0.113.9", port=443, count=3)
    assert log.write("session.end", status=0, ms=12)
    log.close()


@pytest.fixture
def finished_log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    write_session(path)
    return path
