"""Secrets that stay outside, end to end: the server sees the value, and the session never does.

Each test searches everything that a session leaves for the value: output, notices, records, the state folder.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine, Run
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.world import ALLOWED

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp")
pytest.importorskip("mitmproxy")

VALUE = "ghp_cAnArY0fTheSecret7Zq9Lm2Nx4Bv6"
OTHER = "other.test"


class Keeping:
    """A session with the secret `TOKEN_X` for one HTTPS server."""

    def __init__(self, netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, server: HttpsCanary):
        self._netsandbox = netsandbox
        self.server = server
        self.authority = authority
        self.environment = {"SSL_CERT_FILE": str(ca.cert), "TOKEN_X": VALUE}
        for name in (ALLOWED, OTHER):
            authority.answer(name, "127.0.0.1")
        self.place = f"{ALLOWED}:{server.port}"
        self.url = f"https://{self.place}"

    def run(self, *command: str, options: tuple[str, ...] | None = None, **more: Any) -> Run:
        given = ("--secret", f"TOKEN_X@{self.place}") if options is None else options
        names = ("--upstream-dns", self.authority.address, "--allow-address", f"127.0.0.1:{self.server.port}")
        allowed = ("--allow-domain", self.place)
        run = self._netsandbox("run", *given, *allowed, *names, "--", *command, env=self.environment, **more)
        self.assert_hidden(run)
        return run

    def curl(self, path: str, *words: str, options: tuple[str, ...] | None = None) -> Run:
        script = f'curl -sS -D - {" ".join(words)} "{self.url}{path}"'
        return self.run("sh", "-c", script, options=options)

    def assert_hidden(self, run: Run) -> None:
        encoded = base64.b64encode(f"x-access-token:{VALUE}".encode()).decode()
        for form in (VALUE, encoded):
            assert form not in run.stdout
            assert form not in run.stderr
            for path in self._netsandbox.home().path.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    assert form.encode() not in path.read_bytes(), path

    def seen(self, header: str) -> list[str]:
        return [head.get(header, "") for head in self.server.heads]


@pytest.fixture
def keeping(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority) -> Iterator[Keeping]:
    with https_canary(ca.issue(ALLOWED, OTHER)) as server:
        yield Keeping(netsandbox, authority, ca, server)


BEARER = '-H "Authorization: Bearer $TOKEN_X"'


def test_the_server_gets_the_value_and_the_session_a_placeholder(keeping: Keeping) -> None:
    run = keeping.run("sh", "-c", f'echo "$TOKEN_X"; curl -sS -D - {BEARER} {keeping.url}/echo')
    placeholder = run.stdout.split("\n")[0]
    assert keeping.seen("authorization") == [f"Bearer {VALUE}"], (run.stdout, run.stderr)
    assert placeholder.startswith("ghp_")
    assert len(placeholder) == len(VALUE)
    assert run.stdout.count(f"/echo Bearer {placeholder}") == 2  # the header, and the body
    (record,) = run.events("http")
    assert record["secret"] == "TOKEN_X"


def test_each_place_gets_it(keeping: Keeping) -> None:
    place = keeping.place
    options = ("--secret", f"TOKEN_X@{place},header=x-api-key", "--secret", f"TOKEN_X@{keeping.url}/,query=key")
    keeping.curl("/echo", '-H "X-Api-Key: $TOKEN_X"', options=options)
    keeping.curl("/echo?a=b&key=$TOKEN_X", options=options)
    assert keeping.seen("x-api-key") == [VALUE, ""]
    assert keeping.server.requests == ["GET /echo", f"GET /echo?a=b&key={VALUE}"]


def test_basic_credentials_get_it(keeping: Keeping) -> None:
    run = keeping.curl("/echo", "-u", '"x-access-token:$TOKEN_X"')
    assert keeping.seen("authorization") == [
        "Basic " + base64.b64encode(f"x-access-token:{VALUE}".encode()).decode()
    ], run.stdout
    assert "Basic " in run.stdout


def test_basic_credentials_are_masked_however_the_server_writes_them(keeping: Keeping) -> None:
    """Attack: a user whose base64 has a slash, at a server that writes `\\/` for it in JSON, or `_` in a URL."""
    keeping.server.respond = lambda method, target, head, body: (
        200,
        {"x-shown": head["authorization"].replace("/", "_")},
        head["authorization"].replace("/", "\\/").encode(),
    )
    run = keeping.curl("/", "-u", '"ab??:$TOKEN_X"')
    assert keeping.seen("authorization") == ["Basic " + base64.b64encode(f"ab??:{VALUE}".encode()).decode()]
    assert "Basic YWI\\/Pz" in run.stdout, (run.stdout, run.stderr)
    assert "Basic YWI_Pz" in run.stdout
    value = base64.b64encode(f"ab??:{VALUE}".encode()).decode()[8:-2]
    assert value not in run.stdout


def test_compressed_messages_are_refused(keeping: Keeping) -> None:
    """gRPC compresses each message by itself, which no other header tells."""
    codings = ["gzip", "identity"]
    keeping.server.respond = lambda *request: (200, {"grpc-encoding": codings.pop(0)}, b"0")
    runs = [keeping.curl("/", BEARER, "-H 'grpc-accept-encoding: gzip'") for _ in "12"]
    assert ["x-netsandbox-reason: secret-answer" in run.stdout for run in runs] == [True, False]
    assert keeping.seen("grpc-accept-encoding") == ["", ""]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/echo", '-H "X-Other: $TOKEN_X"'),
        ("/echo/$TOKEN_X", ""),
        ("/echo?key=$TOKEN_X", ""),
        ("/echo", '-H "Authorization: Digest a=$TOKEN_X"'),
        ("/echo", '-H "Cookie: a=$TOKEN_X"'),
    ],
)
def test_a_placeholder_elsewhere_is_refused(keeping: Keeping, path: str, words: str) -> None:
    run = keeping.curl(path, words)
    assert "x-netsandbox-reason: secret-misplaced" in run.stdout, (run.stdout, run.stderr)
    assert keeping.server.requests == []
    assert run.events("egress", reason="secret-misplaced")
    assert "TOKEN_X" in run.events("egress", reason="secret-misplaced")[0]["detail"]


def test_a_body_with_a_placeholder_is_cut(keeping: Keeping) -> None:
    keeping.curl("/ok", "-d", "nothing")
    run = keeping.curl("/echo", "-d", '"x=$TOKEN_X"')
    assert keeping.server.bodies == [b"nothing"]
    assert run.events("egress", reason="secret-misplaced")


def test_another_host_and_plain_http_get_nothing(
    netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, keeping: Keeping
) -> None:
    other = f"{OTHER}:{keeping.server.port}"
    options = ("--secret", f"TOKEN_X@{keeping.place}", "--inspect", other, "--allow-domain", other)
    run = keeping.run("sh", "-c", f"curl -sS {BEARER} https://{other}/echo", options=options)
    assert "has the placeholder of TOKEN_X" in run.stdout, (run.stdout, run.stderr)
    assert keeping.server.requests == []
    assert run.events("egress", reason="secret-misplaced", host=OTHER)
    with https_canary(None) as plain:
        clear = Keeping(netsandbox, authority, ca, plain)
        words = [f"{proxy} {what}" for proxy in ("", "--noproxy '*'") for what in (BEARER, '-d "a=$TOKEN_X"')]
        script = "; ".join(f"curl -sS {each} http://{clear.place}/" for each in words)
        both = clear.run("sh", "-c", f"{script}; curl -sS http://{clear.place}/ok")
        assert both.stdout.count("(secret-misplaced)") == 4, (both.stdout, both.stderr)
        assert len(both.events("egress", reason="secret-misplaced")) == 4
        assert plain.requests == ["GET /ok"]


@pytest.mark.parametrize("path", ["/echo/gzip", "/echo/206"])
def test_an_answer_that_cannot_be_masked_is_refused(keeping: Keeping, path: str) -> None:
    run = keeping.curl(path, BEARER, "-H", '"Accept-Encoding: gzip"', "-H", '"Range: bytes=0-3"')
    assert "HTTP/1.1 502" in run.stdout, (run.stdout, run.stderr)
    assert "x-netsandbox-reason: secret-answer" in run.stdout
    assert keeping.seen("accept-encoding") == ["identity"]
    assert keeping.seen("range") == [""]
    assert run.events("egress", reason="secret-answer")


def test_an_answer_that_is_none_quotes_nothing(keeping: Keeping) -> None:
    for path in ("/echo/broken", "/echo/name"):
        run = keeping.curl(path, BEARER)
        assert "HTTP/1.1 502" in run.stdout, (run.stdout, run.stderr)


def test_a_websocket_gets_no_value(keeping: Keeping) -> None:
    words = ("-H 'Upgrade: websocket' -H 'Connection: Upgrade' -H 'Sec-WebSocket-Version: 13'", BEARER)
    run = keeping.curl("/", *words, "-H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='")
    assert "x-netsandbox-reason: secret-misplaced" in run.stdout, (run.stdout, run.stderr)
    assert keeping.server.requests == []


def test_a_har_file_has_no_value(keeping: Keeping, tmp_path: Path) -> None:
    har = tmp_path / "session.har"
    options = ("--secret", f"TOKEN_X@{keeping.place}", "--secret", f"TOKEN_X@{keeping.place},query=key")
    more = ("--har", str(har), "--har-bodies", "100kB", "--record-query")
    run = keeping.curl("/echo?key=$TOKEN_X", BEARER, options=(*options, *more))
    assert keeping.server.requests == [f"GET /echo?key={VALUE}"], (run.stdout, run.stderr)
    assert "/echo" in har.read_text()
    assert VALUE not in har.read_text()


def test_the_value_is_nowhere_inside(keeping: Keeping) -> None:
    """Not in another variable, the words of the command, or the environment of any process that the session sees."""
    keeping.environment["COPY"] = f"https://user:{VALUE}@host/"
    script = "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; echo $1 $COPY"
    options = ("--secret", f"TOKEN_X@{keeping.place}", "--pass-env", "COPY")
    run = keeping.run("sh", "-c", script, "sh", VALUE, options=options)
    assert run.stdout.splitlines()[-1].startswith("ghp_")


def test_with_the_broker_nobody_reads_the_supervisor(keeping: Keeping) -> None:
    script = "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; cat /proc/$PPID/environ; echo done"
    run = keeping.run("sh", "-c", script, options=("--backend", "broker", "--secret", f"TOKEN_X@{keeping.place}"))
    if run.stderr.startswith("netsandbox: ") and not run.stdout:
        pytest.skip(run.stderr)
    assert "done" in run.stdout


def test_sources_are_a_file_and_a_command(keeping: Keeping, tmp_path: Path) -> None:
    del keeping.environment["TOKEN_X"]
    (tmp_path / "token").write_text(f"{VALUE}\n")
    for source in (f'file = "{tmp_path}/token"', f'command = ["cat", "{tmp_path}/token"]'):
        config = tmp_path / "c.toml"
        config.write_text(f'[[secret]]\nname = "TOKEN_X"\nhosts = ["{keeping.place}"]\n{source}\n')
        keeping.curl("/echo", BEARER, options=("--config", str(config)))
    assert keeping.seen("authorization") == [f"Bearer {VALUE}"] * 2


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ('env = "NOT_SET"', "the variable NOT_SET is not set"),
        ('file = "/does/not/exist"', "No such file or directory"),
        ('command = ["sh", "-c", "echo ghp_loud-words-of-the-command; exit 3"]', "failed with status 3"),
        ('command = ["/does/not/exist"]', "no program is at '/does/not/exist'; check its path"),
        ('command = ["echo", "short"]', "fewer than 8"),
        ('command = ["printf", "two\\\\nlines-of-it"]', "bytes that no header carries"),
        ('command = ["true"]', "is empty"),
    ],
)
def test_without_a_value_nothing_runs(keeping: Keeping, tmp_path: Path, source: str, cause: str) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f'[[secret]]\nname = "TOKEN_X"\nhosts = ["{keeping.place}"]\n{source}\n')
    run = keeping.run("echo", "ran", options=("--config", str(config)))
    assert (run.returncode, run.stdout) == (2, "")
    assert cause in run.stderr
    assert "loud-words" not in run.stderr.partition("failed")[2]
    assert len(run.stderr.splitlines()) == 1


def test_an_untrusted_project_runs_no_command(keeping: Keeping, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    project = tmp_path / "project"
    project.mkdir()
    (project / ".netsandbox.toml").write_text(
        f'[[secret]]\nname = "TOKEN_X"\nhosts = ["{keeping.place}"]\ncommand = ["touch", "{mark}"]\n'
    )
    run = keeping.run("sh", "-c", "echo ran", options=(), cwd=project)
    assert "ran" in run.stdout, run.stderr
    assert not mark.exists()
    assert run.events("session.start")


@pytest.mark.parametrize("folder", ["project", "tools"])
def test_a_program_that_a_session_left_gives_no_value(keeping: Keeping, tmp_path: Path, folder: str) -> None:
    """Attack: a session leaves a program of this name in a folder of PATH, and the next one would run it outside."""
    mark = tmp_path / "mark"
    for name in ("project", "tools", "own"):
        (tmp_path / name).mkdir()
    own = tmp_path / "own" / "get-token"
    own.write_text(f"#!/bin/sh\necho {VALUE}\n")
    own.chmod(0o755)
    planted = tmp_path / folder / "get-token"
    writable = ("--allow-write", str(tmp_path / "tools"))
    script = f"printf '#!/bin/sh\\ntouch {mark}\\necho {'x' * 20}' > {planted}; chmod 755 {planted}"
    keeping.run("sh", "-c", script, options=writable, cwd=tmp_path / "project")
    assert planted.exists()
    config = tmp_path / "c.toml"
    config.write_text(f'[[secret]]\nname = "TOKEN_X"\nhosts = ["{keeping.place}"]\ncommand = ["get-token"]\n')
    before = f"{planted.parent}:{os.environ['PATH']}"
    keeping.environment["PATH"] = before
    refused = keeping.curl("/echo", BEARER, options=("--config", str(config)))
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert "get-token" in refused.stderr
    assert keeping.server.requests == []
    keeping.environment["PATH"] = f"{before}:{own.parent}"
    run = keeping.run(
        "sh", "-c", f"curl -sS {BEARER} {keeping.url}/echo", options=("--config", str(config)), cwd=tmp_path / "project"
    )
    assert keeping.seen("authorization") == [f"Bearer {VALUE}"], (run.stdout, run.stderr)
    assert not mark.exists()


def test_a_host_that_no_rule_allows_is_named(keeping: Keeping) -> None:
    run = keeping.run("true", options=("--secret", "TOKEN_X@elsewhere.test"))
    assert "no rule allows elsewhere.test, so TOKEN_X is of no use" in run.stderr
