"""What only a Mac can show: the real profile on real programs, each refusal beside a twin that is allowed.

Traffic stays on this machine. Programs are the system's own, so that what is missing in a profile for them shows too.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from netsandbox_interpose.library import LIBRARY
from netsandbox_portmap.localhost_settings import LocalhostSettings
from netsandbox_portmap.ranges import RangeLock

from netsandbox.backends.seatbelt.helper_process import HelperProcess
from netsandbox.errors import HostError
from netsandbox.policy.policy import Policy
from tests.rig.authority import Authority
from tests.rig.waiting import wait_for

pytestmark = [
    pytest.mark.macos,
    pytest.mark.skipif(sys.platform != "darwin", reason="applies Seatbelt, which only a Mac has"),
]

CONNECT = "exec 3<>/dev/tcp/{address}/{port} && echo connected"
CURL = "/usr/bin/curl -sS -o /dev/null -w '%{http_code}\\n' --max-time 10 "
ALLOW_ALL = "(version 1)\n(allow default)\n"


def allowing(port: int) -> Policy:
    return Policy(allow_domains=[f"localhost:{port}"], allow_addresses=[f"127.0.0.1:{port}"])


def test_a_command_runs_and_its_status_is_its_own(mac: Any) -> None:
    ended = mac("/bin/sh", "-c", "echo hello; exit 7")
    assert (ended.returncode, ended.stdout) == (7, "hello\n"), ended.stderr


def test_what_seatbelt_refuses_is_recorded(mac: Any, place: Path) -> None:
    """By a program of Apple's, whose refusals the kernel is reported to tell; and what is allowed is not there."""
    (place / "state" / "secret").parent.mkdir(parents=True, exist_ok=True)
    (place / "state" / "secret").write_text("secret")
    (place / "work" / "open").write_text("open")
    ended = mac("/bin/cat", "open", str(place / "state" / "secret"))
    assert ended.stdout == "open"
    paths = [str(record.get("path", "")) for record in ended.of("seatbelt")]
    assert any(path.endswith("/state/secret") for path in paths), ended.records
    assert not any(path.endswith(os.path.join("work", "open")) for path in paths)
    assert ended.of("policy") == []


def test_windows_are_locked_by_open_file(tmp_path: Path) -> None:
    """F_OFD_SETLK by its number: two holders of one process exclude each other, and closing frees."""
    first, second = (RangeLock.open(str(tmp_path / "ports"), shared=False) for _ in range(2))
    assert first.take(20000, 100)
    assert not second.take(20050, 1)
    assert second.obstacle(20050, 1) == (20000, 100)
    first.close()
    assert second.take(20050, 1)
    second.close()


def test_the_self_test_finds_a_profile_that_does_not_hold(helper: str, tmp_path: Path) -> None:
    with socket.socket() as held, open(os.devnull, "r+b") as nothing:
        held.bind(("127.0.0.1", 0))
        words = (helper, ["/usr/bin/touch", str(tmp_path / "ran")], ALLOW_ALL, {}, (nothing.fileno(),) * 3)
        with pytest.raises(HostError, match="does not hold"):
            HelperProcess(*words, closed_port=held.getsockname()[1])
    assert not (tmp_path / "ran").exists()


def test_a_profile_that_seatbelt_does_not_take_runs_nothing(helper: str, tmp_path: Path) -> None:
    with open(os.devnull, "r+b") as nothing, pytest.raises(HostError, match="does not accept"):
        HelperProcess(
            helper, ["/usr/bin/true"], "(version 1)\n(nonsense)\n", {}, (nothing.fileno(),) * 3, closed_port=9
        )


@pytest.mark.attack(112)
def test_the_doctor_finds_everything_well(place: Path) -> None:
    """Every probe, with the home and the programs of whoever runs it; what did not hold is in the message."""
    environment = {**os.environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir, "PYTHONPATH": ":".join(sys.path)}
    line = [sys.executable, "-m", "netsandbox", "doctor", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=120, check=False)
    report = json.loads(done.stdout)
    assert [each for each in report["jail"] if each["status"] not in ("ok", "skipped")] == [], report["unproven"]
    assert [each for each in report["machine"] if each["status"] == "MISSING"] == []
    assert done.returncode == 0, done.stderr


def test_a_program_of_the_system_is_confined_without_the_library(mac: Any, origin: int) -> None:
    """dyld takes the variable away from it; Seatbelt does not depend on that."""
    settings = LocalhostSettings(strategy="rewire-port", count=4)
    text = f"echo ${{DYLD_INSERT_LIBRARIES-none}}; {CONNECT.format(address='127.0.0.1', port=origin)}"
    ended = mac("/bin/bash", "-c", text, policy=allowing(origin), localhost=settings)
    assert ended.stdout == "none\n", ended.stderr
    assert "Operation not permitted" in ended.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "192.0.2.1"])
def test_connecting_past_the_door_is_refused_by_the_kernel(mac: Any, origin: int, address: str) -> None:
    text = CONNECT.format(address=address, port=origin)
    ended = mac("/bin/bash", "-c", text, policy=allowing(origin))
    assert "Operation not permitted" in ended.stderr
    assert ended.stdout == ""


def test_the_door_reaches_what_is_allowed_and_says_403_to_the_rest(mac: Any, origin: int) -> None:
    """The twin: the same server, by the door that the environment names."""
    text = f"{CURL} --noproxy '' http://localhost:{origin}/; {CURL} http://denied.test/"
    ended = mac("/bin/sh", "-c", text, policy=allowing(origin))
    assert ended.stdout == "200\n403\n", ended.stderr
    assert {record["verdict"] for record in ended.of("egress")} == {"allow", "deny"}


