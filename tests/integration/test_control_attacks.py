"""What sessions share on the host: control sockets, names, the lock file of windows (INV-8).

From inside they do not exist; from beside, garbage and other accounts change nothing; and when a supervisor is killed
the kernel gives everything back.
"""

from __future__ import annotations

import json
import os
import random
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig import ports
from tests.rig.localhost import eventually, heard, sessions, status_of, window_of

pytestmark = pytest.mark.usefixtures("user_namespaces")

LOCKS = Path("/tmp/netsandbox-ports")
SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", 3000))
print("serving", flush=True)
while True:
    with server.accept()[0] as visitor:
        visitor.sendall(sys.argv[1].encode())
"""
INSIDE = """
import errno, fcntl, json, os, socket, stat, struct, sys
def tried(act, *words, **named):
    try:
        act(*words, **named)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"
def connect(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
def locked(path, flags):
    fd = os.open(path, flags)
    fcntl.fcntl(fd, 37, struct.pack("hhqqi0q", fcntl.F_WRLCK, 0, 0, 0, 0))
out = {}
"""


def serving(netsandbox: Any, name: str, *options: str, **more: Any) -> Any:
    """A session that gives its name to whoever connects to its port 3000."""
    command = (netsandbox.python, "-c", SERVER, name)
    running = netsandbox.spawn("run", "-q", "--name", name, *options, "--", *command, **more)
    running.read_until(b"serving\n")
    return running


def control_of(status: dict[str, Any]) -> str:
    return os.path.join(os.path.dirname(status["audit_log"]), "control")


def assert_answers(netsandbox: Any, name: str) -> None:
    """The session is alive, answers, and serves."""
    status = eventually(lambda: next((s for s in sessions(netsandbox) if s["name"] == name and s["ports"]), None))
    (port,) = status["ports"]
    assert heard(port["host_address"], port["host_port"]) == name.encode()


@pytest.mark.ordinary_user
@pytest.mark.attack(171)
@pytest.mark.attack(167)
def test_a_session_finds_no_control_socket_not_even_a_later_one(netsandbox: Any, short_tmp: Path) -> None:
    """Its own, its neighbour's, and one that comes later; with Unix sockets allowed, so that it can try."""
    serving(netsandbox, "neighbour")
    script = f"""{INSIDE}
print("ready", flush=True)
for path in json.loads(input()):
    out[path] = [tried(os.stat, path), tried(connect, path), tried(os.listdir, os.path.dirname(path))]
    out[path] += [tried(connect, "/proc/1/root" + path), tried(os.unlink, path)]
print(json.dumps(out), flush=True)
"""
    own = ("--name", "curious", "--allow-unix-socket", str(short_tmp / "other.sock"))
    running = netsandbox.spawn("run", *own, "--", netsandbox.python, "-c", script, stdin=subprocess.PIPE)
    running.read_until(b"ready\n")
    serving(netsandbox, "late")
    places = [control_of(status_of(netsandbox, name)) for name in ("neighbour", "curious", "late")]
    assert all(os.path.exists(place) for place in places)
    running.process.stdin.write(json.dumps(places).encode() + b"\n")
    running.process.stdin.flush()
    found = json.loads(running.read_until(b"\n"))
    assert set(found) == set(places)
    for answers in found.values():
        assert set(answers) <= {"ENOENT", "EACCES", "EPERM", "EROFS", "ELOOP"}
    for name in ("neighbour", "late"):
        assert_answers(netsandbox, name)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.attack(171)
@pytest.mark.attack(182)
def test_a_control_socket_is_for_its_owner(netsandbox: Any, ordinary_user: Any) -> None:
    """0600 in a 0700 folder; and should both stand open one day, another account still gets no answer and no stop."""
    serving(netsandbox, "private")
    control = Path(control_of(status_of(netsandbox, "private")))
    assert stat.S_IMODE(control.stat().st_mode) == 0o600
    assert stat.S_IMODE(control.parent.stat().st_mode) == 0o700
    assert control.stat().st_uid == netsandbox.identity.uid
    assert ask(control, b'{"op":"status"}\n', netsandbox.identity).startswith(b'{"v":1')
    if netsandbox.identity.uid != 0 or ordinary_user.uid == 0:
        return  # root is let in everywhere, and an ordinary account cannot become another
    assert ask(control, b'{"op":"stop"}\n', ordinary_user) == b"EACCES"
    for folder in control.parents:
        if folder == Path("/tmp"):
            break
        folder.chmod(0o755)
    control.chmod(0o666)
    for request in (b'{"op":"status"}\n', b'{"op":"stop"}\n'):
        assert ask(control, request, ordinary_user) in (b"", b"ECONNRESET", b"EPIPE")
    assert_answers(netsandbox, "private")


ASK = """
import errno, socket, sys
client = socket.socket(socket.AF_UNIX)
client.settimeout(20)
try:
    client.connect(sys.argv[1])
    client.sendall(sys.argv[2].encode())
    print(client.recv(1 << 16).decode(), end="")
except OSError as error:
    print(errno.errorcode[error.errno], end="")
"""


def ask(control: Path, request: bytes, identity: Any) -> bytes:
    """What IDENTITY hears on a control socket."""
    command = [identity.python, "-c", ASK, str(control), request.decode()]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd="/", timeout=60, **identity.popen).stdout


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(185)
def test_garbage_on_a_control_socket_changes_nothing(netsandbox: Any) -> None:
    """Partial lines, lengths, depth, wrong types, other encodings, many silent clients; then the session answers."""
    serving(netsandbox, "steady")
    control = control_of(status_of(netsandbox, "steady"))
    choice = random.Random(185)
    noise = [b"", b"\n", b"\0" * 4096, b"\xff\xfe" * 100, b"\xff\xff\xff\xff" + b"A" * 100, b"[" * 100_000]
    noise += [b'{"op":"stop"', b'{"op":"stop"} \n', b'{"op":"STOP"}\n', b'{"op": "stop"}\n', b'{"op":["stop"]}\n']
    noise += [b'"stop"\n', b"stop\n", b'{"op":"stop"}\n{"op":"stop"}\n', b'{"op":"status"}\n' * 9]
    noise += [b'{"op":"open","name":"../../etc"}\n', b'{"op":"publish","address":"0.0.0.0"}\n']
    noise += [choice.randbytes(choice.randrange(1, 8192)) for _ in range(50)]
    silent = []
    for data in noise:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        try:
            client.connect(control)
            client.sendall(data)
        except OSError:  # it had heard enough, or its queue is full
            client.close()
            continue
        silent.append(client)
    assert len(silent) > 20
    assert_answers(netsandbox, "steady")
    for client in silent:
        client.close()
    assert_answers(netsandbox, "steady")


