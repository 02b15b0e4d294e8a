"""Budgets end to end: real clients in a session, real servers outside that count what reached them.

Each budget that is exceeded has its twin that is not. A server never gets a byte beyond the limit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.authority import Authority
from tests.rig.certificates import CertificateAuthority
from tests.rig.command import CommandLine, Run
from tests.rig.https_canary import HttpsCanary, https_canary
from tests.rig.world import need

ONE, TWO = "one.budget.test", "two.budget.test"
BIG = 3_000_000
LIMIT = 500_000


class Budgeted:
    """A session that reaches one server by two names."""

    def __init__(self, netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, server: HttpsCanary):
        self.netsandbox = netsandbox
        self.server = server
        self.trust = {"SSL_CERT_FILE": str(ca.cert)}
        self.scheme = "http"
        self._ca = str(ca.cert)
        self._authority = authority
        authority.answer("*.budget.test", "127.0.0.1")

    def url(self, path: str = "/", name: str = ONE) -> str:
        return f"{self.scheme}://{name}:{self.server.port}{path}"

    def run(self, *command: str, options: tuple[str, ...] = (), **more: Any) -> Run:
        names = ("--upstream-dns", self._authority.address, "--allow-address", f"127.0.0.1:{self.server.port}")
        allowed = ("--allow-domain", f"*.budget.test:{self.server.port}")
        return self.netsandbox("run", *options, *names, *allowed, "--", *command, env=self.trust, **more)

    def curl(self, *arguments: str) -> str:
        return " ".join((need("curl", "curl"), "-sS", "--cacert", self._ca, *arguments))

    def upload(self, size: int, name: str = ONE, *more: str) -> str:
        """A shell command; it prints `status=` and the status of the response."""
        put = self.curl("-T - -H Expect: -w ' status=%{http_code}'", *more, self.url("/up", name))
        return f"head -c {size} /dev/zero | {put}; echo"

    @property
    def got(self) -> int:
        return sum(map(len, self.server.bodies))


def denials(run: Run) -> list[dict[str, Any]]:
    return run.events("egress", verdict="deny", reason="budget")


@pytest.fixture(params=["http", "https"])
def budgeted(
    netsandbox: CommandLine, authority: Authority, ca: CertificateAuthority, request: pytest.FixtureRequest
) -> Iterator[Budgeted]:
    secure = request.param == "https"
    with https_canary(ca.issue(ONE, TWO) if secure else None) as server:
        made = Budgeted(netsandbox, authority, ca, server)
        made.scheme = request.param
        yield made


WAYS = {"proxy": (), "transparent": ("--noproxy '*'",)}


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("way", WAYS)
def test_an_upload_over_the_budget_is_cut_and_the_next_one_refused(budgeted: Budgeted, way: str) -> None:
    """By CONNECT, by a request to the proxy, and without a proxy; TLS and plain."""
    script = f"{budgeted.upload(BIG, ONE, *WAYS[way])}; {budgeted.upload(10, ONE, *WAYS[way])}"
    run = budgeted.run("sh", "-c", script, options=("--budget", f"{ONE}=up={LIMIT}B"))
    assert budgeted.got <= LIMIT, run.stderr
    assert "status=200" not in run.stdout, (run.stdout, run.stderr)
    found = denials(run)
    assert len(found) >= 2, run.audit
    assert {each["rule"] for each in found} == {f"{ONE}=up={LIMIT}B"}
    assert found[0]["detail"].startswith("500 kB up and ")
    ends = run.events("egress.end")
    assert sum(each["bytes_up"] for each in ends) <= LIMIT
    assert ends[0]["outcome"] == "refused"
    (used,) = run.events("session.end")[0]["budgets"]
    assert used["bytes_up"] == sum(each["bytes_up"] for each in ends) == LIMIT
    assert run.events("session.start")[0]["budgets"] == [f"{ONE}=up={LIMIT}B"]
    if (budgeted.scheme, way) == ("http", "proxy"):
        assert "status=403" in run.stdout
        assert f"--budget {ONE}=up={LIMIT}B is used up (500 kB up" in run.stdout


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("budget", [(), ("--budget", f"{ONE}=up=4MB"), ("--budget", f"{TWO}=1kB")])
def test_an_upload_within_the_budget_passes(budgeted: Budgeted, way: str, budget: tuple[str, ...]) -> None:
    run = budgeted.run("sh", "-c", budgeted.upload(BIG, ONE, *WAYS[way]), options=budget)
    assert "status=200" in run.stdout, run.stderr
    assert budgeted.got == BIG
    assert denials(run) == []
    (end,) = run.events("session.end")
    if not budget:
        assert "budgets" not in end


@pytest.mark.backend("namespaces", "broker")
def test_a_download_over_the_budget_is_cut(budgeted: Budgeted) -> None:
    get = budgeted.curl(budgeted.url(f"/big/{BIG}"), "| wc -c")
    run = budgeted.run("sh", "-c", f"{get}; {get}", options=("--budget", f"*.budget.test=down={LIMIT}B"))
    first, second = map(int, run.stdout.split())
    assert first <= LIMIT
    assert second <= (1000 if budgeted.scheme == "http" else 0)  # the text of the refusal
    assert denials(run)
    (used,) = run.events("session.end")[0]["budgets"]
    assert used["bytes_down"] == LIMIT
    twin = budgeted.run("sh", "-c", get, options=("--budget", f"{ONE}=down=4MB"))
    assert int(twin.stdout) == BIG


def test_hosts_of_a_pattern_share_a_budget_and_others_have_their_own(budgeted: Budgeted) -> None:
    script = "; ".join(budgeted.upload(300_000, name) for name in (ONE, TWO, ONE))
    run = budgeted.run("sh", "-c", script, options=("--budget", f"*.budget.test=up={LIMIT}B"))
    assert run.stdout.count("status=200") == 1, run.stdout
    assert budgeted.got <= LIMIT
    apart = budgeted.run("sh", "-c", script, options=("--budget", f"{ONE}=up=1MB", "--budget", f"{TWO}=up=1MB"))
    assert apart.stdout.count("status=200") == 3


def test_connections_at_once_share_a_budget(budgeted: Budgeted) -> None:
    script = " & ".join(f"({budgeted.upload(400_000, ONE)})" for _ in range(4))
    run = budgeted.run("sh", "-c", f"{script} & wait", options=("--budget", f"up={LIMIT}B"))
    assert budgeted.got <= LIMIT
    (used,) = run.events("session.end")[0]["budgets"]
    assert used["bytes_up"] == LIMIT
    assert len(denials(run)) >= 3


KEEP_ALIVE = """
import http.client, json, ssl, sys
secure, host, port = sys.argv[1] == "https", sys.argv[2], int(sys.argv[3])
made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
connection = made(host, port, timeout=20)
seen = []
try:
    for number in range(30):
        connection.request("POST", "/ok", b"x" * 1000)
        answer = connection.getresponse()
        answer.read()
        seen.append([answer.status, answer.getheader("x-netsandbox-reason")])
        if answer.status != 200:
            break
