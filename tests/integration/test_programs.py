"""Programs work unchanged in a session, with proxy variables and without, and each has a twin that is denied (INV-7).

The verdict is the canary's: the allowed server has answered, the forbidden one has not seen a single connection.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.world import ALLOWED, World, need

pytestmark = [pytest.mark.broker_as_root, pytest.mark.usefixtures("user_namespaces")]

PROXY_ENV = pytest.mark.parametrize("options", [(), ("--no-proxy-env",)], ids=["proxied", "transparent"])

URLLIB = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"
HTTP_CLIENT = """
import http.client, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
client = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
client.request("GET", "/")
print(client.getresponse().read().decode())
"""
ASYNCIO = """
import asyncio, sys, urllib.parse
async def main():
    url = urllib.parse.urlsplit(sys.argv[1])
    reader, writer = await asyncio.wait_for(asyncio.open_connection(url.hostname, url.port), 10)
    writer.write(b"GET / HTTP/1.1\\r\\nhost: %s\\r\\nconnection: close\\r\\n\\r\\n" % url.netloc.encode())
    answer = await reader.read()
    writer.close()
    assert b" 200 " in answer, answer
    print(answer.decode())
asyncio.run(main())
"""
FETCH = "fetch(process.argv[1]).then(r => r.text()).then(console.log, e => { console.error(e); process.exit(1) })"
JAVA = """
import java.net.URI;
import java.net.http.*;
public class Fetch {
    public static void main(String[] words) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(words[0])).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.body());
        System.exit(answer.statusCode() == 200 ? 0 : 1);
    }
}
"""


def check(world: World, command: list[str], options: tuple[str, ...], *, fails: bool = True, **more: Any) -> None:
    """FAILS: the program's own status says that the denied request failed (curl needs -f for that by a proxy)."""
    server = world.canary.http(body=b"through the door\n")
    run = world.fetch_both(command, server.port, *options, **more)
    world.assert_only_allowed(run, server, "through the door")
    assert not fails or "bad=0" not in run.stdout


@pytest.mark.backend("namespaces", "broker")
@PROXY_ENV
@pytest.mark.ordinary_user
def test_curl(world: World, options: tuple[str, ...]) -> None:
    check(world, [need("curl", "curl"), "-sSf", "--max-time", "10"], options)


@pytest.mark.backend("namespaces", "broker")
@PROXY_ENV
def test_wget(world: World, options: tuple[str, ...]) -> None:
    check(world, [need("wget", "wget"), "-q", "-O", "-", "--tries=1", "--timeout=10"], options)


@pytest.mark.backend("namespaces", "broker")
@PROXY_ENV
@pytest.mark.parametrize("code", [URLLIB, HTTP_CLIENT, ASYNCIO], ids=["urllib", "http.client", "asyncio"])
def test_python(world: World, code: str, options: tuple[str, ...]) -> None:
    """http.client and asyncio ignore proxy variables in either case."""
    check(world, [world.netsandbox.python, "-c", code], options)


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(156)
def test_nodes_fetch_needs_no_proxy_variable(world: World) -> None:
    check(world, [need("node", "nodejs"), "-e", FETCH], ("--no-proxy-env",))


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(99)
@PROXY_ENV
@pytest.mark.ordinary_user
def test_a_static_go_program(world: World, go_static: Path, options: tuple[str, ...]) -> None:
    check(world, [str(go_static)], (*options, "--allow-read", str(go_static)))


@pytest.mark.backend("namespaces", "broker")
def test_a_java_virtual_machine(world: World) -> None:
    folder = world.netsandbox.home().work
    (folder / "Fetch.java").write_text(JAVA)
    subprocess.run([need("javac", "default-jdk-headless"), "Fetch.java"], cwd=folder, check=True)
    java = [need("java", "default-jdk-headless"), "-XX:TieredStopAtLevel=1", "-cp", "."]
    check(world, [*java, "Fetch"], ("--no-proxy-env",))


