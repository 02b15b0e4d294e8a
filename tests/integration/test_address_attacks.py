"""Section F of the catalogue: no spelling of an address, and no name that leads to one, reaches inside (INV-2, INV-4).

Every run is `--online`, the widest mode there is: the address guard stands alone against these attacks.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig import ports
from tests.rig.inside import attack, found, program

pytestmark = pytest.mark.usefixtures("user_namespaces")

SPELLINGS = [
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0177.1",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "127.0.0.1.",
    "0127.0.0.1",
    "127.000.000.001",
    "0",
    "0.0.0.0",
    "0.0.0.1",
    "1.2.3",
    "127.0.0.1",
    "127.255.255.254",
]
EMBEDDED = [
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[2002:7f00:1::]",
    "[::ffff:0:127.0.0.1]",
    "[2001:0:0:0:0:0:80ff:fffe]",
    "[fe80::5efe:127.0.0.1]",
]
SOME_RULE = ["--allow-domain", "allowed.test"]
METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"]
METADATA += ["fd00:ec2::254", "fd20:ce::254"]
PRIVATE = ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.1.1", "198.18.0.1"]
PRIVATE += ["240.0.0.1", "255.255.255.255", "224.0.0.1", "fc00::1", "fdff::1", "fe80::1", "fec0::1", "ff02::1"]

EVERYWHERE = """
out["rows"] = {}
for text in hosts:
    host = text.encode()
    sock, head = connect(host, port)
    sock.close()
    out["rows"][text] = [status(head), status(get(host, port)), socks(host, port)]
"""


def refused_everywhere(rows: dict[str, list[int]]) -> bool:
    return all(connect in (400, 403) and get in (400, 403) and socks > 0 for connect, get, socks in rows.values())


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(86)
@pytest.mark.attack(87)
@pytest.mark.attack(89)
@pytest.mark.attack(90)
def test_86_to_90_no_spelling_of_an_address_reaches_the_hosts_loopback(netsandbox: Any, canary: Any) -> None:
    port = ports.free_port()
    server, six = canary.http("0.0.0.0", port), canary.http("::1", port)
    tried = attack(netsandbox, ["--online"], EVERYWHERE, arguments={"port": port, "hosts": SPELLINGS + EMBEDDED})
    assert refused_everywhere(tried.out["rows"]), tried.out["rows"]
    assert (server.accepts, six.accepts) == (0, 0)
    reasons = {record["reason"] for record in tried.denied()}
    assert reasons <= {"address-guard", "bad-name", "malformed"}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(86)
def test_86_the_one_right_spelling_works_when_a_rule_allows_it(netsandbox: Any, canary: Any) -> None:
    server, six = canary.http(body=b"reached"), canary.http("::1", body=b"reached")
    script = """
out["four"] = [status(get(b"127.0.0.1", four)), status(get(b"[::ffff:127.0.0.1]", four))]
out["six"] = status(get(b"[::1]", six))
out["odd"] = [status(get(host, four)) for host in (b"127.1", b"2130706433", b"0x7f.0.0.1")]
"""
    options = ["--allow-address", f"127.0.0.1:{server.port}", "--allow-address", f"[::1]:{six.port}"]
    tried = attack(netsandbox, options, script, arguments={"four": server.port, "six": six.port})
    assert tried.out == {"four": [200, 200], "six": 200, "odd": [400, 400, 400]}
    assert (server.accepts, six.accepts) == (2, 1)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(92)
@pytest.mark.attack(95)
def test_92_95_private_and_metadata_addresses_are_denied_as_literals_and_behind_names(
    netsandbox: Any, authority: Any
) -> None:
    addresses = METADATA + PRIVATE
    names = {f"n{number}.test": text for number, text in enumerate(addresses)}
    for name, text in names.items():
        authority.answer(name, text)
    literals = [f"[{text}]" if ":" in text else text for text in addresses]
    script = (
        EVERYWHERE
        + """