except OSError as error:
    seen.append([0, type(error).__name__])
print(json.dumps(seen))
"""


def keep_alive(budgeted: Budgeted, *options: str) -> tuple[list[list[Any]], Run]:
    arguments = (budgeted.scheme, ONE, str(budgeted.server.port))
    run = budgeted.run("python3", "-c", KEEP_ALIVE, *arguments, options=options)
    return json.loads(run.stdout or "[]"), run


def test_requests_of_one_connection_go_on_until_the_budget_ends(budgeted: Budgeted) -> None:
    seen, run = keep_alive(budgeted, "--budget", f"{ONE}=up=20kB")
    assert 5 < len(seen) < 20, (seen, run.stderr)
    assert all(status == 200 for status, _ in seen[:-1])
    assert seen[-1] == ([403, "budget"] if budgeted.scheme == "http" else [0, seen[-1][1]])
    assert len(budgeted.server.requests) <= len(seen)
    assert budgeted.got <= 20_000
    twin, _ = keep_alive(budgeted)
    assert len(twin) == 30


def inspecting(budgeted: Budgeted) -> tuple[str, ...]:
    pytest.importorskip("mitmproxy")
    if not sys.platform.startswith("linux"):
        pytest.skip("the engine needs seccomp")
    return ("--inspect", "*.budget.test:*")


@pytest.mark.parametrize("backend", ["namespaces", "broker"])
def test_an_inspected_upload_over_the_budget_is_cut(budgeted: Budgeted, backend: str) -> None:
    inspect, url = ("--backend", backend, *inspecting(budgeted)), budgeted.url("/up")
    put = f"{need('curl', 'curl')} -sS -T - -H Expect: -w ' status=%{{http_code}}' {url}; echo"
    script = f"head -c {BIG} /dev/zero | {put}; echo again | {put}"
    run = budgeted.run("sh", "-c", script, options=(*inspect, "--budget", f"{ONE}=up={LIMIT}B"))
    if backend == "broker" and run.stderr.startswith("netsandbox: ") and not run.stdout:
        pytest.skip(run.stderr)
    assert budgeted.got <= LIMIT
    assert "status=200" not in run.stdout, (run.stdout, run.stderr)
    assert len(denials(run)) >= 2
    (used,) = run.events("session.end")[0]["budgets"]
    assert used["bytes_up"] == LIMIT
    twin = budgeted.run("sh", "-c", script, options=(*inspect, "--budget", f"{ONE}=up=4MB"), timeout=120)
    assert twin.stdout.count("status=200") == 2, twin.stderr
    assert BIG in map(len, budgeted.server.bodies)


SPENT_ELSEWHERE = """
import http.client, json, sys
secure, host, port, size = sys.argv[1] == "https", sys.argv[2], int(sys.argv[3]), sys.argv[4]
made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
first, second = made(host, port, timeout=20), made(host, port, timeout=20)