HOSTILE = ("../x", "..", "/etc/passwd", "", " ", "*", "a\nb", "\x1b[31mred", "$(id)", "`id`", "-", "x" * 5000, "\udcff")


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(190)
@pytest.mark.parametrize("verb", ["stop", "open", "ports"])
def test_hostile_names_stop_and_open_nothing(netsandbox: Any, verb: str) -> None:
    serving(netsandbox, "steady")
    browser = netsandbox.home().path / "opened"
    for word in HOSTILE:
        run = netsandbox(verb, "--", word, env={"BROWSER": f"touch {browser} %s"})
        assert run.returncode != 0, word
        assert run.stdout == ""
        assert run.stderr.startswith("netsandbox: "), (word, run.stderr)
        assert run.stderr.count("\n") == 1
        assert run.stderr.strip("\n").isprintable()
    assert not browser.exists()
    assert_answers(netsandbox, "steady")
    assert netsandbox("stop", "steady").returncode == 0
    assert sessions(netsandbox) == []


@pytest.mark.attack(190)
@pytest.mark.parametrize("name", [*HOSTILE, "localhost", "3000", "xn--abc", "a.b", "UPPER", "-x", "x-"])
def test_a_session_is_never_called_anything_hostile(netsandbox: Any, name: str) -> None:
    run = netsandbox("run", f"--name={name}", "--", "echo", "ran")
    assert run.returncode != 0
    assert run.stdout == ""
    assert run.stderr.strip("\n").isprintable()


