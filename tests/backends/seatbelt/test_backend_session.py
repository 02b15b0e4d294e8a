"""A whole session of the macOS backend on Linux, with Landlock where Seatbelt would be."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from netsandbox_interpose.library import LIBRARY, PRELOAD
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.errors import CommandError, HostError, UsageError
from netsandbox.frozen import copy_with
from netsandbox.paths import WRITTEN
from netsandbox.policy.file_rules import FileRules
from netsandbox.policy.policy import Policy
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings
from tests.rig import ports

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

PROBE = """
import errno, socket, sys
def attempt(address, port, family=socket.AF_INET):
    sock = socket.socket(family)
    sock.settimeout(20)
    try:
        sock.connect((address, port))
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "connected"
"""
BIND = """
import errno, os, socket
def bind(port, address="127.0.0.1"):
    sock = socket.socket()
    try:
        sock.bind((address, port))
        sock.listen()
    except OSError as error:
        return errno.errorcode[error.errno]
    kept.append(sock)
    return "bound"
kept = []
base = int(os.environ["LISTENING_BASE_PORT"])
"""
FETCH = """
import os, socket, urllib.parse, base64
url = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
def ask(host, password=url.password, address="127.0.0.1"):
    with socket.create_connection((address, url.port), 20) as sock:
        secret = base64.b64encode(f"{url.username}:{password}".encode()).decode()
        head = f"GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\nProxy-Authorization: Basic {secret}\\r\\n"
        sock.sendall((head + "Connection: close\\r\\n\\r\\n").encode())
        answer = b""
        while data := sock.recv(4096):
            answer += data
    return answer.decode().split(" ")[1]
"""

BIND_CALL = {"x86_64": 49, "aarch64": 200}


def local(strategy: str = "fail", **more: Any) -> LocalhostSettings:
    return LocalhostSettings(strategy=strategy, **{"count": 4, **more})


def test_the_commands_output_and_status_are_its_own(mac: Any) -> None:
    """INV-9."""
    ended = mac("sh", "-c", "echo hello; exit 7")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "hello\n", "")
    assert [record["event"] for record in ended.records] == ["session.start", "session.end", "audit.seal"]
    assert ended.of("session.start")[0]["backend"] == "seatbelt"
    assert ended.of("session.end")[0]["status"] == 7


def test_the_command_keeps_the_limits_that_it_had(mac: Any) -> None:
    """The supervisor wants more descriptors; the command is not to notice."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        ended = mac("sh", "-c", "ulimit -S -n", policy=Policy(allow_domains=["allowed.test"]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert ended.stdout == "512\n"


def test_a_signal_that_kills_the_command_is_its_end(mac: Any) -> None:
    ended = mac("sh", "-c", "kill -TERM $$")
    assert ended.returncode == -15
    assert ended.of("session.end")[0]["status"] == 143


def test_an_end_of_which_the_kernel_says_nothing_is_noticed_at_the_start(
    mac: Any, system: MacSystem, place: Path
) -> None:
    """It ended between exec and our question; a kqueue may then stay silent."""

    class Silent:
        def __init__(self, pid: int) -> None:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            self.reader, self.writer = os.pipe()

        def fileno(self) -> int:
            return self.reader

        def close(self) -> None:
            os.close(self.reader)
            os.close(self.writer)

    silent = copy_with(system, exit_of=Silent)
    owner = Session(RunSettings(localhost=local()), sealed=False, backend=lambda c: SeatbeltBackend(c, silent))
    with open(os.devnull, "r+b") as nothing:
        command = Command(["sh", "-c", "exit 5"], os.environb, (nothing.fileno(),) * 3)
        status = owner.run(Policy, command)
    assert os.waitstatus_to_exitcode(status) == 5


def test_the_door_is_the_only_way_out(mac: Any, python: Any, origin: int) -> None:
    """The kernel refuses the server itself; the door reaches it when the policy allows, and says 403 when not."""
    policy = Policy(allow_domains=[f"localhost:{origin}"], allow_addresses=[f"127.0.0.1:{origin}"])
    text = PROBE + FETCH + f"print(attempt('127.0.0.1', {origin}), ask('localhost:{origin}'), ask('denied.test'))"
    ended = mac(*python(text), policy=policy)
    assert ended.stdout == "EACCES 200 403\n", ended.stderr
    allowed = [record for record in ended.of("egress") if record["verdict"] == "allow"]
    denied = [record for record in ended.of("egress") if record["verdict"] == "deny"]
    assert [record["port"] for record in allowed] == [origin]
    assert [record["host"] for record in denied] == ["denied.test"]


def test_the_door_stands_on_both_addresses_of_localhost(mac: Any, python: Any) -> None:
    ended = mac(
        *python(FETCH + "print(ask('denied.test'), ask('denied.test', address='::1'))"),
        policy=Policy(allow_domains=["allowed.test"]),
    )
    assert ended.stdout == "403 403\n", ended.stderr


