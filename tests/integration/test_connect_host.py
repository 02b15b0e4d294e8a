"""Ports that `--connect-host` brings into a session: the host's under another number, and other sessions' by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig import ports
from tests.rig.servers_inside import wait_for

pytestmark = pytest.mark.usefixtures("user_namespaces")

DIAL = """
import socket, sys
for port in map(int, sys.argv[1:]):
    sock = socket.socket()
    sock.settimeout(20)
    try:
        sock.connect(("127.0.0.1", port))
        print(port, sock.recv(99).decode() or "closed")
    except OSError as error:
        print(port, type(error).__name__)
"""
SERVE = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("up", flush=True)
    while True:
        client = server.accept()[0]
        client.sendall(sys.argv[2].encode())
        client.close()
"""
BIND = "import socket, sys\nsocket.socket().bind(('127.0.0.1', int(sys.argv[1])))"


def dial(netsandbox: Any, *options: str, at: list[int]) -> Any:
    return netsandbox("run", *options, "--", netsandbox.python, "-c", DIAL, *map(str, at))


def serve(netsandbox: Any, *options: str, says: str = "hello") -> Any:
    """A session whose server listens at its port 5432."""
    log = netsandbox.home().work / "server.jsonl"
    running = netsandbox.spawn(
        "run", "--audit-log", str(log), *options, "--", netsandbox.python, "-c", SERVE, "5432", says
    )
    running.read_until(b"up\n")
    if not {"--publish", "--no-publish"} & {*options}:
        wait_for(lambda: '"port": 5432' in netsandbox("ports", "--json").stdout, "a published port")
    return running


def test_a_port_of_the_host_under_another_number(netsandbox: Any, canary: Any) -> None:
    server = canary.tcp(greeting=b"x")
    run = dial(netsandbox, "--connect-host", f"5432:{server.port}", at=[5432, server.port])
    assert run.stdout == f"5432 x\n{server.port} ConnectionRefusedError\n"
    assert server.accepts == 1
    (egress,) = run.events("egress", verdict="allow")
    assert (egress["host"], egress["port"], egress["rule"]) == (
        "localhost",
        server.port,
        f"--connect-host 5432:{server.port}",
    )


def test_a_port_of_another_session_is_in_both_logs(netsandbox: Any) -> None:
    target = serve(netsandbox, "--name", "db")
    run = dial(netsandbox, "--connect-host", "db:5432", "--connect-host", "6000:db:5432", at=[5432, 6000, 6001])
    assert run.stdout == "5432 hello\n6000 hello\n6001 ConnectionRefusedError\n"
    assert [(each["host"], each["port"], each["door"]) for each in run.events("egress")] == [
        ("db.localhost", 5432, "host")
    ] * 2
    caller = run.audit[0]["session"]
    taken = [record for record in target.audit if record["event"] == "ingress"]
    assert [(each["verdict"], each["port"], each["caller"]) for each in taken] == [("allow", 5432, caller)] * 2
    assert netsandbox("audit", "summary").returncode == 0


@pytest.mark.parametrize("options", [["--no-publish"], ["--publish", "3000"]])
def test_what_a_session_does_not_publish_no_other_session_reaches(netsandbox: Any, options: list[str]) -> None:
    """INV-7: the rule of the session that is reached decides too."""
    target = serve(netsandbox, "--name", "db", *options)
    run = dial(netsandbox, "--connect-host", "db:5432", at=[5432])
    assert run.stdout == "5432 ConnectionResetError\n"
    assert "the session db does not publish port 5432; start it with --publish 5432" in run.stderr
    (denied,) = [record for record in target.audit if record["event"] == "ingress"]
    assert (denied["verdict"], denied["reason"]) == ("deny", "not-published")
    (end,) = run.events("egress.end")
    assert end["outcome"] == "unreachable"