@pytest.mark.open_files
def test_inside_a_session_no_session_can_be_seen_or_stopped(netsandbox: Any) -> None:
    serving(netsandbox, "outside")
    tool = f"{netsandbox.python} -m netsandbox"
    run = netsandbox("run", "--", "sh", "-c", f"{tool} ps --json; {tool} stop --all; {tool} stop outside; echo $?")
    assert run.stdout.split() == ["[]", "2"]
    assert_answers(netsandbox, "outside")


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(106)
@pytest.mark.attack(169)
@pytest.mark.parametrize("strategy", ["isolate", "fail"])
def test_the_lock_file_of_windows_is_out_of_reach(netsandbox: Any, strategy: str) -> None:
    """Inside it is another file, empty and read-only: it cannot be locked for others, moved, linked or replaced."""
    script = f"""{INSIDE}
path = "{LOCKS}"
out["size"] = os.stat(path).st_size
out["inode"] = [os.stat(path).st_dev, os.stat(path).st_ino]
out["write"] = tried(os.open, path, os.O_RDWR)
out["truncate"] = tried(os.truncate, path, 0)
out["lock"] = tried(locked, path, os.O_RDONLY)
out["chmod"] = tried(os.chmod, path, 0o000)
out["unlink"] = tried(os.unlink, path)
out["rename"] = tried(os.rename, path, path + ".moved")
out["link"] = tried(os.link, path, path + ".linked")
open("mine", "w").close()
out["over"] = tried(os.rename, "mine", path)
out["symlink"] = tried(os.symlink, "mine", path)
out["fifo"] = tried(os.mkfifo, path)
print(json.dumps(out), flush=True)
sys.stdin.read()
"""
    netsandbox("run", "--", "true")
    before = LOCKS.stat()
    options = ("--name", "locker", "--network-strategy", strategy)
    running = netsandbox.spawn("run", *options, "--", netsandbox.python, "-c", script, stdin=subprocess.PIPE)
    out = json.loads(running.read_until(b"\n"))
    after = LOCKS.stat()
    assert (after.st_ino, after.st_mode, after.st_uid) == (before.st_ino, before.st_mode, before.st_uid)
    assert out.pop("inode") != [before.st_dev, before.st_ino]
    assert out.pop("size") == 0
    refusals = {"EROFS", "EACCES", "EBUSY", "EXDEV", "EEXIST", "EPERM", "EBADF"}
    assert set(out.values()) <= refusals, out
    serving(netsandbox, "second", "--network-strategy", "isolate")
    windows = [set(window_of(status_of(netsandbox, name))) for name in ("locker", "second")]
    assert not windows[0] & windows[1]
    assert_answers(netsandbox, "second")


SHARED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
with open("/dev/shm/nsb-shared", "w") as memory:
    memory.write("secret")
queue = libc.mq_open(b"/nsb-shared", os.O_CREAT | os.O_RDWR, 0o666, None)
print("made" if queue >= 0 else "no queue", os.listdir("/dev/shm"), flush=True)
input()
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(169)
def test_shared_memory_and_queues_by_name_are_a_session_s_own(netsandbox: Any) -> None:
    """POSIX objects live on mounts of the session: a neighbour opens the same names and finds nothing."""
    running = netsandbox.spawn("run", "--", netsandbox.python, "-c", SHARED, stdin=subprocess.PIPE)
    assert running.read_until(b"\n") == b"made ['nsb-shared']\n"
    look = "import os; print(os.listdir('/dev/shm'), os.path.isdir('/dev/mqueue') and os.listdir('/dev/mqueue'))"
    neighbour = netsandbox("run", "--", netsandbox.python, "-c", look)
    assert "nsb-shared" not in neighbour.stdout
    assert neighbour.returncode == 0
    assert not Path("/dev/shm/nsb-shared").exists()
    assert not Path("/dev/mqueue/nsb-shared").exists()


