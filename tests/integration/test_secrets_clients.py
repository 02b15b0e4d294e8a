"""Secrets that stay outside, with the tools that use them: git over https, npm, and the profiles of agents."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine, Run
from tests.rig.git_server import made_repository, smart_http
from tests.rig.https_canary import HttpsCanary, Respond, https_canary
from tests.rig.world import ALLOWED, need

pytestmark = [
    pytest.mark.open_files,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp"),
]
pytest.importorskip("mitmproxy")

VALUE = "npm_cAnArY0fTheSecret7Zq9Lm2Nx4Bv6"


@pytest.fixture
def server(ca: CertificateAuthority, authority: Authority) -> Iterator[HttpsCanary]:
    authority.answer(ALLOWED, "127.0.0.1")
    with https_canary(ca.issue(ALLOWED)) as made:
        yield made


class Client:
    """Runs a tool in a session that reaches the server."""

    def __init__(self, netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, server: HttpsCanary):
        self.netsandbox = netsandbox
        self.place = f"{ALLOWED}:{server.port}"
        self.environment = {"SSL_CERT_FILE": str(ca.cert)}
        self._names = ("--upstream-dns", authority.address, "--allow-address", f"127.0.0.1:{server.port}")

    def run(self, *words: str) -> Run:
        run = self.netsandbox("run", *self._names, *words, env=self.environment, timeout=90)
        assert VALUE not in run.stdout + run.stderr
        assert not any(VALUE in json.dumps(record) for record in run.audit)
        return run


@pytest.fixture
def client(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, server: HttpsCanary) -> Client:
    return Client(netsandbox, authority, ca, server)


def guarded(wanted: str, respond: Respond) -> Respond:
    """401 without these credentials."""

    def answer(method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        if headers.get("authorization") != wanted:
            return 401, {"www-authenticate": 'Basic realm="here"'}, b"no"
        return respond(method, target, headers, body)

    return answer


CLONE_AND_PUSH = """
set -e
git clone -q "$1" copy
cd copy
echo more >> file
git -c user.name=test -c user.email=test@example.com commit -q -a -m second
git push -q origin main
echo pushed
"""


def test_git_clones_and_pushes(client: Client, server: HttpsCanary, short_tmp: Path, tmp_path: Path) -> None:
    need("git", "git")
    repository = made_repository(short_tmp)
    wanted = "Basic " + b64encode(f"x-access-token:{VALUE}".encode()).decode()
    server.respond = guarded(wanted, smart_http(repository.parent))
    config = tmp_path / "c.toml"
    config.write_text(f'[[secret]]\nname = "FORGE_TOKEN"\nhosts = ["{client.place}"]\ngit = "x-access-token"\n')
    client.environment["FORGE_TOKEN"] = VALUE
    url = f"https://{client.place}/project.git"
    words = ("--config", str(config), "--allow-domain", client.place, "--", "sh", "-c", CLONE_AND_PUSH, "sh", url)
    run = client.run(*words)
    assert "pushed" in run.stdout, (run.stdout, run.stderr)
    assert {each["secret"] for each in run.events("http") if "secret" in each} == {"FORGE_TOKEN"}
    assert {head.get("authorization") for head in server.heads} == {None, wanted}


def registry(method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
    kind = {"content-type": "application/json"}
    if target == "/-/whoami":
        return 200, kind, b'{"username": "me"}'
    return (201, kind, b'{"ok": true}') if method == "PUT" else (404, kind, b"{}")


def test_npm_publishes_with_its_profile(client: Client, server: HttpsCanary) -> None:
    need("npm", "npm")
    server.respond = guarded(f"Bearer {VALUE}", registry)
    home = client.netsandbox.home()
    url = f"//{client.place}/"
    (home.path / ".npmrc").write_text(f"registry=https:{url}\n{url}:_authToken=${{NPM_TOKEN}}\n")
    (home.work / "package.json").write_text('{"name": "nobody-has-this", "version": "1.0.0"}')
    client.environment |= {"NPM_TOKEN": VALUE, "npm_config_userconfig": str(home.path / ".npmrc")}
    run = client.run("npm-publish", "--", "sh", "-c", "echo $NPM_TOKEN; npm whoami && npm publish")
    assert "me\n" in run.stdout, (run.stdout, run.stderr)
    assert run.stdout.startswith("npm_")
    assert "PUT /nobody-has-this" in server.requests, (run.stdout, run.stderr)
    assert run.events("http", secret="NPM_TOKEN", method="PUT")


def test_an_agents_key_stays_outside(client: Client) -> None:
    script = 'echo "$ANTHROPIC_API_KEY ${CURL_CA_BUNDLE:-none}"'
    key = f"sk-ant-api03-{VALUE}"
    without = client.run("claude", "--", "sh", "-c", script)
    assert without.stdout == " none\n", without.stderr  # there is no engine
    client.environment["ANTHROPIC_API_KEY"] = key
    run = client.run("claude", "--", "sh", "-c", script)
    placeholder, bundle = run.stdout.split()
    assert placeholder.startswith("sk-ant-api03-npm_"[:13])
    assert len(placeholder) == len(key)
    assert bundle != "none"
    exempt = client.netsandbox(
        "run", "claude", "--inspect-except", "api.anthropic.com", "--", "sh", "-c", script, env=client.environment
    )
    assert exempt.stdout == f"{key} none\n", exempt.stderr
