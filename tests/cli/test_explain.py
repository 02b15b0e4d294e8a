"""`netsandbox explain` says what the doors would say, from which rule, and the change it names does turn the answer."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.cli.explain import explain, main, read_target
from netsandbox.errors import UsageError
from netsandbox.policy.ip import Address
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.variables import VariableRules


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str]:
    status = main(shlex.split(line))
    return status, capsys.readouterr().out


GOLDEN = {
    "example.com --allow-domain example.com": (
        0,
        """\
example.com
  tcp 80, 443  allowed  a rule allows it: example.com (--allow-domain)
  dns          allowed  a rule allows it: example.com (--allow-domain)
  note: the addresses it resolves to are checked again: private ones need --allow-address
""",
    ),
    "example.com --allow-domain example.com:443": (
        1,
        """\
example.com
  tcp 80       denied   the host is allowed, this port is not: example.com:443 (--allow-domain)
                        to allow it: --allow-domain example.com
  tcp 443      allowed  a rule allows it: example.com:443 (--allow-domain)
  dns          allowed  a rule allows it: example.com:443 (--allow-domain)
""",
    ),
    "https://api.example.com/v1?key=1": (
        1,
        """\
api.example.com
  tcp 443      denied   the session is offline, so nothing leaves
                        to allow it: --allow-domain api.example.com
  dns          denied   the session is offline, so nothing leaves
                        to allow it: --allow-domain api.example.com
""",
    ),
    "localhost:5432 --allow-domain example.com": (
        1,
        """\
localhost
  tcp 5432     denied   the address is guarded and no address rule allows it: 127.0.0.1 is loopback
                        to allow it: --connect-host 5432
  dns          allowed  it is the session's own loopback
  note: inside a session this is the session's own loopback, which always works; the verdict is on the host's
""",
    ),
    "[2001:db8::1]:443 --allow-domain example.com": (
        1,
        """\
[2001:db8::1]
  tcp 443      denied   it is a bare address and no address rule allows it
                        to allow it: --allow-address [2001:db8::1]:443
""",
    ),
    "dns.google --online": (
        1,
        """\
dns.google
  tcp 80, 443  denied   it is a public resolver that would bypass the name filter
                        no option allows it
  dns          denied   it is a public resolver that would bypass the name filter
                        no option allows it
""",
    ),
    "10.0.0.1 --allow-address 10.0.0.0/8": (
        0,
        """\
10.0.0.1
  tcp 80, 443  allowed  a rule allows it: 10.0.0.0/8 (--allow-address)
