"""The rig itself: a canary that cannot hear or a name server that cannot count would make other tests worthless."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import dnslib
import pytest

from tests.rig.authority import Authority

ROOT = Path(__file__).resolve().parents[2]


def ask(authority: Any, name: str, kind: str = "A", *, tcp: bool = False) -> dnslib.DNSRecord:
    query = dnslib.DNSRecord.question(name, kind)
    return dnslib.DNSRecord.parse(query.send(authority.host, authority.port, tcp=tcp, timeout=20))


def test_a_bare_connect_is_counted_and_bytes_are_kept(canary: Any) -> None:
    server = canary.tcp(greeting=b"hello")
    with socket.create_connection((server.host, server.port)) as client:
        assert client.recv(5) == b"hello"
        client.sendall(b"secret")
    assert server.wait(1)
    assert (server.accepts, server.received) == (1, b"secret")


def test_canaries_hear_ipv6_udp_and_unix_sockets(canary: Any) -> None:
    six, udp, unix = canary.tcp("::1", echo=True), canary.udp(reply=b"pong"), canary.unix()
    with socket.create_connection(("::1", six.port)) as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"ping", (udp.host, udp.port))
        assert client.recv(9) == b"pong"
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(unix.path)
    assert unix.wait(1)
    assert udp.datagrams == [b"ping"]


def test_a_tls_canary_is_trusted_by_its_ca_and_tells_the_name(canary: Any, ca: Any) -> None:
    server = canary.http(body=b"over tls", tls=("allowed.test", "127.0.0.1"))
    context = ssl.create_default_context(cafile=ca.cert)
    with (
        socket.create_connection((server.host, server.port)) as plain,
        context.wrap_socket(plain, server_hostname="allowed.test") as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nhost: allowed.test\r\nconnection: close\r\n\r\n")
        assert b"over tls" in client.makefile("rb").read()
    assert server.wait(1)
    assert server.visits[0].server_name == "allowed.test"


def test_a_connection_that_was_reset_before_its_handshake_leaves_no_socket_open(ca: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        with pytest.raises(ConnectionResetError):
            ca.issue("allowed.test").context().wrap_socket(accepted, server_side=True)
    with pytest.raises(OSError, match="Bad file descriptor"):
        accepted.getsockname()
    gc.collect()  # a socket that was left open fails this test here


def test_the_name_server_answers_and_keeps_every_question_exactly(authority: Any) -> None:
    authority.answer("allowed.test", "127.0.0.1", "::1")
    authority.alias("alias.test", "allowed.test")
    authority.records("note.test", ("TXT", '"hello"'))
    assert str(ask(authority, "ALLOWED.test").rr[0].rdata) == "127.0.0.1"
    assert str(ask(authority, "allowed.test", "AAAA", tcp=True).rr[0].rdata) == "::1"
    assert [str(rr.rdata) for rr in ask(authority, "alias.test").rr] == ["allowed.test.", "127.0.0.1"]
    assert str(ask(authority, "note.test", "TXT").rr[0].rdata) == '"hello"'
    assert ask(authority, "other.test").header.rcode == dnslib.RCODE.NXDOMAIN
    assert [query.name for query in authority.queries][:2] == ["ALLOWED.test.", "allowed.test."]
    assert authority.queries[1].transport == "tcp"


def test_the_name_server_misbehaves_on_request(authority: Any) -> None:
    authority.rebind("turn.test", ["192.0.2.1"], ["127.0.0.1"])
    authority.fail("broken.test")
    authority.truncate("long.test", "192.0.2.7")
    authority.silence("mute.test")
    assert [str(ask(authority, "turn.test").rr[0].rdata) for _ in range(3)] == ["192.0.2.1", "127.0.0.1", "127.0.0.1"]
    assert ask(authority, "broken.test").header.rcode == dnslib.RCODE.SERVFAIL
    assert ask(authority, "long.test").header.tc
    assert str(ask(authority, "long.test", tcp=True).rr[0].rdata) == "192.0.2.7"
    with pytest.raises(TimeoutError):
        dnslib.DNSRecord.question("mute.test").send(authority.host, authority.port, timeout=0.2)


def test_the_ordinary_account_can_import_the_product_and_has_no_privileges(ordinary_user: Any) -> None:
    check = "import netsandbox, os; print(os.getuid())"
    environment = {"PYTHONPATH": ordinary_user.pythonpath}
    command = [ordinary_user.python, "-c", check]
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=True, **ordinary_user.popen
    )
    assert done.stdout.strip() == str(ordinary_user.uid) != "0"


def test_probes_run_dynamic_and_static(probe: Any) -> None:
    source = '#include <stdio.h>\nint main(void) { return puts("probe") < 0; }\n'
    for program in (probe("hello", source), probe("hello", source, static=True)):
        assert subprocess.run([program], capture_output=True, check=True).stdout == b"probe\n"


@pytest.mark.skipif(sys.platform != "linux", reason="marks are read from /proc")
def test_a_process_that_is_left_behind_is_noticed(netsandbox: Any, leftovers: Any) -> None:
    before = leftovers()
    sleep = shutil.which("sleep") or "sleep"
    with socket.create_server(("127.0.0.1", 0)) as left, socket.create_server(("127.0.0.1", 0)):  # the second is ours
        environment = netsandbox.home().environment(None)
        child = subprocess.Popen([sleep, "30"], env=environment, pass_fds=(left.fileno(),))
        try:
            (netsandbox.home().state / "stray").touch()
            found = leftovers() - before
            assert set(found) == {"processes", "files", "ports"}
            assert found["ports"] == [f"tcp {left.getsockname()[1]}"]
        finally:
            child.kill()
            child.wait()
            os.remove(netsandbox.home().state / "stray")
    leftovers.assert_none(before)


OUTCOMES = """
import pytest