@pytest.mark.attack(182)
@pytest.mark.attack(184)
def test_the_door_asks_for_the_sessions_token_and_no_log_has_it(mac: Any, python: Any) -> None:
    text = FETCH + "print(ask('allowed.test', password='0' * 32)); print(url.password)"
    ended = mac(*python(text), policy=Policy(allow_domains=["allowed.test"]))
    status, token = ended.stdout.split()
    assert status == "407"
    assert len(token) == 32
    found = [path for path in ended.state.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert found == []


def test_each_session_has_a_token_of_its_own(mac: Any, python: Any) -> None:
    policy = Policy(allow_domains=["allowed.test"])
    assert len({mac(*python(FETCH + "print(url.password)"), policy=policy).stdout for _ in range(2)}) == 2


def test_where_nothing_is_allowed_there_is_no_door(mac: Any) -> None:
    ended = mac("sh", "-c", 'echo "$HTTP_PROXY$http_proxy$ALL_PROXY"', env={"HTTP_PROXY": "http://proxy.test:3128"})
    assert ended.stdout == "\n"


def test_without_proxy_variables_none_are_set(mac: Any) -> None:
    ended = mac("sh", "-c", 'echo "$HTTP_PROXY$http_proxy"', policy=Policy(allow_domains=["a.test"]), proxy_env=False)
    assert ended.stdout == "\n"


def test_with_fail_only_the_window_can_be_listened_on(mac: Any, python: Any) -> None:
    """INV-7: the kernel says so, no library is asked."""
    ended = mac(*python(BIND + "print(bind(base), bind(base + 3), bind(base + 4), bind(base - 1))"))
    assert ended.stdout == "bound bound EACCES EACCES\n", ended.stderr


def test_with_rewire_port_a_program_asks_for_3000_and_has_a_port_of_the_window(mac: Any, python: Any) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    text = BIND + (
        "print(bind(3000), kept[0].getsockname()[1])\n"
        "print(any(line.split()[1].endswith(f':{port:04X}') for port in range(base, base + 4)"
        " for line in open('/proc/net/tcp').readlines()[1:]))\n"
        "print(socket.create_connection(('127.0.0.1', 3000), 5).getpeername()[1])"
    )
    ended = mac(*python(text), localhost=local("rewire-port"))
    assert ended.stdout == "bound 3000\nTrue\n3000\n", ended.stderr
    assert [record["from"] for record in ended.of("rewrite")] == ["127.0.0.1:3000"]


def test_past_the_library_rewire_port_refuses(mac: Any, python: Any) -> None:
    """INV-7: a system call that no library sees is refused by the kernel, never given the host's own port."""
    pytest.importorskip("netsandbox_interpose._native")
    text = (
        "import ctypes, errno, socket\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "sock = socket.socket()\n"
        "address = socket.AF_INET.to_bytes(2, 'little') + (3000).to_bytes(2, 'big') + b'\\x7f\\0\\0\\1' + bytes(8)\n"
        f"print(libc.syscall({BIND_CALL[os.uname().machine]}, sock.fileno(), address, 16))\n"
        "print(errno.errorcode[ctypes.get_errno()])"
    )
    ended = mac(*python(text), localhost=local("rewire-port"))
    assert ended.stdout == "-1\nEACCES\n", ended.stderr


def test_with_rewire_device_the_window_is_on_the_sessions_own_address(mac: Any, python: Any) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    text = BIND + (
        "import binascii\n"
        "print(bind(base), bind(3000))\n"
        "device = socket.inet_aton(os.environ['LISTENING_LOOPBACK_DEVICE'])[::-1].hex().upper()\n"
        "print(any(line.split()[1] == f'{device}:{base:04X}' for line in open('/proc/net/tcp').readlines()[1:]))"
    )
    ended = mac(*python(text), localhost=local("rewire-device"))
    assert ended.stdout == "bound EACCES\nTrue\n", ended.stderr


def test_a_port_of_the_host_that_the_user_opened_is_reached(mac: Any, python: Any, origin: int) -> None:
    ended = mac(
        *python(PROBE + f"print(attempt('127.0.0.1', {origin}))"), localhost=local(connect_host=(HostPort(origin),))
    )
    assert ended.stdout == "connected\n"


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        (LocalhostSettings(), "use --network-strategy fail"),
        (local(publish=()), "leave out --publish and --no-publish"),
        (local(publish=((3000, None),)), "leave out --publish"),
    ],
)
def test_what_a_mac_cannot_keep_is_refused(mac: Any, settings: LocalhostSettings, advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        mac("true", localhost=settings)


def test_a_command_that_is_not_there_is_127_and_the_log_says_so(mac: Any, place: Path) -> None:
    with pytest.raises(CommandError) as caught:
        mac("no-such-command-here")
    assert caught.value.status == 127
    (log,) = (place / "state").rglob("audit.jsonl")
    assert '"status":127' in log.read_text()


def test_a_missing_helper_runs_nothing(place: Path, system: MacSystem, tmp_path: Path) -> None:
    """INV-1."""
    missing = copy_with(system, helper=str(tmp_path / "none"))
    owner = Session(RunSettings(localhost=local()), sealed=False, backend=lambda c: SeatbeltBackend(c, missing))
    marker = place / "work" / "ran"
    with open(os.devnull, "r+b") as nothing:
        command = Command(["touch", str(marker)], os.environb, (nothing.fileno(),) * 3)
        with pytest.raises(HostError, match="netsandbox-apply is missing"):
            owner.run(Policy, command)
    assert not marker.exists()


def test_a_working_directory_that_is_gone_runs_nothing(mac: Any, place: Path) -> None:
    (place / "work").rmdir()
    with pytest.raises(UsageError, match="working directory"):
        mac("true")


def test_a_working_directory_with_a_line_end_in_its_name_runs_nothing(
    mac: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = place / "a\nb"
    odd.mkdir()
    monkeypatch.chdir(odd)
    with pytest.raises(UsageError):
        mac("touch", str(odd / "ran"))
    assert not (odd / "ran").exists()


def test_after_the_session_nothing_is_left(mac: Any) -> None:
    """INV-10: the control socket, the map and the ports are gone."""
    pytest.importorskip("netsandbox_interpose._native")
    base = ports.free_window(4)  # one that no other session is given by itself
    ended = mac("sh", "-c", "echo $LISTENING_BASE_PORT", localhost=local("rewire-port", base=base))
    left = {path.name for path in ended.state.rglob("*") if not path.is_dir() and path.parent.name != WRITTEN}
    assert left <= {"audit.jsonl", "first-session", "homes", "names", "ports"}  # the log, and what all sessions share
    assert not [path for path in ended.state.rglob("sessions/*/*") if path.name != "audit.jsonl"]
    with socket.socket() as again:
        again.bind(("127.0.0.1", int(ended.stdout)))


class TestASignedLibrary:
    """A copy of the library, as a Mac makes one."""

    @pytest.fixture
    def system(self, system: MacSystem, place: Path) -> MacSystem:
        copy = shutil.copy(LIBRARY, place / "work")
        return copy_with(system, library=copy)

    def test_is_what_programs_are_given(self, mac: Any, python: Any, system: MacSystem) -> None:
        pytest.importorskip("netsandbox_interpose._native")
        text = BIND + f"print(os.environ[{os.fsdecode(PRELOAD)!r}], bind(3000), kept[0].getsockname()[1])"
        ended = mac(*python(text), localhost=local("rewire-port"))
        assert ended.stdout == f"{system.library} bound 3000\n", ended.stderr


def test_a_session_that_is_told_of_no_system_asks_this_mac_once(
    monkeypatch: pytest.MonkeyPatch, system: MacSystem
) -> None:
    asked: list[MacSystem] = []
    monkeypatch.setattr("netsandbox.backends.seatbelt.mac_system.this_mac", lambda: asked.append(system) or system)
    made = SeatbeltBackend(Session(RunSettings(), sealed=False).context(Command(["true"], {}, (0, 1, 2))))
    assert (made.system, made.system) == (system, system)
    assert asked == [system]
    with pytest.raises(HostError, match="works on Linux only"):
        made.execute(b"", [])


@pytest.mark.attack(141, 148)
def test_the_folder_of_the_users_configuration_is_there_before_the_command(mac: Any, place: Path) -> None:
    """INV-8: missing, it could be made in capitals, which no rule of the profile names and the disk does not mind."""
    assert mac("/bin/sh", "-c", "test -d ../config/netsandbox").returncode == 0
    assert (place / "config" / "netsandbox").is_dir()


# Files


def test_a_session_has_its_own_temporary_folder_which_goes_with_it(
    mac: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "T").mkdir()
    monkeypatch.setenv("TMPDIR", str(place / "T"))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    ended = mac("sh", "-c", 'echo "$TMPDIR ${SSH_AUTH_SOCK-none}"; touch "$TMPDIR/x"; mkdir -p "$TMPDIR/a/b"')
    folder, agent = ended.stdout.split()
    assert os.path.dirname(folder) == os.path.realpath(place / "T")
    assert agent == "none"
    assert list((place / "T").iterdir()) == []


def test_a_session_that_shares_them_has_the_users_temporary_folder(
    mac: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "T").mkdir()
    monkeypatch.setenv("TMPDIR", str(place / "T"))
    ended = mac("sh", "-c", 'echo "$TMPDIR"', files=FileRules(share_tmp=True))
    assert ended.stdout.split() == [str(place / "T")]


def test_a_temporary_folder_that_cannot_be_made_runs_nothing(
    mac: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(place / "missing"))
    with pytest.raises(HostError, match="set TMPDIR, or use --share-tmp"):
        mac("touch", str(place / "work" / "ran"))
    assert not (place / "work" / "ran").exists()


def test_a_repository_that_the_session_made_is_named_at_the_end(mac: Any) -> None:
    ended = mac("sh", "-c", "mkdir -p sub/.git")
    assert "new in the project: " in ended.stderr
    assert "sub/.git; programs of the host obey or run these" in ended.stderr
    assert "new in the project" not in mac("true").stderr
