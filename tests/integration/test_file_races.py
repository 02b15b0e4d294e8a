"""Races and side doors to files in the default mode: names that change while they are opened, views of other processes.

Each attack looks for the text of a file of the host that the session must not see, by a way round its own root.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]

SECRET = "canary-3e77"
PYTHON = "/usr/bin/python3"


@pytest.fixture
def secret(netsandbox: Any) -> Path:
    path: Path = netsandbox.home().path / "Documents" / "plan.md"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


def attack(netsandbox: Any, script: str, *arguments: object, options: tuple[str, ...] = ()) -> Any:
    return netsandbox("run", *options, "--", PYTHON, "-c", script, *map(str, arguments))


SWAP = """
import os, sys, tempfile, threading
secret = sys.argv[1]
os.chdir(tempfile.mkdtemp(dir="."))
os.mkdir("real")
open("real/plan.md", "w").write("own")
os.symlink(os.path.dirname(secret), "evil")
os.symlink("real", "name")
stop = False
def swap():
    while not stop:
        for target in ("real", os.path.dirname(secret)):
            os.symlink(target, "next"); os.rename("next", "name")
thread = threading.Thread(target=swap); thread.start()
seen = set()
for _ in range(3000):
    for path in ("name/plan.md", "evil/plan.md", "name/../evil/plan.md"):
        try:
            seen.add(open(path).read())
        except OSError:
            pass
stop = True; thread.join()
print(sorted(seen))
"""


@pytest.mark.attack(146)
def test_links_that_are_exchanged_while_they_are_opened_lead_nowhere(netsandbox: Any, secret: Path) -> None:
    assert attack(netsandbox, SWAP, secret).stdout == "['own']\n"
    shown = attack(netsandbox, SWAP, secret, options=("--allow-read", str(secret.parent)))
    assert SECRET in shown.stdout, "the twin"


ROOTS = """
import os, sys
secret, found = sys.argv[1], []
pids = [name for name in os.listdir("/proc") if name.isdigit()]
for pid in pids:
    for way in (f"/proc/{pid}/root{secret}", f"/proc/{pid}/cwd/../Documents/plan.md"):
        try:
            found.append(open(way).read())
        except OSError:
            pass
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            for way in (f"/proc/{pid}/fd/{number}{secret}", f"/proc/{pid}/fd/{number}/../Documents/plan.md"):
                try:
                    found.append(open(way).read())
                except OSError:
                    pass
    except OSError:
        pass
for number in range(3, 64):
    try:
        found.append(os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        pass
print([text for text in found if not text.startswith("/proc")], len(pids) > 1)
"""


@pytest.mark.attack(123)
def test_roots_working_folders_and_descriptors_of_processes_show_nothing_more(netsandbox: Any, secret: Path) -> None:
    assert attack(netsandbox, ROOTS, secret).stdout == "[] True\n"


INHERITED = """
import os, sys
for number in range(3, 256):
    for name in (".", "plan.md", "../Documents/plan.md"):
        try:
            print(os.read(os.open(name, os.O_RDONLY, dir_fd=number), 100))
        except OSError:
            pass
print("end")
"""


def test_descriptors_of_folders_that_the_caller_left_open_are_not_inherited(netsandbox: Any, secret: Path) -> None:
    home = netsandbox.home()
    (home.work / "look.py").write_text(INHERITED)
    opened = f"exec 9< {secret.parent} 8< {secret};"
    inside = home.plainly(
        ["bash", "-c", f"{opened} {home.identity.python} -m netsandbox run -- {PYTHON} {home.work}/look.py"]
    )
    assert inside.stdout == "end\n", inside.stderr
    twin = home.plainly(["bash", "-c", f"{opened} {PYTHON} {home.work}/look.py"])
    assert SECRET in twin.stdout


CALLS = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
secret = sys.argv[1].encode()
def call(name, *arguments):
    result = libc.syscall(*arguments)
    print(name, "made" if result >= 0 else errno.errorcode[ctypes.get_errno()])
how = struct.pack("<QQQ", os.O_RDONLY, 0, 0)
call("openat2", 437, -100, secret, how, len(how))
folder = os.open(".", os.O_RDONLY)
call("openat2-in-root", 437, folder, b"../../../../../../.." + secret, struct.pack("<QQQ", 0, 0, 0x10), 24)
call("open_tree", 428, -100, b"/", 1)
call("move_mount", 429, -100, b".", -100, b"/mnt", 0)
call("mount", 165 if os.uname().machine == "x86_64" else 40, b"/", b".", None, 4096, None)
call("open_by_handle", 304 if os.uname().machine == "x86_64" else 265, folder, bytes(64), 0)
try:
    os.link(secret, "hard"); print("link made")
except OSError as error:
    print("link", errno.errorcode[error.errno])
try:
    os.link("/etc/passwd", "hard"); print("system-link made")
except OSError as error:
    print("system-link", errno.errorcode[error.errno])
"""


def test_calls_that_open_mount_or_link_reach_nothing_more(netsandbox: Any, secret: Path) -> None:
    found = dict(line.split() for line in attack(netsandbox, CALLS, secret).stdout.splitlines())
    assert found.pop("openat2-in-root") == found.pop("openat2") == "ENOENT"
    assert found.pop("link") == "ENOENT"
    assert found.pop("system-link") in ("EXDEV", "EROFS", "EPERM")
    assert set(found.values()) == {"EPERM"}, found


def test_a_folder_that_the_host_moves_into_the_project_is_the_users_own_doing(netsandbox: Any, secret: Path) -> None:
    """What the host renames within its home during a session does not appear; what it puts into the project does."""
    home = netsandbox.home()
    script = f"echo ready; read line; cat {secret} {home.path}/renamed/plan.md 2>/dev/null; cat shown; echo end"
    session = netsandbox.spawn("run", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    session.read_until(b"ready\n")
    secret.parent.rename(home.path / "renamed")
    (home.work / "shown").write_text("shown\n")
    session.process.stdin.write(b"\n")
    session.process.stdin.flush()
    assert session.read_until(b"end\n") == b"shown\nend\n"