def get(connection, path):
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
        return [answer.status, answer.getheader("x-netsandbox-reason"), body[:400]]
    except (OSError, http.client.HTTPException) as error:
        return [0, type(error).__name__, ""]

seen = [get(first, "/a"), get(second, "/big/" + size)[:2], get(first, "/b")]
print(json.dumps(seen))
"""


def test_a_request_of_an_inspected_connection_gets_403_when_the_budget_is_used_up(budgeted: Budgeted) -> None:
    """A connection that is open gets it, after another one has used the budget up."""
    options = (*inspecting(budgeted), "--budget", f"*.budget.test=down={LIMIT}B")
    arguments = (budgeted.scheme, ONE, str(budgeted.server.port))
    run = budgeted.run("python3", "-c", SPENT_ELSEWHERE, *arguments, str(BIG), options=options)
    first, second, third = json.loads(run.stdout)
    assert (first[0], third[:2]) == (200, [403, "budget"]), (run.stdout, run.stderr)
    assert f"--budget *.budget.test=down={LIMIT}B is used up (" in third[2]
    assert second[1] != "budget"  # it was cut
    assert [path for path in budgeted.server.requests if path == "GET /b"] == []
    (refused,) = run.events("http", verdict="deny", reason="budget")
    assert (refused["path"], refused["rule"]) == ("/b", f"*.budget.test=down={LIMIT}B")
    twin = budgeted.run("python3", "-c", SPENT_ELSEWHERE, *arguments, "1000", options=options)
    assert [status for status, *_ in json.loads(twin.stdout)] == [200, 200, 200]


def test_an_inspected_download_over_the_budget_is_cut(budgeted: Budgeted) -> None:
    inspect = inspecting(budgeted)
    get = f"{need('curl', 'curl')} -sS {budgeted.url(f'/big/{BIG}')} | wc -c"
    run = budgeted.run("sh", "-c", get, options=(*inspect, "--budget", f"{LIMIT}B"))
    assert int(run.stdout) <= LIMIT
    assert denials(run)


def test_summary_and_explanation_name_the_budget(budgeted: Budgeted) -> None:
    option = ("--budget", f"{ONE}=up={LIMIT}B")
    run = budgeted.run("sh", "-c", budgeted.upload(BIG), options=option)
    assert "(budget: it is used up)" in run.stderr
    summary = budgeted.netsandbox("audit", "summary", str(run.log_path))
    assert f"{ONE}=up={LIMIT}B" in summary.stdout
    assert "500 kB up" in summary.stdout
    assert "100 %" in summary.stdout
    last = budgeted.netsandbox("explain", "--last", *option, str(run.log_path))
    assert "budget: a budget for this host, or for the session, is used up" in last.stdout, last.stderr
    assert f"rule      {ONE}=up={LIMIT}B (--budget, in the policy as it is now)" in last.stdout
    assert "detail    500 kB up" in last.stdout


def test_explain_and_dry_run_tell_of_budgets(netsandbox: CommandLine) -> None:
    options = ("--allow-domain", "a.test", "--budget", "a.test=10MB", "--budget", "up=1MB")
    told = netsandbox("explain", "a.test", *options).stdout
    assert "note: a budget covers it: a.test=10MB (--budget)" in told
    assert "note: a budget covers the whole session: up=1MB (--budget)" in told
    assert "a.test=10MB" not in netsandbox("explain", "b.test", *options).stdout
    assert "a.test=10MB" in netsandbox("run", "--dry-run", *options, "--", "true").stdout
    whole = json.loads(netsandbox("explain", "--json", *options).stdout)
    assert whole["budgets"][1] == {"budget": "up=1MB", "origin": "--budget"}


def test_a_projects_file_can_narrow_without_trust(budgeted: Budgeted) -> None:
    home = budgeted.netsandbox.home()
    file = Path(home.work) / ".netsandbox.toml"
    file.write_text(f'[network]\nbudgets = ["{ONE}=up={LIMIT}B"]\n')
    run = budgeted.run("sh", "-c", budgeted.upload(BIG), options=("--budget", "4MB"))
    assert "would open" not in run.stderr
    assert budgeted.got <= LIMIT
    assert denials(run)[0]["rule"] == f"{ONE}=up={LIMIT}B"
    assert [used["budget"] for used in run.events("session.end")[0]["budgets"]] == [f"{ONE}=up={LIMIT}B", "4MB"]


@pytest.mark.parametrize("text", ["10", "example.com", "example.com=10XB", "dwon=1MB", "a.test=1MB,2MB", "up=0MB"])
def test_a_text_that_is_no_budget_stops_before_the_command(netsandbox: CommandLine, text: str) -> None:
    run = netsandbox("run", "--budget", text, "--", "echo", "ran")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("netsandbox: --budget: ")
    assert run.stderr.count("\n") == 1
