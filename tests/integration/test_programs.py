"""Programs work unchanged in a session, with proxy variables and without, and each has a twin that is denied.

The verdict is the canary's: the allowed server has answered, the forbidden one has not seen a single connection.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("user_namespaces")

ALLOWED, DENIED = "allowed.test", "denied.test"
PRIVILEGE_SEPARATION = Path("/run/sshd")  # sshd as root insists on this folder
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


def need(program: str, package: str) -> str:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{program} is missing (package {package})")
    return found


class World:
    """An allowed server and a forbidden one, names for both, and the options that let only the first through.

    The address guard is lifted for both, so that a denial is the name's alone.
    """

    def __init__(self, netsandbox: Any, canary: Any, authority: Any) -> None:
        self.netsandbox = netsandbox
        self.canary = canary
        self.authority = authority
        self.forbidden = canary.http(body=b"forbidden\n")
        for name in (ALLOWED, DENIED):
            authority.answer(name, "127.0.0.1")

    def options(self, port: int) -> tuple[str, ...]:
        names = ("--upstream-dns", self.authority.address, "--allow-domain", f"{ALLOWED}:{port}")
        return (*names, "--allow-address", f"127.0.0.1:{port}", "--allow-address", self.forbidden.address)

    def urls(self, port: int, scheme: str = "http") -> tuple[str, str]:
        return f"{scheme}://{ALLOWED}:{port}/", f"{scheme}://{DENIED}:{self.forbidden.port}/"

    def fetch_both(self, command: list[str], port: int, *options: str, scheme: str = "http", **more: Any) -> Any:
        """Fetch the allowed URL, then the forbidden one, in one session; the statuses are printed last."""
        script = 'good=$1 bad=$2; shift 2; "$@" "$good"; echo "good=$?"; "$@" "$bad"; echo "bad=$?"'
        inside = ("sh", "-c", script, "sh", *self.urls(port, scheme), *command)
        return self.netsandbox("run", *options, *self.options(port), "--", *inside, **more)

    def assert_only_allowed(self, run: Any, server: Any, answer: str) -> None:
        assert answer in run.stdout, (run.stdout, run.stderr)
        assert "good=0" in run.stdout
        assert "forbidden" not in run.stdout
        assert server.accepts >= 1
        assert self.forbidden.accepts == 0
        self.assert_denied(run)
        assert self.authority.count(DENIED) == 0

    def assert_denied(self, run: Any) -> None:
        denials = [r for r in run.audit if r.get("host") == DENIED]
        assert denials
        assert all(record["verdict"] == "deny" for record in denials)


@pytest.fixture
def world(netsandbox: Any, canary: Any, authority: Any) -> World:
    return World(netsandbox, canary, authority)


def check(world: World, command: list[str], options: tuple[str, ...], *, fails: bool = True, **more: Any) -> None:
    """FAILS: the program's own status says that the denied request failed (curl needs -f for that by a proxy)."""
    server = world.canary.http(body=b"through the door\n")
    run = world.fetch_both(command, server.port, *options, **more)
    world.assert_only_allowed(run, server, "through the door")
    assert not fails or "bad=0" not in run.stdout


@PROXY_ENV
@pytest.mark.ordinary_user
def test_curl(world: World, options: tuple[str, ...]) -> None:
    check(world, [need("curl", "curl"), "-sSf", "--max-time", "10"], options)


@PROXY_ENV
def test_wget(world: World, options: tuple[str, ...]) -> None:
    check(world, [need("wget", "wget"), "-q", "-O", "-", "--tries=1", "--timeout=10"], options)


@PROXY_ENV
@pytest.mark.parametrize("code", [URLLIB, HTTP_CLIENT, ASYNCIO], ids=["urllib", "http.client", "asyncio"])
def test_python(world: World, code: str, options: tuple[str, ...]) -> None:
    """http.client and asyncio ignore proxy variables in either case."""
    check(world, [world.netsandbox.python, "-c", code], options)


@pytest.mark.attack(156)
def test_nodes_fetch_needs_no_proxy_variable(world: World) -> None:
    check(world, [need("node", "nodejs"), "-e", FETCH], ("--no-proxy-env",))


@pytest.mark.attack(99)
@PROXY_ENV
@pytest.mark.ordinary_user
def test_a_static_go_program(world: World, go_static: Path, options: tuple[str, ...]) -> None:
    check(world, [str(go_static)], options)


def test_a_java_virtual_machine(world: World) -> None:
    folder = world.netsandbox.home().work
    (folder / "Fetch.java").write_text(JAVA)
    subprocess.run([need("javac", "default-jdk-headless"), "Fetch.java"], cwd=folder, check=True)
    java = [need("java", "default-jdk-headless"), "-XX:TieredStopAtLevel=1", "-cp", "."]
    check(world, [*java, "Fetch"], ("--no-proxy-env",))


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
        run = world.fetch_both(client, server.port, *options, scheme="https", env=trust)
        world.assert_only_allowed(run, server, "through the door")
        assert "bad=0" not in run.stdout
    assert [visit.server_name for visit in server.visits] == [ALLOWED] * len(clients)


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
    denied = [record["address"] or record["host"] for record in run.events("egress", verdict="deny")]
    assert sorted(denied) == ["2001:db8::1", "2001:db8::1", "::1"]  # the direct ::1 is the session's own


