"""Watching files for `learn` weakens nothing: whatever else a session refuses gets the same answer as in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rig.unix_probe import results, script

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

# Each is tried while files are opened as fast as can be, so that both kinds of calls wait for an answer at once.
PROBES = """
import ctypes, fcntl, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "done"
over = threading.Event()
def busy():
    while not over.is_set():
        open("/etc/passwd").close()
thread = threading.Thread(target=busy)
thread.start()
def made(family, kind=socket.SOCK_STREAM, protocol=0):
    socket.socket(family, kind, protocol).close()
    return "made"
for _ in range(20):
    report(good=lambda: talk(GOOD), bad=lambda: talk(BAD), abstract=lambda: talk("\\0nsb"), bind=lambda: bound(BAD),
           packet=lambda: made(socket.AF_PACKET), raw=lambda: made(socket.AF_INET, socket.SOCK_RAW, 1),
           vsock=lambda: made(40), datagram=lambda: made(socket.AF_UNIX, socket.SOCK_DGRAM),
           tcp=lambda: made(socket.AF_INET), unshare=lambda: call(libc.unshare, 0x10000000),
           mount=lambda: call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None),
           uring=lambda: call(libc.syscall, 425, 8, ctypes.create_string_buffer(200)),
           terminal=lambda: fcntl.ioctl(0, 0x5412, b"x"), port=lambda: made_at(80),
           secret=lambda: os.listdir(os.path.expanduser("~/.ssh")))
over.set()
thread.join()
"""


@pytest.mark.attack(19)
@pytest.mark.attack(115)
def test_19_learning_changes_no_answer_but_tells_of_files(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    good, bad = canary.unix(short_tmp / "good.sock", echo=True), canary.unix(short_tmp / "bad.sock", echo=True)
    places = f"GOOD, BAD = {good.path!r}, {bad.path!r}\n"
    made_at = "def made_at(port):\n    with socket.socket() as sock:\n        sock.bind(('127.0.0.1', port))\n"
    command = ("--", netsandbox.python, "-c", script(places + made_at + PROBES))
    option = ("--allow-unix-socket", good.path)
    plain = results(netsandbox("run", "--online", *option, *command))
    learned = netsandbox("learn", *option, *command)
    assert results(learned) == plain
    assert plain.pop("good") == "hello"
    assert plain.pop("tcp") == "made"
    assert plain.pop("secret") in ([], "ENOENT")
    assert (plain.pop("abstract"), plain.pop("bind")) == ("ECONNREFUSED", "EADDRINUSE")
    assert set(plain.values()) <= {"EACCES", "EPERM", "ESOCKTNOSUPPORT", "ENOSYS"}, plain
    assert (bad.accepts, good.accepts) == (0, 40)
    denied = {record["reason"] for record in learned.events("socket", verdict="deny")}
    assert denied == {"unix-socket", "socket-family"}