def test_a_session_may_start_later_and_start_again(netsandbox: Any) -> None:
    script = DIAL.replace("for port in map(int, sys.argv[1:]):", "for port in [5432] * 3:\n    input()")
    caller = netsandbox.spawn(
        "run", "--connect-host", "db:5432", "--", netsandbox.python, "-uc", script, stdin=-1, stderr=-1
    )
    for says in ("", "first", "second"):
        if says:
            serve(netsandbox, "--name", "db", says=says)
        caller.process.stdin.write(b"\n")
        caller.process.stdin.flush()
        caller.read_until(b"5432 " + (says.encode() or b"ConnectionResetError"))
        if says:
            assert netsandbox("stop", "db").returncode == 0
    assert caller.wait() == 0
    (line,) = caller.process.stderr.read().decode().splitlines()  # not once more when the command connects
    assert line == (
        "netsandbox: --connect-host db:5432: no session is called db yet; start it with `netsandbox run --name db`"
    )


def test_a_quiet_session_reads_of_a_missing_session_when_it_connects(netsandbox: Any) -> None:
    run = dial(netsandbox, "-q", "--connect-host", "db:5432", at=[5432])
    assert run.stderr == (
        "netsandbox: --connect-host db:5432: no session is called db; start it with `netsandbox run --name db`\n"
    )


def test_an_untrusted_project_opens_no_port_of_another_session(netsandbox: Any) -> None:
    serve(netsandbox, "--name", "db")
    file = netsandbox.home().work / ".netsandbox.toml"
    file.write_text('[localhost]\nconnect_host = ["db:5432"]\n')
    run = dial(netsandbox, at=[5432])
    assert run.stdout == "5432 ConnectionRefusedError\n"
    assert "would open localhost.connect_host; ignored until you run `netsandbox trust`" in run.stderr
    assert netsandbox("trust", "--yes").returncode == 0
    assert dial(netsandbox, at=[5432]).stdout == "5432 hello\n"


def test_a_server_of_the_host_that_was_meant_is_named(netsandbox: Any, canary: Any) -> None:
    """A refusal at the session's own localhost has a record and a line with the option, and `explain` knows it."""
    server = canary.tcp(greeting=b"x")
    run = dial(netsandbox, at=[server.port])
    line = (
        f"netsandbox: nothing listens on localhost:{server.port} in this session; the host's port is reached with"
        f" --connect-host {server.port}\n"
    )
    assert (run.stdout, run.stderr) == (f"{server.port} ConnectionRefusedError\n", line)
    (denied,) = run.events("egress")
    assert (denied["reason"], denied["hint"]) == ("own-localhost", f"--connect-host {server.port}")
    explained = netsandbox("explain", "--last").stdout
    assert f"to allow  netsandbox run --connect-host {server.port}" in explained
    assert f'connect_host = ["{server.port}"] below [localhost]' in explained
    assert f"to allow it: --connect-host {server.port}" in netsandbox("explain", f"localhost:{server.port}").stdout
    assert server.accepts == 0
    quiet = ports.free_port()
    assert dial(netsandbox, at=[quiet]).stderr == ""


POLL = """
import socket, sys, threading
port = int(sys.argv[1])
def attempt():
    try:
        socket.create_connection(("127.0.0.1", port), 20).close()
        return True
    except OSError:
        return False
assert not attempt()
server = socket.create_server(("127.0.0.1", port))
assert attempt()
"""


def test_a_program_that_polls_its_own_starting_server_raises_no_alarm(netsandbox: Any, canary: Any) -> None:
    server = canary.tcp(greeting=b"x")
    run = netsandbox("run", "--", netsandbox.python, "-c", POLL, str(server.port))
    assert (run.returncode, run.stderr, run.events("egress")) == (0, "", [])


def test_a_bind_to_a_port_that_leads_out_says_why_it_fails(netsandbox: Any, canary: Any) -> None:
    server = canary.tcp(greeting=b"x")
    connect = ["--connect-host", f"5432:{server.port}"]
    run = netsandbox("run", *connect, "--", netsandbox.python, "-c", BIND, "5432")
    assert "Address already in use" in run.stderr
    assert "netsandbox: port 5432 of this session leads to the host's localhost" in run.stderr
