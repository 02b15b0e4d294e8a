"""`--har FILE` end to end: the requests of a session as a file that tools of browsers open, without its credentials."""

from __future__ import annotations

import json
import signal
import stat
import sys
import time
import tomllib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_inspection import Inspecting
from tests.rig.authority import Authority
from tests.rig.browser import started
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine
from tests.rig.https_canary import https_canary
from tests.rig.world import ALLOWED, need

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the engine needs seccomp")
pytest.importorskip("mitmproxy")

SECRET = "c4n4ry-of-redaction"


@pytest.fixture
def inspecting(netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority) -> Iterator[Inspecting]:
    with https_canary(ca.issue(ALLOWED)) as server:
        yield Inspecting(netsandbox, authority, ca, server)


def read(path: Path) -> list[dict[str, Any]]:
    """The entries, after a check of every field that importers need."""
    log = json.loads(path.read_bytes())["log"]
    assert (log["version"], log["creator"]["name"]) == ("1.2", "netsandbox")
    pages = {page["id"] for page in log["pages"]}
    entries: list[dict[str, Any]] = log["entries"]
    for entry in entries:
        request, response = entry["request"], entry["response"]
        assert entry["pageref"] in pages
        assert entry["startedDateTime"].endswith("Z")
        assert entry["time"] == sum(entry["timings"][name] for name in ("send", "wait", "receive"))
        assert entry["cache"] == {}
        for message in (request, response):
            assert {"httpVersion", "cookies", "headers", "headersSize", "bodySize"} <= message.keys()
            assert all(pair.keys() == {"name", "value"} for pair in message["headers"])
        assert {"method", "url", "queryString"} <= request.keys()
        assert {"status", "statusText", "content", "redirectURL"} <= response.keys()
        assert {"size", "mimeType"} <= response["content"].keys()
    return entries


def headers(message: dict[str, Any]) -> dict[str, str]:
    return {pair["name"].lower(): pair["value"] for pair in message["headers"]}


