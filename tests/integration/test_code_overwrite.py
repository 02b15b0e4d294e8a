"""The supervisor runs no code that its command wrote (H1): a shared object that it has mapped is overwritten in place.

The payload fills all code of `_socket….so` with a slide to instructions that make a file, the canary. Whatever function
of it the supervisor calls next, the canary appears. A plain process with the same interpreter is the twin: there it
does appear, so the payload works.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.rig.account import import_path

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the payload is code of x86_64"),
]

PAYLOAD = r"""
import os, struct, sys
path, canary = sys.argv[1], sys.argv[2].encode() + b"\0"
# lea rdi, [canary]; open(rdi, O_WRONLY | O_CREAT, 0644); exit_group(66)
code = bytes.fromhex("488d3d1d000000be41000000baa4010000b8020000000f05bf42000000b8e70000000f05") + canary
try:
    with open(path, "r+b") as file:
        data = file.read()
        start, size, count = (struct.unpack_from(f"<{f}", data, at)[0] for f, at in (("Q", 32), ("H", 54), ("H", 56)))
        for at in range(start, start + size * count, size):
            kind, flags, offset = struct.unpack_from("<IIQ", data, at)
            length = struct.unpack_from("<Q", data, at + 32)[0]
            if kind == 1 and flags & 1:
                file.seek(offset)
                file.write(b"\x90" * (length - len(code)) + code)
    print("overwritten", flush=True)
except OSError as error:
    print("refused", flush=True)
"""
# The command makes the supervisor use its sockets.
COMMAND = (
    PAYLOAD
    + r"""
import socket
for _ in range(3):
    try:
        with socket.create_connection(("127.0.0.1", 1008), 2) as door:
            door.sendall(b"GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
            print(door.recv(12), flush=True)
    except OSError as error:
        print(error, flush=True)
"""
)
TWIN = "import _socket, sys; print('ready', flush=True); sys.stdin.readline(); _socket.socket().close()"


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole interpreter in a folder that this user can write, as pyenv, uv and conda install it."""
    made = tmp_path_factory.mktemp("interpreter") / "python"
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    source = Path(sys.base_prefix)
    unused = shutil.ignore_patterns("site-packages", "test", "tests", "__pycache__", "idlelib", "ensurepip", "*.a")
    shutil.copytree(source / "lib" / name, made / "lib" / name, ignore=unused, symlinks=True)
    for library in (source / "lib").glob("libpython*.so*"):
        shutil.copy2(library, made / "lib" / library.name, follow_symlinks=False)
    (made / "bin").mkdir()
    shutil.copy2((source / "bin" / name).resolve(), made / "bin" / name)
    if not list(made.rglob("_socket*.so")):
        pytest.skip("this interpreter has its sockets built in")
    return made


def placed(interpreter: Path, place: Path) -> tuple[str, str]:
    """A copy at *place*: the program, and the shared object to overwrite."""
    shutil.copytree(interpreter, place, symlinks=True)
    (program,) = (place / "bin").iterdir()
    (module,) = place.rglob(f"_socket{sysconfig.get_config_var('EXT_SUFFIX')}")
    return str(program), str(module)


@pytest.mark.attack(213)
def test_the_payload_runs_in_a_process_that_nothing_protects(interpreter: Path, tmp_path: Path) -> None:
    program, module = placed(interpreter, tmp_path / "python")
    canary = tmp_path / "canary"
    victim = subprocess.Popen([program, "-S", "-c", TWIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"ready\n"
    done = subprocess.run([sys.executable, "-c", PAYLOAD, module, canary], capture_output=True, text=True, check=True)
    assert done.stdout == "overwritten\n"
    victim.communicate(b"\n", timeout=10)
    assert canary.exists()


@pytest.mark.attack(213)
@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("work/python", ()),
        ("work/python", ("--files", "readable")),
        ("work/python", ("--files", "open")),
        ("home/.pyenv/versions/3", ("--files", "open")),
        ("home/miniforge3", ("--files", "readable", "--allow-write", "{home}")),
        ("home/miniforge3", ("--allow-write", "{home}/miniforge3")),
        ("elsewhere/python", ("--files", "open")),
    ],
)
def test_the_supervisor_runs_nothing_that_its_command_wrote(
    interpreter: Path, tmp_path: Path, place: str, options: tuple[str, ...]
) -> None:
    for name in ("work", "home", "state"):
        (tmp_path / name).mkdir()
    program, module = placed(interpreter, tmp_path / place)
    canary = tmp_path / "home" / "canary"
    words = [word.format(home=tmp_path / "home") for word in options]
    environment = {
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": import_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [program, "-m", "netsandbox", "run", "--no-config", *words, "--"]
    inside = ["/usr/bin/python3", "-c", COMMAND, module, str(canary)]
    run = subprocess.run(
        [*command, *inside],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not canary.exists(), "code of the command ran outside of the sandbox"
    assert run.stdout.startswith("refused\n"), (run.stdout, run.stderr)
    assert run.returncode == 0, run.stderr
