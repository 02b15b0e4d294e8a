"""A program that we start has what it is handed, whatever numbers that had here, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.backends.seatbelt.spawn import spawn

SAY = "import os; os.write(1, repr({}).encode())"


def said(text: str, tmp_path: Path, *, leads_group: bool = False) -> str:
    with open(tmp_path / "out", "wb") as out, open(os.devnull, "r+b") as nothing:
        words = ("-I", "-S", "-c", SAY.format(text))
        descriptors = (nothing.fileno(), out.fileno(), nothing.fileno())
        pid = spawn(sys.executable, words, descriptors, leads_group=leads_group)
        assert os.waitpid(pid, 0)[1] == 0
    return (tmp_path / "out").read_text().replace(f"{pid}", "itself")


def test_it_has_no_variable_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    assert said("'SECRET' in os.environ", tmp_path) == "False"


def test_it_leads_a_group_of_its_own_or_is_of_ours(tmp_path: Path) -> None:
    assert said("os.getpgrp()", tmp_path, leads_group=True) == "itself"
    assert said("os.getpgrp()", tmp_path) == f"{os.getpgrp()}"


def test_descriptors_may_have_each_others_numbers(tmp_path: Path) -> None:
    """In a process of its own, where 0 and 1 can be exchanged."""
    (tmp_path / "in").write_text("told")
    text = (
        "import os\n"
        "from netsandbox.backends.seatbelt.spawn import spawn\n"
        f"reads = os.open({str(tmp_path / 'in')!r}, os.O_RDONLY)\n"
        f"writes = os.open({str(tmp_path / 'out')!r}, os.O_WRONLY | os.O_CREAT)\n"
        "os.dup2(writes, 0); os.dup2(reads, 1)\n"
        "raise SystemExit(os.waitpid(spawn('/bin/cat', (), (1, 0, 2)), 0)[1])"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60, env={"PYTHONPATH": ":".join(sys.path)})
    assert (tmp_path / "out").read_text() == "told"


def test_no_copy_stays_open_here(tmp_path: Path) -> None:
    with open(os.devnull, "r+b") as nothing:
        free = os.dup(nothing.fileno())
        os.close(free)
        with pytest.raises(FileNotFoundError):
            spawn(str(tmp_path / "none"), (), (nothing.fileno(),) * 3)
        spawned = spawn("/bin/cat", (), (nothing.fileno(),) * 3)
        os.waitpid(spawned, 0)
        again = os.dup(nothing.fileno())
        os.close(again)
    assert again == free