@pytest.mark.ordinary_user
@pytest.mark.attack(170)
def test_a_session_that_kills_everything_kills_itself(netsandbox: Any) -> None:
    """Every process it may signal, its process group, its supervisor by number: the neighbour serves on."""
    serving(netsandbox, "survivor")
    supervisor = status_of(netsandbox, "survivor")["pid"]
    script = """
import os, signal, sys
for pid in (int(sys.argv[1]), os.getppid(), 1):
    try:
        os.kill(pid, signal.SIGKILL)
        print("signalled" if pid > 1 else "unharmed", flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
os.kill(-1, signal.SIGKILL)
print("still here")
"""
    run = netsandbox("run", "--", netsandbox.python, "-c", script, str(supervisor))
    assert run.stdout.split("\n")[0] == "ProcessLookupError"
    assert_answers(netsandbox, "survivor")


PLANTED = """
import sys
from netsandbox_portmap import reservation
reservation.HOST_LOCKS = sys.argv.pop(1)
from netsandbox.cli.main import main
main()
"""


@pytest.mark.ordinary_user
@pytest.mark.attack(106)
@pytest.mark.parametrize("kind", ["symlink", "dangling", "fifo", "folder"])
def test_a_lock_file_that_was_planted_harms_nobody(netsandbox: Any, short_tmp: Path, kind: str) -> None:
    """Another user of /tmp was there first: sessions start, and no file of ours is covered, written or changed."""
    home, place, victim = netsandbox.home(), short_tmp / "ports", short_tmp / "victim"
    victim.write_text("precious")
    victim.chmod(0o644)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(victim if kind == "symlink" else short_tmp / "nowhere")
    command = [netsandbox.python, "-c", PLANTED, str(place), "run", "--files", "open", "--", "cat", str(victim)]
    environment = home.environment(None)
    done = subprocess.run(
        command, env=environment, cwd=home.work, capture_output=True, timeout=60, check=False, **home.identity.popen
    )
    assert (done.returncode, done.stdout) == (0, b"precious"), done.stderr
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
    assert not (short_tmp / "nowhere").exists()


def said(port: int) -> bytes:
    """What is served at PORT of the host; nothing while it is not yet published."""
    try:
        return heard("127.0.0.1", port)
    except ConnectionRefusedError:
        return b""


@pytest.mark.ordinary_user
@pytest.mark.attack(204)
@pytest.mark.attack(206)
@pytest.mark.parametrize("strategy", ["isolate", "fail"])
def test_a_killed_supervisor_gives_everything_back(netsandbox: Any, leftovers: Any, strategy: str) -> None:
    """Ten times for each strategy, at any moment: then the same name, window and host port can be had again at once."""
    base = ports.free_window(20)
    options = ["-q", "--name", "mortal", "--network-strategy", strategy, "--listening-base-port", str(base)]
    options += ["--listening-port-count", "20"]
    if strategy == "isolate":
        options += ["--publish", f"3000:{base + 3}"]
    server = SERVER.replace("3000", "3000" if strategy == "isolate" else str(base + 3))
    stubborn = 'trap "" TERM HUP INT; (setsid sleep 60 &); exec "$@"'
    command = ("sh", "-c", stubborn, "sh", netsandbox.python, "-c", server, "mortal")
    choice = random.Random(os.urandom(8))
    for turn in range(10):
        running = netsandbox.spawn("run", *options, "--", *command)
        if turn % 2:
            running.read_until(b"serving\n")
            assert eventually(lambda: said(base + 3)) == b"mortal"
        time.sleep(choice.uniform(0, 0.2))
        watch = leftovers.watch(running)
        running.process.kill()
        running.wait()
        eventually(lambda watch=watch: not watch.remains())
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", base + 3))
    assert sessions(netsandbox) == []
    assert not list(netsandbox.home().state.rglob("control"))
    last = netsandbox("run", *options, "--", "echo", "ran")
    assert last.stdout == "ran\n", last.stderr