def test_requests_are_in_the_file_and_credentials_are_not(inspecting: Inspecting, tmp_path: Path) -> None:
    curl, url, path = need("curl", "curl"), inspecting.url, tmp_path / "session.har"
    secrets = f"-H 'Authorization: Bearer {SECRET}' -b 'id={SECRET}' -H 'X-Api-Key: {SECRET}'"
    first = f"{curl} -sS {secrets} -H 'X-Plain: seen' '{url}/v1/a?q=1&token={SECRET}'"
    script = f"{first}; {curl} -sS -d {SECRET} {url}/v1/b"
    run = inspecting.run("sh", "-c", script, rules=("--allow-http", f"GET {url}/v1/**", "--har", str(path)))
    assert inspecting.server.requests == [f"GET /v1/a?q=1&token={SECRET}"], run.stderr
    assert inspecting.server.heads[0]["authorization"] == f"Bearer {SECRET}"  # it was sent, so it could have leaked
    assert SECRET not in path.read_text()
    allowed, refused = read(path)
    assert allowed["request"]["url"] == f"{url}/v1/a"
    sent = headers(allowed["request"])
    assert (sent["authorization"], sent["cookie"], sent["x-api-key"]) == ("redacted",) * 3
    assert sent["x-plain"] == "seen"
    size = len(f"answer /v1/a?q=1&token={SECRET}\n")
    assert (allowed["response"]["status"], headers(allowed["response"])["content-length"]) == (200, str(size))
    assert allowed["response"]["content"]["size"] == size
    assert (refused["request"]["method"], refused["response"]["status"]) == ("POST", 403)
    assert "request-not-allowed" in refused["comment"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    record = run.events("http", verdict="allow")[0]
    assert allowed["connection"] == str(record["connection"])
    assert "query" not in record


def test_the_query_is_recorded_if_it_is_wanted(inspecting: Inspecting, tmp_path: Path) -> None:
    path = tmp_path / "session.har"
    rules = ("--allow-http", f"{inspecting.url}/**", "--har", str(path), "--record-query")
    run = inspecting.run("curl", "-sS", f"{inspecting.url}/a?q=1&token={SECRET}", rules=rules)
    (entry,) = read(path)
    assert entry["request"]["url"] == f"{inspecting.url}/a?q=1&token=redacted"
    assert entry["request"]["queryString"][0] == {"name": "q", "value": "1"}
    (record,) = run.events("http")
    assert (record["path"], record["query"]) == ("/a", "q=1&token=redacted")
    assert run.log_path is not None
    assert SECRET not in run.log_path.read_text()


def test_bodies_are_kept_by_option_and_in_bounds(inspecting: Inspecting, tmp_path: Path) -> None:
    path, url = tmp_path / "session.har", inspecting.url
    script = f"""
    curl -sS -H 'Content-Type: application/json' -d '{{"a": 1}}' {url}/json
    curl -sS -d 'user=me&password={SECRET}' {url}/form
    head -c 300000 /dev/zero | curl -sS -H 'Content-Type: x/y' --data-binary @- {url}/big/400000 >/dev/null
    curl -sS --http2 {url}/two
    """
    rules = ("--allow-http", f"{url}/**", "--har", str(path), "--har-bodies", "100kB")
    run = inspecting.run("sh", "-c", script, rules=rules)
    plain, form, big, two = read(path)
    assert plain["request"]["postData"] == {"mimeType": "application/json", "text": '{"a": 1}'}
    assert b64decode(plain["response"]["content"]["text"]) == b"answer /json\n", run.stderr  # it has no type
    assert form["request"]["postData"]["text"] == "user=me&password=redacted"
    assert (big["request"]["bodySize"], big["response"]["content"]["size"]) == (300000, 400000)
    assert b64decode(big["request"]["postData"]["text"]) == b"\0" * 100000
    assert len(b64decode(big["response"]["content"]["text"])) == 100000
    assert big["response"]["content"]["comment"] == "the first 100000 bytes"
    assert two["response"]["status"] == 200


def test_plain_requests_are_in_the_file_too(
    netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, tmp_path: Path
) -> None:
    path = tmp_path / "session.har"
    with https_canary(None) as server:
        inspecting = Inspecting(netsandbox, authority, ca, server)
        url = f"http://{ALLOWED}:{server.port}"
        direct = f"curl -sS --noproxy '*' -d x {url}/v1/b {url}/v1/c"
        script = f"curl -sS -b id={SECRET} {url}/v1/a; {direct}; curl -sS {url}/no"
        rules = ("--allow-http", f"{url}/v1/**", "--har", str(path))
        run = inspecting.run("sh", "-c", script, rules=rules)
    entries = read(path)
    assert SECRET not in path.read_text()
    shown = [(each["request"]["method"], each["request"]["url"], each["response"]["status"]) for each in entries]
    assert shown == [
        ("GET", f"{url}/v1/a", 200),
        ("POST", f"{url}/v1/b", 200),
        ("POST", f"{url}/v1/c", 200),
        ("GET", f"{url}/no", 403),
    ], run.stderr
    assert headers(entries[0]["request"])["cookie"] == "redacted"
    assert [each["response"]["content"]["size"] for each in entries[:3]] == [13] * 3
    ends = [(each["path"], each["status"], each["bytes_up"], each["bytes_down"]) for each in run.events("http.end")]
    assert ends == [("/v1/a", 200, 0, 13), ("/v1/b", 200, 1, 13), ("/v1/c", 200, 1, 13)]


def test_a_command_cannot_write_the_file(inspecting: Inspecting, tmp_path: Path) -> None:
    path = tmp_path / "session.har"
    script = f"curl -sS {inspecting.url}/a; echo x >> {path}; rm -f {path}; mv {path} {path}.old; echo x > {path}"
    rules = ("--allow-http", f"{inspecting.url}/**", "--har", str(path), "--allow-write", str(tmp_path))
    run = inspecting.run("sh", "-c", script, rules=rules)
    assert len(read(path)) == 1, run.stderr


def test_in_the_project_a_command_reads_the_file_and_cannot_write_it(
    netsandbox: CommandLine, inspecting: Inspecting
) -> None:
    attack = "echo x > s.har; rm -f s.har; mv s.har t; ln -sf t s.har"
    script = f"curl -sS {inspecting.url}/a; until grep -q pageref s.har; do sleep 0.05; done; echo seen; {attack}"
    run = inspecting.run("sh", "-c", script, rules=("--allow-http", f"{inspecting.url}/**", "--har", "s.har"))
    assert run.stdout == "answer /a\nseen\n", run.stderr
    assert len(read(netsandbox.home().work / "s.har")) == 1


IMPORT = """(async () => {
    const har = await import('devtools://devtools/bundled/models/har/har.js');
    const log = new har.HARFormat.HARRoot(JSON.parse(TEXT)).log;
    const requests = har.Importer.Importer.requestsFromHARLog(log);
    return requests.map(each => [each.requestMethod, each.url(), each.statusCode, each.resourceSize]);
})()"""


def test_a_browser_imports_the_file(inspecting: Inspecting, tmp_path: Path) -> None:
    """By the importer of its own tools."""
    path, url = tmp_path / "session.har", inspecting.url
    rules = ("--allow-http", f"GET,POST {url}/a", "--har", str(path), "--har-bodies", "1kB")
    inspecting.run("sh", "-c", f"curl -sS {url}/a; curl -sS -d x=y {url}/a; curl -sS {url}/b", rules=rules)
    browser = started()
    try:
        tab = browser.open("devtools://devtools/bundled/devtools_app.html")
        tab.wait_for("document.readyState == 'complete'")
        imported = tab.evaluate(IMPORT.replace("TEXT", json.dumps(path.read_text())))
    finally:
        browser.close()
    assert imported == [["GET", f"{url}/a", 200, 10], ["POST", f"{url}/a", 200, 10], ["GET", f"{url}/b", 403, 0]]


def test_a_killed_session_leaves_a_whole_file(netsandbox: CommandLine, inspecting: Inspecting, tmp_path: Path) -> None:
    path = tmp_path / "session.har"
    rules = ("--allow-http", f"{inspecting.url}/**", "--har", str(path))
    names = ("--upstream-dns", inspecting.authority.address, "--allow-address", f"127.0.0.1:{inspecting.server.port}")
    command = ("sh", "-c", f"curl -sS {inspecting.url}/a; exec sleep 60")
    spawned = netsandbox.spawn("run", *rules, *names, "--", *command, env=inspecting.trust)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (path.exists() and b'"pageref"' in path.read_bytes()):
        time.sleep(0.05)
    spawned.signal(signal.SIGKILL)
    spawned.wait()
    assert len(read(path)) == 1


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (("--allow-domain", "example.com", "--har", "x.har"), "add --inspect HOST"),
        (("--inspect", "example.com", "--har-bodies", "64kB"), "add --har FILE"),
        (("--inspect", "example.com", "--har", "x.har", "--har-bodies", "1GB"), "write 64kB"),
        (("--inspect", "example.com", "--har", "/proc/x.har"), "HAR file '/proc/x.har' "),
        (("--inspect", "example.com", "--har", "/etc/hostname"), "not a HAR of netsandbox"),
    ],
)
def test_what_cannot_be_is_one_line(inspecting: Inspecting, rules: tuple[str, ...], message: str) -> None:
    run = inspecting.run("true", rules=rules)
    assert run.returncode in (1, 2), run.stderr
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