out["wire"] = {text: say(b"GET / HTTP/1.1\\r\\n\\r\\n", (text, 80)) for text in direct}
"""
    )
    direct = ["169.254.169.254", "10.0.0.1", "192.168.1.1", "fd00:ec2::254", "172.16.0.1"]
    ports = {"port": 80, "hosts": [*literals, *names], "direct": direct}
    tried = attack(netsandbox, ["--online", "--upstream-dns", authority.address], script, arguments=ports)
    assert refused_everywhere(tried.out["rows"]), tried.out["rows"]
    assert set(tried.out["wire"].values()) == {""}
    assert {record["reason"] for record in tried.denied()} == {"address-guard"}
    assert tried.allowed() == []


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(92)
def test_92_a_wide_address_rule_does_not_open_the_metadata_service(netsandbox: Any) -> None:
    script = 'out["reason"] = [reason(get(b"169.254.169.254", 80)), reason(get(b"169.254.1.1", 81))]'
    tried = attack(netsandbox, ["--allow-address", "169.254.0.0/16:80"], script)
    assert tried.out["reason"] == ["address-guard", "address-guard"]


def own_address() -> str | None:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a UDP connect sends nothing; it only chooses a source address
        except OSError:
            return None
        return str(probe.getsockname()[0])


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(94)
def test_94_the_hosts_own_addresses_are_the_host(netsandbox: Any, canary: Any, authority: Any) -> None:
    own = own_address()
    if own is None or own.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    server = canary.http("0.0.0.0", body=b"reached")
    authority.answer("me.test", own)
    script = """
out["reasons"] = [reason(get(host, port)) for host in (own.encode(), b"me.test")]
out["wire"] = say(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", (own, port))
"""
    ports = {"port": server.port, "own": own}
    tried = attack(netsandbox, ["--online", "--upstream-dns", authority.address], script, arguments=ports)
    assert tried.out == {"reasons": ["address-guard"] * 2, "wire": ""}
    assert server.accepts == 0
    allowed = attack(
        netsandbox,
        ["--allow-address", f"{own}:{server.port}"],
        'out["code"] = status(get(own.encode(), port))',
        arguments=ports,
    )
    assert allowed.out["code"] == 200


@pytest.mark.attack(96)
@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0", "0.0.0.0/0:443", "10.0.0.1/8", "not-an-address", "1.2.3"])
def test_96_a_network_as_wide_as_the_internet_is_refused(netsandbox: Any, network: str) -> None:
    marker = netsandbox.home().work / "started"
    run = netsandbox("run", "--allow-address", network, "--", "touch", marker)
    assert (run.returncode, run.stderr.count("\n"), marker.exists()) == (2, 1, False)
    assert run.stderr.startswith("netsandbox: ")


def listeners_of(pid: int) -> list[str]:
    """The sockets that a process listens on (or has bound, for UDP) in its own network namespace."""
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    bound = []
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                bound.append(f"{table} {fields[1]}")
    return bound


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(182)
@pytest.mark.attack(189)
def test_182_189_no_door_listens_on_the_host(netsandbox: Any) -> None:
    """Another user of this machine, or a web page in a browser on it, has nothing to connect to."""
    script = """
out["inside"] = [status(get(b"denied.test", 80)), ask(b"denied.test")]
print("ready", flush=True)
sys.stdin.read()
"""
    command = program(netsandbox, script)
    running = netsandbox.spawn("run", "-q", *SOME_RULE, "--", *command, stdin=subprocess.PIPE)
    running.read_until(b"ready")
    assert listeners_of(running.pid) == []
    for port in (53, 1008, 1009, 1010):
        with socket.socket() as client:
            client.settimeout(1)
            # Whatever this machine has there itself, it is not a door of the session.
            if client.connect_ex(("127.0.0.1", port)) == 0:
                client.sendall(b"GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
                assert b"netsandbox" not in client.recv(4096)
    stdout, _ = running.process.communicate(timeout=20)
    assert found(stdout.decode())["inside"] == [403, [3, []]]
