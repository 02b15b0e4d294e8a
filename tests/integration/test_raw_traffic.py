"""Programs that ask nobody's leave and read no environment meet the same verdicts (INV-7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE

pytestmark = [pytest.mark.open_files, pytest.mark.usefixtures("user_namespaces")]

CONNECT = (
    PRELUDE
    + r"""
int main(int argc, char **argv)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[2])) };
    char answer[64] = { 0 };
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    long s = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    if (syscall(SYS_connect, s, &to, sizeof to) < 0) { tried("connect", -1); return 1; }
    send((int)s, "\2hello", 6, MSG_NOSIGNAL); /* no protocol that the door would look into */
    shutdown((int)s, SHUT_WR);
    said("answer", read((int)s, answer, 63) > 0 ? answer + 1 : "nothing");
    return 0;
}
"""
)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(98)
@pytest.mark.attack(99)
@pytest.mark.attack(203)
def test_raw_static_programs_without_environment_get_the_same_verdicts(
    netsandbox: Any, probe: Any, canary: Any, authority: Any
) -> None:
    """98, 99: what ignores libc, preloads and proxy variables is captured all the same."""
    good, bad = canary.tcp(echo=True), canary.tcp(echo=True)
    authority.answer("allowed.test", good.host)
    static, dynamic = probe("connect", CONNECT, static=True), probe("connect", CONNECT)
    lookup = "import socket; print(socket.gethostbyname('allowed.test'))"
    script = f"""
    address=$({netsandbox.python} -c "{lookup}")
    for program in {static} {dynamic} "env -i {static}" "env -u LD_PRELOAD {dynamic}"; do
        $program $address {good.port}
        $program $address {bad.port}
        $program {bad.host} {bad.port}
        $program 192.0.2.7 {good.port}
    done
    """
    options = ["--allow-domain", f"allowed.test:{good.port}", "--allow-address", f"127.0.0.1:{good.port}"]
    run = netsandbox("run", *options, "--upstream-dns", authority.address, "--", "sh", "-c", script)
    answers = run.stdout.splitlines()
    assert answers == ["answer hello", "answer nothing", "connect ECONNREFUSED", "answer nothing"] * 4
    assert (good.accepts, bad.accepts) == (4, 0)
    assert len(run.events("egress", verdict="deny", reason="port-not-allowed")) == 4
    assert len(run.events("egress", verdict="deny", host="192.0.2.7")) == 4


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(129)
def test_datagrams_to_anywhere_are_recorded_and_go_nowhere(netsandbox: Any, canary: Any) -> None:
    """129, and the name services of the local network: multicast and broadcast, both families."""
    server, server6 = canary.udp(), canary.udp("::1")
    script = f"""
import socket
def send(family, host, port, *more):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.sendto(b"secret", (host, port, *more))
for host in ("192.0.2.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", "192.0.2.255"):
    send(socket.AF_INET, host, 5353)
for host in ("2001:db8::1", "ff02::fb", "ff02::c", "fe80::1"):
    send(socket.AF_INET6, host, 5353, 0, 1)
send(socket.AF_INET, "127.0.0.1", {server.port}); send(socket.AF_INET6, "::1", {server6.port})
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    own.bind(("127.0.0.1", 0)); send(socket.AF_INET, *own.getsockname())
    print(own.recv(6).decode() if {netsandbox.backend != "broker"} else "nowhere")
"""
    run = netsandbox("run", "--", netsandbox.python, "-c", script)
    assert run.stdout == ("nowhere\n" if netsandbox.backend == "broker" else "secret\n"), run.stderr
    wanted = {"192.0.2.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", "192.0.2.255"}
    wanted |= {"2001:db8::1", "ff02::fb", "ff02::c", "fe80::1"}
    assert {record["address"] for record in run.events("udp", verdict="deny", port=5353)} == wanted
    assert server.datagrams == server6.datagrams == []