@pytest.mark.backend("namespaces", "broker")
@PROXY_ENV
def test_https_is_end_to_end(world: World, ca: Any, options: tuple[str, ...]) -> None:
    """The certificate that the program sees is the server's own, and the name in the handshake reaches it."""
    server = world.canary.http(body=b"through the door\n", tls=(ALLOWED,))
    trust = {"CURL_CA_BUNDLE": str(ca.cert), "SSL_CERT_FILE": str(ca.cert), "NODE_EXTRA_CA_CERTS": str(ca.cert)}
    clients = [
        [need("curl", "curl"), "-sSf", "--max-time", "10"],
        [world.netsandbox.python, "-c", URLLIB],
        *([[need("node", "nodejs"), "-e", FETCH]] if options else []),
    ]
    for client in clients:
        shown = (*options, "--allow-read", str(ca.cert))
        run = world.fetch_both(client, server.port, *shown, scheme="https", env=trust)
        world.assert_only_allowed(run, server, "through the door")
        assert "bad=0" not in run.stdout
    assert [visit.server_name for visit in server.visits] == [ALLOWED] * len(clients)


@pytest.mark.backend("namespaces", "broker")
def test_ipv6_literals_are_denied(world: World) -> None:
    """By a direct connection and by the proxy: the host's ::1 is no more within reach than any other address."""
    server = world.canary.http("::1", body=b"forbidden\n")
    urls = [f"http://[2001:db8::1]:{server.port}/", f"http://[::1]:{server.port}/"]
    curl = need("curl", "curl")
    direct, proxied = [[curl, "-sSf", "--max-time", "10", "--noproxy", noproxy] for noproxy in ("*", "none.test")]
    script = "\n".join(f"{' '.join(words)} '{url}'" for words in (direct, proxied) for url in urls)
    run = world.netsandbox("run", *world.options(9), "--", "sh", "-c", script.replace("*", "'*'"))
    assert server.accepts == 0
    assert "forbidden" not in run.stdout
    denied = [record.get("address") or record["host"] for record in run.events("egress", verdict="deny")]
    assert sorted(denied) == ["2001:db8::1", "2001:db8::1", "::1", "localhost"]  # the direct ::1 is the session's own


@pytest.mark.backend("namespaces", "broker")
def test_several_programs_at_once_in_one_session(world: World) -> None:
    server = world.canary.http(body=b"through the door\n")
    good, bad = world.urls(server.port)
    script = """
    for n in 1 2 3 4 5 6 7 8; do
        curl -sSf --max-time 20 "$1" &
        curl -sSf --noproxy '*' --max-time 20 "$1" &
        curl -sSf --max-time 20 "$2" 2>/dev/null &
    done
    wait
    """
    need("curl", "curl")
    run = world.netsandbox("run", *world.options(server.port), "--", "sh", "-c", script, "sh", good, bad)
    assert run.stdout == "through the door\n" * 16, run.stderr
    assert server.accepts == 16
    assert world.forbidden.accepts == 0


FORKS_AND_THREADS = r"""
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *forks(void *unused)
{
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(9) };

    inet_pton(AF_INET, "127.0.0.1", &peer.sin_addr);
    for (int round = 0; round < 250; round++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            close_range(fd + 1, ~0U, 0);
            _exit(fd >= 0 && connect(fd, (void *)&peer, sizeof peer) < 0 ? 7 : 8);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
            return "wrong";
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    void *result;

    for (int n = 0; n < 4; n++)
        pthread_create(&threads[n], NULL, forks, NULL);
    for (int n = 0; n < 4; n++)
        if (pthread_join(threads[n], &result) || result)
            return 1;
    return puts("1000 forks") < 0;
}
"""


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(105)
def test_a_thousand_forks_from_threads_connect_without_deadlock(netsandbox: Any, probe: Any) -> None:
    """To the session's own loopback, where nobody listens: each child gets its refusal and its exit status."""
    program = probe("forks-and-threads", FORKS_AND_THREADS, flags=("-D_GNU_SOURCE",))
    assert netsandbox("run", "--", program, timeout=30).stdout == "1000 forks\n"