def git(*words: str | Path, cwd: Path) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "safe.directory=*")
    subprocess.run(["git", *identity, *map(str, words)], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def repository(short_tmp: Path) -> Path:
    """A bare repository with one commit; its folder is the root of a server."""
    need("git", "git")
    work, bare = short_tmp / "work", short_tmp / "project.git"
    git("init", "-q", "-b", "main", work, cwd=short_tmp)
    (work / "file").write_text("from the repository\n")
    git("add", "file", cwd=work)
    git("commit", "-q", "-m", "first", cwd=work)
    git("clone", "-q", "--bare", work, bare, cwd=short_tmp)
    git("config", "http.receivepack", "true", cwd=bare)
    return bare


def smart_http(root: Path) -> Any:
    """A canary's answers by `git http-backend`, the server that git brings along."""

    def respond(method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        path, _, query = target.partition("?")
        cgi = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "REMOTE_USER": "test",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=cgi, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return int(fields.pop("Status", "200").split()[0]), fields, content

    return respond


CLONE_AND_PUSH = """
set -e
git clone -q "$1" copy
cat copy/file
cd copy
echo more >> file
git -c user.name=test -c user.email=test@example.com commit -q -a -m second
git push -q origin main
cd ..
echo good=0
git clone -q "$2" other || echo "bad=$?"
"""


@PROXY_ENV
@pytest.mark.ordinary_user
def test_git_over_http(world: World, repository: Path, options: tuple[str, ...]) -> None:
    server = world.canary.http(handler=smart_http(repository.parent))
    good, bad = (f"{url}project.git" for url in world.urls(server.port))
    inside = ("sh", "-c", CLONE_AND_PUSH, "sh", good, bad)
    run = world.netsandbox("run", *options, *world.options(server.port), "--", *inside)
    world.assert_only_allowed(run, server, "from the repository")
    assert "bad=0" not in run.stdout
    log = subprocess.run(["git", "log", "--format=%s", "main"], cwd=repository, capture_output=True, check=True)
    assert log.stdout.split() == [b"second", b"first"]


class SecureShell:
    """An sshd of our own on a high port of loopback: own keys, own configuration, the current account only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = self._key("client")
        host = self._key("host")
        self.port = _free_port()
        config = folder / "sshd_config"
        (folder / "authorized").write_text(self.key.with_suffix(".pub").read_text())
        settings = {
            "HostKey": host,
            "AuthorizedKeysFile": folder / "authorized",
            "ListenAddress": f"127.0.0.1:{self.port}",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
        }
        config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        program = need("sshd", "openssh-server")
        self._made_run = os.geteuid() == 0 and not PRIVILEGE_SEPARATION.exists()
        if self._made_run:
            PRIVILEGE_SEPARATION.mkdir(mode=0o755)
        self.process = subprocess.Popen([program, "-D", "-e", "-f", config], stderr=subprocess.PIPE)
        self._await()

    def client(self) -> list[str]:
        """The client's words but for port and host; the host's key is learnt on the first visit."""
        known = f"UserKnownHostsFile={self.folder}/known"
        settings = ("BatchMode=yes", "StrictHostKeyChecking=accept-new", known, "ConnectTimeout=10", "LogLevel=ERROR")
        words = [word for setting in settings for word in ("-o", setting)]
        return [need("ssh", "openssh-client"), "-F", "none", "-i", str(self.key), *words]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        if self._made_run:
            PRIVILEGE_SEPARATION.rmdir()

    def _key(self, name: str) -> Path:
        path = self.folder / name
        words = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
        subprocess.run([need("ssh-keygen", "openssh-client"), *words], check=True)
        return path

    def _await(self) -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        self.process.kill()
        pytest.fail(f"sshd did not start: {self.process.communicate()[1]!r}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def sshd(short_tmp: Path) -> Iterator[SecureShell]:
    need("sshd", "openssh-server")
    server = SecureShell(short_tmp)
    yield server
    server.close()


def test_ssh_and_git_over_ssh(world: World, repository: Path, sshd: SecureShell) -> None:
    """A raw protocol in which the server may speak first: no proxy, no variable, only the connection itself."""
    login = pwd.getpwuid(os.geteuid()).pw_name
    if pwd.getpwuid(os.geteuid()).pw_shell.endswith(("/nologin", "/false")):
        pytest.skip(f"the account {login} may not log in")
    script = f"""
    {" ".join(sshd.client())} -p {sshd.port} {login}@{ALLOWED} 'echo over ssh; exit 5'; echo "status=$?"
    export GIT_SSH_COMMAND='{" ".join(sshd.client())}'
    git clone -q ssh://{login}@{ALLOWED}:{sshd.port}{repository} copy; echo "good=$?"
    cat copy/file
    {" ".join(sshd.client())} -p {world.forbidden.port} {login}@{DENIED} true; echo "bad=$?"
    git clone -q ssh://{login}@{DENIED}:{world.forbidden.port}{repository} other; echo "bad=$?"
    """
    run = world.netsandbox("run", *world.options(sshd.port), "--", "sh", "-c", script)
    lines = run.stdout.split("\n")
    assert lines[:4] == ["over ssh", "status=5", "good=0", "from the repository"], (run.stdout, run.stderr)
    assert "bad=0" not in lines
    assert len(run.events("egress", verdict="allow", host=ALLOWED)) == 2
    assert world.forbidden.accepts == 0
    world.assert_denied(run)


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


@pytest.mark.attack(105)
def test_a_thousand_forks_from_threads_connect_without_deadlock(netsandbox: Any, probe: Any) -> None:
    """To the session's own loopback, where nobody listens: each child gets its refusal and its exit status."""
    program = probe("forks-and-threads", FORKS_AND_THREADS, flags=("-D_GNU_SOURCE",))
    assert netsandbox("run", "--", program, timeout=30).stdout == "1000 forks\n"