def test_learnt_requests_are_enough_and_nothing_else_is_let_through(
    netsandbox: CommandLine, inspecting: Inspecting, tmp_path: Path
) -> None:
    url, path = inspecting.url, tmp_path / "session.har"
    names = ("--upstream-dns", inspecting.authority.address)
    reads = f"for i in a b c d e; do curl -sSf {url}/simple/$i/; done; curl -sSf -I {url}/simple/a/"
    used = f"{reads}; curl -sSf -d x {url}/up"
    lifted = ("--allow-address", f"127.0.0.1:{inspecting.server.port}")
    options = (*names, *lifted, "--inspect", "*:*", "--har", path, "--write")
    learned = netsandbox("learn", *options, "--", "sh", "-c", used, env=inspecting.trust)
    assert f'+    "GET,HEAD {url}/simple/**",  # 5 paths were used: ' in learned.stderr
    assert len(read(path)) == 7
    file = tomllib.loads((netsandbox.home().work / ".netsandbox.toml").read_text())["network"]
    assert file["allow_http"] == [f"GET,HEAD {url}/simple/**", f"POST {url}/up"]
    assert "allow_domains" not in file
    assert netsandbox("trust", "--yes").returncode == 0
    again = netsandbox("run", *names, "--", "sh", "-ec", used, env=inspecting.trust)
    assert again.returncode == 0, again.stderr
    before = len(inspecting.server.requests)
    other = f"curl -sS -d x {url}/simple/a/; curl -sS {url}/up"
    refused = netsandbox("run", *names, "--", "sh", "-c", other, env=inspecting.trust)
    assert len(inspecting.server.requests) == before
    assert f"denied POST {url}/simple/a/ (request-not-allowed); allow it with --allow-http" in refused.stderr
    explained = netsandbox("explain", "--last")
    assert explained.stdout.startswith(f"denied    GET {url}/up")
    assert f"netsandbox run --allow-http 'GET {url}/up'" in explained.stdout
    shown = netsandbox("audit", "show", "--http")
    assert f"deny     -  GET {url}/up" in shown.stdout
    assert "Denied requests: 2 attempts" in netsandbox("audit", "summary").stdout
