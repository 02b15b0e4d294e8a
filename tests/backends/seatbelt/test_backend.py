"""Once the command runs, nothing that it could have written is imported; and on a Mac's Python everything imports.

A Python without what only Linux has is made by taking those names away, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.window import Window

from netsandbox.backends.seatbelt.backend import introduction, is_protected
from tests.rig.mac_log import stand_in

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

ROOT = Path(__file__).parents[3]
PATHS = [str(ROOT / name) for name in ("", "proxy", "dns", "portmap", "interpose")]
# Names that CPython has on Linux and not on macOS, of the modules that we use.
LIKE_A_MAC = """
import _socket, errno, fcntl, os, resource, select, signal, sys
for module, names in {
    os: "O_PATH O_TMPFILE splice SPLICE_F_MOVE SPLICE_F_NONBLOCK SPLICE_F_MORE pipe2 eventfd memfd_create pidfd_open"
        " sched_getaffinity unshare setns copy_file_range posix_fallocate getrandom sched_setaffinity waitid",
    select: "epoll EPOLLIN EPOLLOUT EPOLLERR EPOLLHUP EPOLLRDHUP EPOLLET EPOLLONESHOT EPOLLPRI EPOLL_CLOEXEC",
    _socket: "SOCK_NONBLOCK SOCK_CLOEXEC SO_PEERCRED MSG_CMSG_CLOEXEC MSG_NOSIGNAL AF_NETLINK AF_PACKET AF_VSOCK"
        " SO_DOMAIN SO_PROTOCOL SO_MARK TCP_USER_TIMEOUT TCP_QUICKACK IP_TRANSPARENT SOL_NETLINK",
    fcntl: "F_OFD_SETLK F_OFD_GETLK F_OFD_SETLKW F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS F_SETSIG",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
try:
    import posix
    for name in ("splice", "pipe2", "eventfd", "memfd_create", "pidfd_open", "unshare", "setns"):
        if hasattr(posix, name):
            delattr(posix, name)
except ImportError:
    pass
"""


def run(text: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": ":".join(PATHS)}
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "name",
    [
        "netsandbox.api.sandbox",
        "netsandbox.api.supervise",
        "netsandbox.cli.main",
        "netsandbox.cli.run",
        "netsandbox.cli.ps",
        "netsandbox.cli.ports",
        "netsandbox.cli.stop",
        "netsandbox.cli.audit",
        "netsandbox.cli.explain",
        "netsandbox.cli.dry_run",
        "netsandbox.backends.seatbelt.backend",
    ],
)
def test_it_imports_where_linux_own_names_are_missing(name: str) -> None:
    done = run(LIKE_A_MAC + f"import {name}")
    assert done.returncode == 0, done.stderr


def test_everything_the_supervisor_needs_imports_there() -> None:
    done = run(
        LIKE_A_MAC + "from netsandbox.backends.seatbelt.backend import load_all\nload_all()\n"
        "from netsandbox.backends.seatbelt.mac_system import this_mac\nthis_mac()\nimport netsandbox.cli.run"
    )
    assert done.returncode == 0, done.stderr


def test_after_sealing_a_planted_module_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("print('ran')")
    done = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from netsandbox.backends.seatbelt.backend import SeatbeltBackend as Backend\n"
        "from netsandbox.backends.contract import SessionContext as Context\n"
        "Backend(Context('', None, None, True, None)).seal_imports(None)\n"
        "import planted"
    )
    assert "ran" not in done.stdout
    assert "No module named 'planted'" in done.stderr


def test_where_the_process_is_not_ours_it_goes_on_importing() -> None:
    done = run(
        "from netsandbox.backends.seatbelt.backend import SeatbeltBackend as Backend\n"
        "from netsandbox.backends.contract import SessionContext as Context\n"
        "Backend(Context('', None, None, False, None)).seal_imports(None)\nimport colorsys"
    )
    assert done.returncode == 0, done.stderr


SESSION = """
import os, sys
{mac}
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.policy.policy import Policy
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings
{kqueue}
policy = Policy(allow_domains=["allowed.test"])
system = MacSystem({helper!r}, PolledLoop, PolledExit, lambda clock: frozenset, {log!r})
command = [sys.executable, "-c", {inside!r}]
settings = RunSettings(localhost=LocalhostSettings(strategy={strategy!r}, count=3), mode=policy.mode)
owner = Session(settings, sealed=True, backend=lambda context: SeatbeltBackend(context, system))
status = owner.run(lambda: policy, Command(command, os.environb, (0, 1, 2)))
sys.exit(os.waitstatus_to_exitcode(status))
"""
# A loop and an exit notice that need nothing of Linux: poll(2), and a pipe that ends with a thread's waitpid.
KQUEUE = """
before = set(sys.modules)
import importlib.util, threading
spec = importlib.util.spec_from_file_location("kq", {path!r})
kq = importlib.util.module_from_spec(spec); spec.loader.exec_module(kq)
PolledLoop = kq.PolledLoop
for name in set(sys.modules) - before:  # what only this play needs is there for nobody else
    if not name.startswith("netsandbox"): del sys.modules[name]
class PolledExit:
    def __init__(self, pid):
        self.reader, writer = os.pipe()
        def look():
            import time
            while open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.01)
            os.close(writer)
        import time
        threading.Thread(target=look, daemon=True).start()
    def fileno(self): return self.reader
    def close(self):
        if self.reader >= 0: os.close(self.reader)
        self.reader = -1