def test_that_fails():
    raise RuntimeError("the reason")

@pytest.mark.skip(reason="no such program")
def test_that_is_skipped(): ...

@pytest.mark.macos
@pytest.mark.skip(reason="asks a Mac")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_of_a_mac(number): ...
"""


def test_skips_are_told_first_and_failures_last(tmp_path: Path) -> None:
    """Who sees only the tail of a log must find there what failed and why."""
    (tmp_path / "test_outcomes.py").write_text(OUTCOMES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = macos\n")
    words = ("-q", "-p", "no:cacheprovider", "-p", "tests.rig.skips", "-p", "tests.rig.failures", "test_outcomes.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_ADDOPTS": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "test_outcomes.py::test_that_is_skipped: no such program\n3 that need a Mac: asks a Mac\n" in done.stdout
    assert done.stdout.index("skipped tests and why") < done.stdout.index("= FAILURES =")
    where = tmp_path / "test_outcomes.py"
    *_, test, reason, count = done.stdout.splitlines()
    assert (test, reason) == (f"test_outcomes.py::test_that_fails (call), {where}:5", "    RuntimeError: the reason")
    assert count.startswith("1 failed, 4 skipped")


def test_a_name_server_that_ends_leaves_no_connection_open() -> None:
    """One that stays open would be found by the garbage collector, in the middle of some other test."""
    server = Authority()
    clients = [socket.create_connection((server.host, server.port)) for _ in range(6)]
    server.close()
    for client in clients:
        client.settimeout(20)
        with client, contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""


@pytest.mark.ordinary_user
@pytest.mark.usefixtures("user_namespaces")
def test_a_new_home_has_the_cache_that_its_first_session_would_write(netsandbox: Any) -> None:
    folder = netsandbox.home().state / "netsandbox" / "cache"
    before = {file.name: file.stat().st_ino for file in folder.iterdir()}
    assert before
    assert netsandbox("run", "--", "true").returncode == 0
    assert {file.name: file.stat().st_ino for file in folder.iterdir()} == before
    (netsandbox.home().work / ".agent-os").touch()
    again = netsandbox("run", "-v", "--", "true")
    assert "detected by .agent-os" in again.stderr, "it is used only as long as nothing has changed"


@pytest.mark.usefixtures("user_namespaces")
def test_the_benchmark_without_records_sees_the_same_files_and_tells_none(netsandbox: Any) -> None:
    home = netsandbox.home()
    plan = home.path / "plan.md"
    plan.write_text("canary-2b7d")
    main = [f"{ROOT}/bench/unrecorded.py", f"{ROOT}/netsandbox/__main__.py"]
    silent = home.plainly([netsandbox.python, "-I", "-S", *main, "run", "--", "cat", plan])
    told = netsandbox("run", "--", "cat", plan)
    assert [(run.returncode, run.stdout, "denied reading" in run.stderr) for run in (silent, told)] == [
        (1, "", False),
        (1, "", True),
    ]
