"""The scene of the doctor's probes leaves nothing behind: no file, no descriptor, no variable."""

from __future__ import annotations

import os

from netsandbox.doctor.scene import Scene


def test_a_scene_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    before = set(os.listdir("/proc/self/fd"))
    with Scene() as scene:
        assert os.environ["XDG_STATE_HOME"].startswith(scene.directory)
    assert os.environ["XDG_STATE_HOME"] == "/somewhere"
    assert os.listdir(tmp_path) == []
    assert set(os.listdir("/proc/self/fd")) == before