"""
INSIDE = """
import base64, os, socket, struct, sys, urllib.parse
url = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
secret = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
def ask(text):
    with socket.create_connection(("127.0.0.1", url.port), 5) as sock:
        sock.sendall(text.encode()); answer = b""
        while data := sock.recv(4096): answer += data
    return answer.decode("latin-1")
head = f"Host: denied.test\\r\\nProxy-Authorization: Basic {secret}\\r\\nConnection: close\\r\\n\\r\\n"
print(ask("GET http://denied.test/ HTTP/1.1\\r\\n" + head).split()[1])
print(ask("CONNECT denied.test:443 HTTP/1.1\\r\\n" + head.replace("denied.test", "denied.test:443")).split()[1])
egress, resolver, token = struct.unpack_from("=HH16s", open(os.environ["NETSANDBOX_PORT_MAP"], "rb").read(), 32)
with socket.create_connection(("127.0.0.1", egress), 20) as sock:
    sock.sendall(bytes((1, 4, 1, 187, 192, 0, 2, 7)) + bytes(12) + token)
    try: print(sock.recv(1))
    except ConnectionResetError: print("reset")
def question(name):
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    return b"\\x12\\x34\\1\\0\\0\\1" + bytes(6) + labels + b"\\0\\0\\1\\0\\1"
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(20)
        for name in ("allowed.test", "denied.test"):
            sock.sendto(question(name), (address, resolver))
            print(sock.recv(512)[3] & 15, end=" ")
    with socket.create_connection((address, resolver), 20) as sock:
        asked = question("allowed.test")
        sock.sendall(len(asked).to_bytes(2, "big") + asked)
        print(sock.recv(512)[-4:-2] == bytes((198, 18)))
import pathlib, time
(log,) = pathlib.Path(os.environ["XDG_STATE_HOME"]).rglob("audit.jsonl")
for _ in range(1000):
    if '"operation":"network-bind"' in log.read_text(): print("refused"); break
    time.sleep(0.02)
"""
REFUSED = 'say(BANNER, refused("node(7) deny(1) network-bind local:*:3000"))\nwhile True: time.sleep(60)'
ANSWERS = "403\n403\nreset\n0 3 True\n0 3 True\nrefused\n"


@pytest.mark.parametrize("strategy", ["fail", "rewire-port"])
def test_a_whole_sealed_session_needs_nothing_that_only_linux_has(
    helper: str, place: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """The real session, doors, log and helper in a Python that lacks epoll, splice, O_PATH and their like."""
    pytest.importorskip("netsandbox_interpose._native")
    words: dict[str, Any] = {
        "mac": LIKE_A_MAC,
        "kqueue": KQUEUE.format(path=str(ROOT / "tests" / "rig" / "polled_queue.py")),
        "helper": helper,
        "strategy": strategy,
        "inside": INSIDE,
        "log": stand_in(place, REFUSED),
    }
    with tempfile.TemporaryDirectory(prefix="ns") as state:  # short: a Mac's sockets have no other way to a deep folder
        monkeypatch.setenv("XDG_STATE_HOME", state)
        done = run(SESSION.format(**words))
        assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
        (log,) = Path(state).rglob("audit.jsonl")
        assert '"internal"' not in log.read_text()


WINDOW = Window(20000, 100, "127.0.0.1")


def test_one_line_says_how_the_session_is_made() -> None:
    assert introduction("rewire-port", WINDOW, "/opt/homebrew/bin/node", opens=True, library=True) == [
        "strategy rewire-port, window 20000-20099; doors for HTTP, SOCKS5 and names on localhost, behind a token;"
        " with the preload library"
    ]
    assert introduction("fail", WINDOW, "", opens=False, library=False) == [
        "strategy fail, window 20000-20099; no doors: nothing is allowed; without the preload library"
    ]


def test_a_program_of_the_system_is_told_to_be_without_the_library() -> None:
    lines = introduction("rewire-port", WINDOW, "/bin/sh", opens=True, library=True)
    assert len(lines) == 2
    assert lines[1].startswith("/bin/sh is a program of the system: macOS starts it without the preload library")
    assert len(introduction("fail", WINDOW, "/bin/sh", opens=True, library=False)) == 1


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        ("/bin/sh", True),
        ("/usr/bin/python3", True),
        ("/sbin/ifconfig", True),
        ("/System/Applications/Calculator.app/Contents/MacOS/Calculator", True),
        ("/usr/local/bin/node", False),
        ("/System/Volumes/Data/Users/me/bin/x", False),
        ("/opt/homebrew/bin/node", False),
        ("/Users/me/bin/sh", False),
        ("/binary", False),
        ("bin/sh", False),
        ("", False),
    ],
)
def test_protected_is_what_lies_in_the_systems_folders(path: str, protected: bool) -> None:
    assert is_protected(path) is protected