""",
    ),
}


@pytest.mark.parametrize(("line", "expected"), GOLDEN.items())
def test_people_read_verdict_rule_origin_and_remedy(capsys, line, expected):
    assert run(capsys, line) == expected


def test_a_rule_from_a_file_is_named_with_its_line(capsys, tmp_path: Path):
    file = tmp_path / "rules.toml"
    file.write_text('[network]\nallow_domains = ["*.example.com"]\ndeny_domains = [\n  "bad.example.com",\n]\n')
    status, text = run(capsys, f"bad.example.com:443 --config {file}")
    assert status == 1
    assert f"a deny rule names it: bad.example.com ({file}:4)" in text
    assert f"to allow it: remove bad.example.com from deny_domains ({file}:4)" in text


def test_programs_read_stable_keys(capsys):
    status, text = run(capsys, "e.test:8443 --allow-domain e.test --json")
    answer = json.loads(text)
    assert status == 1
    assert list(answer) == ["v", "host", "port", "allowed", "verdicts", "notes"]
    assert (answer["v"], answer["host"], answer["port"], answer["allowed"]) == (1, "e.test", 8443, False)
    assert answer["verdicts"][0] == {
        "kind": "tcp",
        "port": 8443,
        "allowed": False,
        "reason": "port-not-allowed",
        "because": "the host is allowed, this port is not: e.test (--allow-domain)",
        "rule": "e.test",
        "origin": "--allow-domain",
        "address": None,
        "guard": None,
        "change": "--allow-domain e.test:8443",
    }
    assert answer["verdicts"][1]["kind"] == "dns"


def test_without_a_host_the_whole_policy_is_shown(capsys, monkeypatch):
    for name in filter(lambda name: not VariableRules().passes(os.fsencode(name)), tuple(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("NPM_TOKEN", "hush")
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    line = "--allow-domain '*.example.com' --deny-domain x.example.com --allow-address '10.0.0.0/8:*'"
    status, text = run(capsys, f"{line} --upstream-dns 192.0.2.53 --upstream-proxy http://me:secret@proxy.test:3128")
    assert status == 0
    assert [line for line in text.splitlines() if not line.endswith("  the project")][:12] == [
        "file      there is no configuration file",
        "mode      filtered: what a rule allows, and nothing else",
        "allow     *.example.com                    ports 80, 443    --allow-domain",
        "deny      x.example.com                    every port       --deny-domain",
        "address   10.0.0.0/8:*                     every port       --allow-address",
        "ports     ports 80, 443 where an allow rule names none",
        "dns       192.0.2.53 port 53",
        "proxy     http://proxy.test:3128",
        "read      project: the system, toolchains, plain settings, the project",
        "write     the project, a private home that is kept for it, own temporary folders",
        "withheld  GITHUB_TOKEN, NPM_TOKEN",
        "always    denied: known DNS-over-HTTPS and DNS-over-TLS services, whatever allows them",
    ]


def test_the_policy_as_json_keeps_the_proxys_password_to_itself(capsys):
    _, text = run(capsys, "--json --upstream-proxy http://me:secret@proxy.test:3128 --deny-domain x.test")
    answer = json.loads(text)
    assert "secret" not in text
    assert answer["mode"] == "offline"
    assert answer["set_env"] == {}
    assert "PATH" not in answer["withheld"]
    assert answer["deny_domains"] == [{"rule": "x.test", "ports": None, "origin": "--deny-domain"}]


NO_HOSTS = """
a..b x:0 x: x:65536 x:80:80 u@h https://u@h/ ftp://h/ [::1 [::1]x [::1]: 127.1 2001:db8::1:80 http://a\\b/ *.example.com
[example.com] example.com/path https://
"""


@pytest.mark.parametrize("word", ["", "a b", *NO_HOSTS.split()])
def test_what_is_no_host_is_an_error_and_not_a_verdict(word):
    with pytest.raises(UsageError) as error:
        main([word])
    assert error.value.status == 2


@pytest.mark.parametrize("arguments", [["a.test", "b.test"], ["a.test", "--", "curl"], ["--no-such-option"]])
def test_more_than_one_host_or_a_command_is_an_error(arguments):
    with pytest.raises(UsageError):
        main(arguments)


@pytest.mark.parametrize(
    ("word", "host", "port"),
    [
        ("EXAMPLE.com.", "example.com", None),
        ("http://example.com", "example.com", 80),
        ("https://example.com:8443/x", "example.com", 8443),
        ("[::ffff:192.0.2.1]:22", "192.0.2.1", 22),
        ("2001:db8::1", "2001:db8::1", None),
        ("bücher.example", "xn--bcher-kva.example", None),
    ],
)
def test_a_host_is_read_in_every_spelling_people_use(word, host, port):
    assert (read_target(word)[0].text, read_target(word)[1]) == (host, port)


@given(st.text(max_size=60))
def test_any_word_is_a_host_or_a_usage_error(word):
    try:
        host, port = read_target(word)
    except UsageError:
        return
    assert canonical(host.bracketed) == host  # INV-2: what was read is canonical already
    assert port is None or 0 < port < 65536


def test_the_hosts_own_address_is_denied_online_as_at_the_doors():
    own = Address(4, 0xC0000207)
    ((_, explained),) = explain(Policy(mode="online"), canonical("192.0.2.7"), 80, {own})
    assert (explained.verdict.allowed, explained.verdict.guard) == (False, "own-address")
    assert explained.change == "--allow-address 192.0.2.7:80"


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ("--allow-domain other.test", "example.com:443"),
        ("--allow-domain example.com", "example.com:8443"),
        ("", "192.0.2.9:22"),
        ("--online", "10.0.0.1:80"),
        ("--allow-domain other.test", "localhost:5432"),
        ("--offline", "127.0.0.1:5432"),
        ("--online", "[::1]:5432"),
    ],
)
def test_the_change_it_names_turns_the_answer(capsys, rules, word):
    _, text = run(capsys, f"{word} {rules} --json")
    change = json.loads(text)["verdicts"][0]["change"]
    assert run(capsys, f"{word} {rules} {change}")[0] == 0


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("other.test", True),
        ("example.com:8443", True),
        ("bad.test", False),
        ("192.0.2.7", False),
        ("dns.google", False),
    ],
)
def test_where_a_session_would_ask_that_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str, asked: bool
) -> None:
    file = tmp_path / "asking.toml"
    network = "[network]\nallow_domains = ['example.com']\ndeny_domains = ['bad.test']\n"
    file.write_text(f"{network}[approvals]\nask = true\nwait = 7\n")
    status, shown = run(capsys, f"{target} --config {file}")
    assert status == 1
    assert ("a session asks you first and waits 7 s" in shown) == asked
    assert run(capsys, f"example.com --config {file}")[0] == 0
    _, whole = run(capsys, f"--config {file}")
    assert "ask       you are asked about other names, for 7 s each" in whole
    assert json.loads(run(capsys, f"--json --config {file}")[1])["ask"] == 7


@pytest.mark.parametrize(("word", "status"), [("localhost:5432", 0), ("localhost:5433", 1), ("127.0.0.2:5432", 1)])
def test_a_port_of_the_hosts_localhost_is_allowed_by_its_option(
    capsys: pytest.CaptureFixture[str], word: str, status: int
) -> None:
    found, shown = run(capsys, f"{word} --connect-host 5432")
    assert found == status
    assert ("a rule allows it: 5432 (--connect-host)" in shown) == (status == 0)


def test_rules_of_a_file_that_nobody_trusts_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or the user would look for the mistake in the rule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".netsandbox.toml").write_text('[network]\nallow_domains = ["example.com"]\n')
    assert main(["example.com"]) == 1
    shown = capsys.readouterr()
    assert "to allow it: --allow-domain example.com" in shown.out
    assert "would open network.allow_domains; ignored until you run `netsandbox trust`" in shown.err
    file = tmp_path / ".netsandbox.toml"
    assert f"  note: {file}:2 would allow it, once you run `netsandbox trust {file}`\n" in shown.out
    assert main(["other.example.com"]) == 1
    assert "would allow it" not in capsys.readouterr().out, "the twin: this file would not"
    assert main(["example.com", "--json"]) == 1
    assert main(["example.com", "--no-config"]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["POST https://example.com/x"], ["POST", "https://example.com/x"]])
def test_a_request_is_one_word_or_two_with_rules_for_requests_or_without(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--no-config"]) == 1
    assert "to allow it: --allow-domain example.com" in capsys.readouterr().out
    assert main([*words, "--no-config", "--allow-domain", "example.com"]) == 0
    assert main([*words, "--no-config", "--allow-http", "GET https://example.com/**"]) == 1
    assert "--allow-http 'POST https://example.com/x'" in capsys.readouterr().out
