"""The engine imports nothing that was changed after the session began, by whatever name."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from netsandbox_proxy.inspect import unchanged

SCRIPT = """
import os, shutil, sys, time
folder, paths, change = sys.argv[1], sys.argv[2], sys.argv[3]
sys.path[:0] = [folder, *paths.split(":")]
from netsandbox_proxy.inspect.unchanged import import_unchanged
import_unchanged()
time.sleep(0.05)
exec(change)
import planted
print(planted.WORD)
"""
CHANGES = {
    "nothing": "",
    "its other name": "open(folder + '/store', 'w').write('WORD = 2')",
    "its time set back": "open(folder + '/store', 'w').write('WORD = 2'); os.utime(folder + '/planted.py', (1, 1))",
    "a new file": "os.unlink(folder + '/planted.py'); open(folder + '/planted.py', 'w').write('WORD = 2')",
    "an old file in its place": "os.replace(folder + '/other', folder + '/planted.py')",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_module_is_not_imported(tmp_path: Path, change: str) -> None:
    (tmp_path / "planted.py").write_text("WORD = 1")
    (tmp_path / "other").write_text("WORD = 2")
    os.link(tmp_path / "planted.py", tmp_path / "store")
    _pass_a_tick()
    done = _run(tmp_path, CHANGES[change])
    if change == "nothing":
        assert done.stdout == "1\n", done.stderr
    else:
        assert done.stdout == ""
        assert "was changed after the session began" in done.stderr


def test_new_bytecode_is_not_read_but_the_source_is(tmp_path: Path) -> None:
    """Another process may have compiled the module, for the same source; or a command, for another one."""
    (tmp_path / "planted.py").write_text("WORD = 1")
    (tmp_path / "other.py").write_text("WORD = 2")
    _pass_a_tick()
    code = "import py_compile as p, sys; p.compile(sys.argv[1], sys.argv[2])"
    change = f"""
import subprocess
os.utime(folder + "/other.py", ns=(0, os.stat(folder + "/planted.py").st_mtime_ns))
bytecode = folder + "/__pycache__/planted." + sys.implementation.cache_tag + ".pyc"
subprocess.run([sys.executable, "-c", {code!r}, folder + "/other.py", bytecode], check=True)
"""
    done = _run(tmp_path, change)
    assert done.stdout == "1\n", done.stderr


def test_a_changed_shared_object_is_not_loaded(tmp_path: Path) -> None:
    import _ctypes_test

    source = Path(_ctypes_test.__file__)
    target = tmp_path / source.name.replace("_ctypes_test", "_planted")
    target.write_bytes(source.read_bytes())
    _pass_a_tick()
    change = f"os.chmod({str(target)!r}, 0o700)"
    for given, wanted in (("", "dynamic module does not define"), (change, "was changed after the session began")):
        done = _run(tmp_path, f"{given}\nimport _planted")
        assert wanted in done.stderr


def _pass_a_tick() -> None:
    time.sleep(2 * unchanged.TICK / 1e9)


def _run(folder: Path, change: str) -> subprocess.CompletedProcess[str]:
    paths = ":".join(path for path in sys.path if path)
    command = [sys.executable, "-I", "-S", "-B", "-c", textwrap.dedent(SCRIPT), str(folder), paths, change]
    return subprocess.run(command, capture_output=True, text=True, check=False)
