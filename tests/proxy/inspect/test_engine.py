"""The engine's process, as the supervisor starts it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.rig.inspecting import EngineBench, wait_for


def test_it_has_no_environment_no_file_and_no_network(bench: EngineBench) -> None:
    bench.secured()
    worker = bench.worker()
    assert Path(f"/proc/{worker}/environ").read_bytes() == b"" or os.geteuid()
    status = Path(f"/proc/{worker}/status").read_text()
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    if os.geteuid() == 0:
        targets = {os.readlink(each) for each in Path(f"/proc/{worker}/fd").iterdir()}
        assert {each.partition(":")[0] for each in targets} <= {"/dev/null", "socket", "anon_inode"}


def test_it_ends_with_its_client(bench: EngineBench) -> None:
    bench.secured()
    pids = bench.worker(), bench.process.pid
    bench.call(bench.client.close)
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_its_worker_fits_in_sixty_megabytes(bench: EngineBench) -> None:
    held = [bench.secured() for _ in range(20)]
    pages = int(Path(f"/proc/{bench.worker()}/statm").read_text().split()[1])
    assert pages * 4096 < 60_000_000
    assert len(held) == 20
