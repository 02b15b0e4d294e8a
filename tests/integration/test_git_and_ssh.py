"""git and ssh work unchanged: over HTTP with the proxy or without it, and over ssh, which no proxy variable reaches."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import ports
from tests.rig.git_server import made_repository, smart_http
from tests.rig.patience import WaitedInVain
from tests.rig.world import ALLOWED, DENIED, World, need

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

PRIVILEGE_SEPARATION = Path("/run/sshd")  # sshd as root insists on this folder
PROXY_ENV = pytest.mark.parametrize("options", [(), ("--no-proxy-env",)], ids=["proxied", "transparent"])


@pytest.fixture
def repository(short_tmp: Path) -> Path:
    need("git", "git")
    return made_repository(short_tmp)


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
        self.port = ports.free_port()
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
        settings = ("BatchMode=yes", "StrictHostKeyChecking=accept-new", known, "ConnectTimeout=60", "LogLevel=ERROR")
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
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        self.process.kill()
        raise WaitedInVain(f"sshd did not start: {self.process.communicate()[1]!r}")


class Agent:
    """An ssh-agent with one key, outside of every session."""

    def __init__(self, folder: Path, key: Path) -> None:
        self.socket = folder / "agent"
        words = [need("ssh-agent", "openssh-client"), "-D", "-a", str(self.socket)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self.socket.exists() and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.02)
        environment = {**os.environ, "SSH_AUTH_SOCK": str(self.socket)}
        subprocess.run([need("ssh-add", "openssh-client"), "-q", str(key)], env=environment, check=True)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def agent(short_tmp: Path, sshd: SecureShell) -> Iterator[Agent]:
    server = Agent(short_tmp, sshd.key)
    yield server
    server.close()


@pytest.fixture
def sshd(short_tmp: Path) -> Iterator[SecureShell]:
    need("sshd", "openssh-server")
    server = SecureShell(short_tmp)
    yield server
    server.close()


def account() -> str:
    """Ours, if it may log in."""
    login = pwd.getpwuid(os.geteuid())
    if login.pw_shell.endswith(("/nologin", "/false")):
        pytest.skip(f"the account {login.pw_name} may not log in")
    return login.pw_name


def test_ssh_and_git_over_ssh(world: World, repository: Path, sshd: SecureShell) -> None:
    """A raw protocol in which the server may speak first: no proxy, no variable, only the connection itself."""
    login = account()
    script = f"""
    {" ".join(sshd.client())} -p {sshd.port} {login}@{ALLOWED} 'echo over ssh; exit 5'; echo "status=$?"
    export GIT_SSH_COMMAND='{" ".join(sshd.client())}'
    git clone -q ssh://{login}@{ALLOWED}:{sshd.port}{repository} copy; echo "good=$?"
    cat copy/file
    {" ".join(sshd.client())} -p {world.forbidden.port} {login}@{DENIED} true; echo "bad=$?"
    git clone -q ssh://{login}@{DENIED}:{world.forbidden.port}{repository} other; echo "bad=$?"
    """
    shown = ("--allow-read", str(sshd.key))
    run = world.netsandbox("run", *world.options(sshd.port), *shown, "--", "sh", "-c", script)
    lines = run.stdout.split("\n")
    assert lines[:4] == ["over ssh", "status=5", "good=0", "from the repository"], (run.stdout, run.stderr)
    assert "bad=0" not in lines
    assert len(run.events("egress", verdict="allow", host=ALLOWED)) == 2
    assert world.forbidden.accepts == 0
    world.assert_denied(run)


def test_git_over_ssh_by_its_profile_with_an_agent(
    world: World, repository: Path, sshd: SecureShell, agent: Agent
) -> None:
    """The key stays with the agent, the home's .ssh stays hidden, and only a host whose key is known is talked to."""
    home = world.netsandbox.home()
    (home.path / ".ssh").mkdir()
    (home.path / ".ssh" / "id_ed25519").write_bytes(sshd.key.read_bytes())
    known = home.path / "config" / "netsandbox" / "known_hosts"
    known.parent.mkdir(parents=True)
    kind, key = (sshd.folder / "host.pub").read_text().split()[:2]
    known.write_text(f"[{ALLOWED}]:{sshd.port} {kind} {key}\n")
    good, bad = (
        f"ssh://{account()}@{name}:{port}{repository}"
        for name, port in ((ALLOWED, sshd.port), (DENIED, world.forbidden.port))
    )
    script = f"cat ~/.ssh/id_ed25519 || echo hidden; echo more >> {known} || echo kept\n{CLONE_AND_PUSH}"
    options = (*world.options(sshd.port), "git-ssh")
    settings = {"SSH_AUTH_SOCK": str(agent.socket)}
    run = world.netsandbox("run", *options, "--", "sh", "-c", script, "sh", good, bad, env=settings)
    lines = run.stdout.split("\n")
    assert lines[:4] == ["hidden", "kept", "from the repository", "good=0"], (run.stdout, run.stderr)
    assert lines[4].startswith("bad=")
    assert world.forbidden.accepts == 0
    log = subprocess.run(["git", "log", "--format=%s", "main"], cwd=repository, capture_output=True, check=True)
    assert log.stdout.split() == [b"second", b"first"]
    without = world.netsandbox("run", *options[:-1], "--", "git", "clone", "-q", good, "third", env=settings)
    assert without.returncode != 0, "the twin: without the profile there is neither key nor known host"
    assert "--allow-read ~/.ssh" not in run.stderr + without.stderr, "no line advises a private key"
    known.write_text("")
    unknown = world.netsandbox("run", *options, "--", "git", "clone", "-q", good, "fourth", env=settings)
    assert (unknown.returncode, "Host key verification failed" in unknown.stderr) == (128, True)
