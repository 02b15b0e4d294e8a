"""The list of denials that a program inside is told of: each attempt, with its processes, and never in the way."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit import denial_file
from netsandbox.audit.denial_file import DenialFile
from netsandbox.errors import HostError

DENIED = {"verdict": "deny", "host": "example.org", "port": 443, "reason": "not-allowed", "hint": "--allow-domain x"}


def gone(pid: int) -> list[int]:
    raise OSError(3, "No such process")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_each_denial_is_a_line_with_its_processes(tmp_path: Path) -> None:
    told: list[object] = []
    file = DenialFile(str(tmp_path / "denials"), lambda pid: [pid, 1], lambda event, fields: told.append(event))
    file("egress", {**DENIED, "pid": 7})
    file("egress", {**DENIED, "pid": 7})  # repeats too
    file("udp", {"address": "192.0.2.1", "port": 9, "reason": "udp"})
    file("file", {"path": "/etc/shadow", "reason": "hidden"})  # no attempt to reach something
    file("dns", {"host": "example.org", "count": 9})  # comes by `add`, one by one
    file.add({"host": "é\udcff\n", "reason": "bad-name"}, 8)
    file.close()
    first, second, datagram, query = lines(tmp_path / "denials")
    flag = "--allow-domain x"
    assert first == {"host": "example.org", "port": 443, "reason": "not-allowed", "flag": flag, "pids": [7, 1]}
    assert second == first
    assert (datagram["host"], datagram["pids"], query["host"], query["pids"]) == ("192.0.2.1", [], "é\udcff\n", [8, 1])
    assert told == ["egress", "egress", "udp", "file", "dns"]
    assert (tmp_path / "denials").stat().st_mode & 0o777 == 0o600


def test_nothing_that_fails_is_in_the_way(tmp_path: Path) -> None:
    file = DenialFile(str(tmp_path / "denials"), gone)
    file("egress", {**DENIED, "pid": 7})
    assert lines(tmp_path / "denials")[0]["pids"] == []
    file.close()
    os.close(os.open("/dev/null", os.O_RDONLY))
    file("egress", DENIED)  # the descriptor is gone, as on a full disk
    assert len(lines(tmp_path / "denials")) == 1


def test_the_list_has_an_end_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denial_file, "MAX_LINES", 3)
    file = DenialFile(str(tmp_path / "denials"), gone)
    for _ in range(5):
        file("egress", DENIED)
    file.close()
    assert [line["host"] for line in lines(tmp_path / "denials")] == ["example.org", "example.org", None]


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("/dev/null")])
def test_only_a_new_file_is_written(tmp_path: Path, make: Any) -> None:
    """INV-8: at a path where something is, the command could have put it there."""
    make(tmp_path / "denials")
    with pytest.raises(HostError, match="give a new path"):
        DenialFile(str(tmp_path / "denials"), gone)