@pytest.mark.attack(182)
def test_the_door_is_shut_to_a_program_without_the_token(mac: Any, origin: int) -> None:
    text = f"door=${{HTTP_PROXY##*@}}; {CURL} --noproxy '' -x http://$door http://localhost:{origin}/"
    ended = mac("/bin/sh", "-c", text, policy=allowing(origin))
    assert ended.stdout == "407\n", ended.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_the_door_stands_on_both_addresses(mac: Any, origin: int, address: str) -> None:
    door = f"${{HTTP_PROXY%@*}}@{address}:${{HTTP_PROXY##*:}}"
    ended = mac("/bin/sh", "-c", f"{CURL} -x {door} http://denied.test/", policy=allowing(origin))
    assert ended.stdout == "403\n", ended.stderr


def test_datagrams_leave_by_no_way(mac: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.settimeout(1)
        mac("/bin/bash", "-c", f"echo x > /dev/udp/127.0.0.1/{heard.getsockname()[1]}")
        with pytest.raises(TimeoutError):
            heard.recv(1)


def test_names_are_not_looked_up_past_the_door(mac: Any) -> None:
    ended = mac(
        "/bin/sh", "-c", f"{CURL} --noproxy '*' http://example.com/", policy=Policy(allow_domains=["example.com"])
    )
    assert ended.stdout == "000\n"
    assert ended.returncode != 0


FETCHER = r"""
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    char request[256], answer[256] = "";
    if (count < 3 || getaddrinfo(words[1], words[2], &hints, &found) != 0)
        return puts("no address"), 0;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, found->ai_addr, found->ai_addrlen) != 0)
        return perror("connect"), 0;
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s:%s\r\n\r\n", words[1], words[2]);
    write(s, request, strlen(request));
    puts(read(s, answer, sizeof answer - 1) > 9 ? strtok(answer + 9, " ") : "reset");
    return 0;
}
"""


def test_a_program_that_knows_of_no_proxy_reaches_what_is_allowed_and_nothing_else(
    mac: Any, origin: int, authority: Authority, tmp_path: Path
) -> None:
    """By the library, in a program of our own making; the twin is `test_names_are_not_looked_up_past_the_door`."""
    compiler = shutil.which("cc")
    if compiler is None or not os.path.exists(LIBRARY):
        pytest.skip("needs a compiler and the library")
    for name in ("allowed.test", "denied.test"):
        authority.answer(name, "127.0.0.1")
    (tmp_path / "fetcher.c").write_text(FETCHER)
    fetcher = tmp_path / "work" / "fetcher"
    subprocess.run([compiler, "-o", fetcher, tmp_path / "fetcher.c"], check=True)
    policy = Policy(allow_domains=[f"allowed.test:{origin}"], allow_addresses=[f"127.0.0.1:{origin}"])
    for words, told in ((("allowed.test",), "200\n"), (("denied.test",), "no address\n"), (("192.0.2.7",), "reset\n")):
        ended = mac(str(fetcher), *words, str(origin), policy=policy, upstream_dns=((authority.host, authority.port),))
        assert ended.stdout == told, ended.stderr
        assert {record["door"] for record in ended.of("egress")} <= {"transparent"}
    assert authority.count("denied.test") == 0


def test_files_outside_are_not_written_and_those_inside_are(mac: Any, place: Path) -> None:
    outside = Path(pwd.getpwuid(os.getuid()).pw_dir) / "netsandbox-must-not-exist"
    ended = mac("/bin/sh", "-c", f"echo x > inside && echo in; echo x > '{outside}' && echo out")
    assert ended.stdout == "in\n"
    assert not outside.exists()
    assert (place / "work" / "inside").exists()


def test_the_audit_log_can_be_neither_read_nor_listed(mac: Any, place: Path) -> None:
    """INV-8."""
    state = place / "state" / "netsandbox"
    ended = mac("/bin/sh", "-c", f"ls '{state}' || cat '{state}'/sessions/*/audit.jsonl || echo closed")
    assert ended.stdout == "closed\n"


def test_a_program_outside_is_not_signalled(mac: Any) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as outside:
        ended = mac("/bin/sh", "-c", f"kill -0 {outside.pid} && echo reached; kill -0 $$ && echo own")
        outside.kill()
    assert ended.stdout == "own\n", ended.stderr


def test_a_command_ends_with_its_descendants_when_it_is_ended(helper: str, tmp_path: Path) -> None:
    """INV-10: by the watcher, which finds them in the system's table of processes."""
    profile = '(version 1)\n(allow default)\n(deny network*)\n(allow network-outbound (remote tcp "localhost:1"))\n'
    told = tmp_path / "told"
    with socket.socket() as held, open(os.devnull) as nothing, open(told, "wb") as out:
        held.bind(("127.0.0.1", 0))
        stdio = (nothing.fileno(), out.fileno(), out.fileno())
        command = ["/bin/sh", "-c", "/bin/sleep 60 & echo $!; wait"]
        ran = HelperProcess(helper, command, profile, {b"PATH": b"/bin"}, stdio, closed_port=held.getsockname()[1])
        wait_for(told.read_text)
        ran.close()
    child = int(told.read_text())

    def is_gone() -> bool:
        return subprocess.run(["/bin/kill", "-0", str(child)], capture_output=True, check=False).returncode != 0

    wait_for(is_gone)
