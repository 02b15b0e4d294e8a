"""Section A of the catalogue, against the real product: rules, ports, modes and configurations open nothing else.

The name server of these tests gives every name the canary's address, so whatever slips past the policy is accepted by
the canary and asked of the server; both count. `test_host_spelling_attacks` has the spellings of hosts.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.rig.inside import attack

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.mark.attack(1)
@pytest.mark.parametrize("spelling", ["nothing", "empty list", "absent key", "--offline", "--localhost"])
def test_1_an_empty_allow_list_lets_nothing_out(netsandbox: Any, canary: Any, authority: Any, spelling: str) -> None:
    server = canary.http()
    authority.answer("*.test", server.host)
    config = netsandbox.home().work / "netsandbox.toml"
    config.write_text(
        "[network]\nallow_domains = []\n" if spelling == "empty list" else "[network]\nproxy_env = true\n"
    )
    options = {"nothing": [], "--offline": ["--offline"], "--localhost": ["--localhost"]}
    chosen = options.get(spelling, ["--config", str(config)])
    script = """
sock, head = connect(b"any.test", port)
out["connect"], out["http"] = status(head), status(get(b"any.test", port))
out["socks"], out["dns"] = socks(b"any.test", port), ask(b"any.test")
out["direct"] = say(b"x", ("192.0.2.1", 80))
"""
    tried = attack(netsandbox, [*chosen, "--upstream-dns", authority.address], script, arguments={"port": server.port})
    assert (tried.out["connect"], tried.out["http"]) == (403, 403)
    assert tried.out["socks"] not in (0, -1)
    assert tried.out["dns"] == [3, []]
    assert tried.out["direct"] == ""
    assert (server.accepts, authority.queries) == (0, [])
    assert {record["reason"] for record in tried.denied()} == {"offline"}


@pytest.mark.attack(6)
@pytest.mark.parametrize("pattern", ["*", "*.com", "**", "[*]", "*.*", "?", "*.co.uk", "example.*", "", "a.*.test"])
def test_6_a_pattern_that_is_too_broad_is_refused_and_nothing_runs(netsandbox: Any, pattern: str) -> None:
    marker = netsandbox.home().work / "started"
    run = netsandbox("run", "--allow-domain", pattern, "--", "touch", marker)
    assert run.returncode == 2
    assert run.stderr.startswith("netsandbox: ")
    assert run.stderr.count("\n") == 1
    assert not marker.exists()


@pytest.mark.attack(13)
def test_13_an_ipv6_address_with_a_port_needs_brackets(netsandbox: Any) -> None:
    ambiguous = netsandbox("run", "--allow-address", "2001:db8::1:443", "--", "true")
    assert ambiguous.returncode in (0, 2)
    script = """
out["bare"] = [reason(say(b"CONNECT 2001:db8::1:443 HTTP/1.1\\r\\nHost: 2001:db8::1:443\\r\\n\\r\\n"))]
sock, head = connect(b"[2001:db8::1]", 443)
out["bracketed"] = reason(head)
"""
    tried = attack(netsandbox, ["--allow-domain", "allowed.test"], script)
    assert tried.out["bare"][0] in ("malformed", "bad-name")
    assert tried.out["bracketed"] == "address-literal"


@pytest.mark.attack(14)
def test_14_only_the_named_port_is_reached(netsandbox: Any, canary: Any, authority: Any) -> None:
    wanted, other = canary.http(body=b"reached"), canary.http()
    authority.answer("allowed.test", "127.0.0.1")
    script = """
out["good"] = [status(connect(b"allowed.test", wanted)[1]), status(get(b"allowed.test", wanted))]
out["good"].append(socks(b"allowed.test", wanted))
out["other"] = [reason(connect(b"allowed.test", port)[1]) for port in (other, 22, 25, 9999)]
out["other"] += [reason(get(b"allowed.test", port)) for port in (other, 22, 25, 9999)]
out["socks"] = [socks(b"allowed.test", port) for port in (other, 22, 0)]
where = address(b"allowed.test")
out["transparent"] = say(b"GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n", (where, other))
out["odd"] = []
odd = [b"0", b"65536", b"0%d" % wanted, b"+%d" % wanted, b" %d" % wanted, b"\\xef\\xbc\\x94", b"-1", b"", b"1e2"]
for text in odd:
    target = b"allowed.test:" + text
    out["odd"].append(status(say(b"CONNECT " + target + b" HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n")))
    out["odd"].append(status(say(b"GET http://" + target + b"/ HTTP/1.1\\r\\nHost: " + target + b"\\r\\n\\r\\n")))
"""
    options = ["--allow-domain", f"allowed.test:{wanted.port}", "--allow-address", "127.0.0.0/8:*"]
    options += ["--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"wanted": wanted.port, "other": other.port})
    assert tried.out["good"] == [200, 200, 0]
    assert set(tried.out["other"]) == {"port-not-allowed"}
    assert all(code not in (0, -1) for code in tried.out["socks"])
    assert tried.out["transparent"] == ""
    assert other.accepts == 0
    # An empty port in an absolute URL is the scheme's default (RFC 9110), which this policy does not allow.
    assert set(tried.out["odd"]) <= {400, 403}


@pytest.mark.attack(15)
@pytest.mark.parametrize("order", ["allow first", "deny first"])
def test_15_deny_wins_in_any_order(netsandbox: Any, canary: Any, authority: Any, order: str) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.x.test", server.host)
    allow, deny = ["--allow-domain", f"*.x.test:{server.port}"], ["--deny-domain", "bad.x.test"]
    rules = [*allow, *deny] if order == "allow first" else [*deny, *allow]
    script = """
out["good"] = status(get(b"good.x.test", port))
out["bad"] = [reason(get(name, port)) for name in (b"bad.x.test", b"BAD.x.test", b"bad.x.test.")]
out["dns"] = ask(b"bad.x.test")
"""
    options = [*rules, "--allow-address", f"127.0.0.1:{server.port}", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert tried.out["good"] == 200
    assert tried.out["bad"] == ["deny-rule"] * 3
    assert tried.out["dns"] == [3, []]
    assert server.accepts == 1
    assert authority.under("bad.x.test") == []


@pytest.mark.attack(15)
@pytest.mark.parametrize("mode", ["online", "a rule"])
def test_15_an_exception_lifts_its_own_deny_rule_and_nothing_else(
    netsandbox: Any, canary: Any, authority: Any, mode: str
) -> None:
    """At every door; an alias of an excepted name is a name like any other, and rules of other files still deny."""
    server = canary.http(body=b"reached")
    authority.answer("*.corp.test", server.host)
    authority.alias("alias.corp.test", "lb.corp.test")
    config = netsandbox.home().work / "rules.toml"
    config.write_text("[network]\ndeny_domains = ['**.hr.corp.test', '**.mine.test except a.mine.test']\n")
    excepted = "jira.corp.test, *.hr.corp.test, alias.corp.test"
    options = ["--online"] if mode == "online" else ["--allow-domain", f"**.corp.test:{server.port}"]
    options += ["--deny-domain", f"**.corp.test except {excepted}", "--config", str(config)]
    options += ["--allow-address", f"127.0.0.1:{server.port}", "--upstream-dns", authority.address]
    script = """
def doors(name):
    found = [status(get(name, port)) == 200, status(connect(name, port)[1]) == 200, socks(name, port) == 0]
    reply = ask(name)
    if reply[0] == 0 and reply[1]:
        page = say(b"GET / HTTP/1.1\\r\\nHost: " + name + b"\\r\\nConnection: close\\r\\n\\r\\n", (reply[1][0], port))
        found.append(status(page) == 200)
    return found

out["doors"] = {name: doors(name.encode()) for name in names}
"""
    names = ["jira.corp.test", "corp.test", "wiki.corp.test", "x.jira.corp.test", "pay.hr.corp.test", "alias.corp.test"]
    tried = attack(netsandbox, options, script, arguments={"port": server.port, "names": names})
    assert tried.out["doors"].pop("jira.corp.test") == [True] * 4
    assert tried.out["doors"].pop("alias.corp.test") == [False] * 4, "lb.corp.test, which it stands for, is denied"
    assert set(map(tuple, tried.out["doors"].values())) == {(False,) * 3}
    assert {record["reason"] for record in tried.denied()} == {"deny-rule"}
    assert server.accepts == 4
    assert {name for name in authority.names if name.endswith("corp.test")} == {"jira.corp.test", "alias.corp.test"}


CONFIGURATIONS = {
    "unknown key": "[network]\nallow_domain = ['a.test']\n",
    "unknown table": "[networks]\nallow_domains = ['a.test']\n",
    "wrong type": "[network]\nallow_domains = 'a.test'\n",
    "wildcard in a URL": "[network]\nallow_domains = ['https://*.x.test']\n",
    "empty": "",
    "no TOML": "allow: []\n",
    "doubled key": "[network]\nallow_domains = []\nallow_domains = ['a.test']\n",
    "a number": "[network]\nallow_domains = [7]\n",
    "bad mode": "[network]\nmode = 'open'\n",
}


@pytest.mark.attack(16)
@pytest.mark.parametrize("name", [*CONFIGURATIONS, "missing", "unreadable", "a directory"])
def test_16_a_mistake_in_the_configuration_is_never_an_open_door(netsandbox: Any, name: str) -> None:
    home = netsandbox.home()
    config, marker = home.work / "rules.toml", home.work / "started"
    if name in CONFIGURATIONS:
        config.write_text(CONFIGURATIONS[name])
    if name == "a directory":
        config.mkdir()
    if name == "unreadable":
        config.symlink_to(config)
    run = netsandbox("run", "--config", config, "--", "touch", marker)
    assert (run.returncode, run.stderr.count("\n"), marker.exists()) == (2, 1, False), run.stderr
    assert run.stderr.startswith("netsandbox: ")


@pytest.mark.attack(16)
def test_16_the_right_configuration_is_obeyed(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.test", server.host)
    config = netsandbox.home().work / "rules.toml"
    config.write_text(
        f'[network]\nallow_domains = ["a.test:{server.port}"]\nallow_addresses = ["127.0.0.1:{server.port}"]\n'
        f'upstream_dns = ["{authority.address}"]\n'
    )
    script = 'out["a"], out["b"] = status(get(b"a.test", port)), status(get(b"b.test", port))'
    tried = attack(netsandbox, ["--config", str(config)], script, arguments={"port": server.port})
    assert tried.out == {"a": 200, "b": 403}
    assert server.accepts == 1


@pytest.mark.attack(19)
def test_19_online_keeps_every_other_guard(netsandbox: Any, canary: Any, authority: Any) -> None:
    server = canary.http(body=b"reached")
    authority.answer("*.test", server.host)
    authority.answer("inside.example", "127.0.0.1")
    script = """
out["private"] = [reason(get(name, port)) for name in (b"inside.example", b"127.0.0.1", b"localhost")]
out["denied"] = reason(get(b"bad.test", port))
out["resolver"] = ask(b"dns.google")
out["netlink"] = refused(socket.socket, 16, 3, 0)
out["packet"] = refused(socket.socket, 17, 3, 0)
out["capabilities"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
"""
    options = ["--online", "--deny-domain", "bad.test", "--upstream-dns", authority.address]
    tried = attack(netsandbox, options, script, arguments={"port": server.port})
    assert tried.out["private"] == ["address-guard"] * 3
    assert tried.out["denied"] == "deny-rule"
    assert tried.out["resolver"] == [3, []]
    assert tried.out["packet"] == "EPERM"
    assert tried.out["netlink"] in ("EPERM", None)  # reading one's own interfaces is harmless, changing them is not
    assert set(tried.out["capabilities"]) == {"0000000000000000"}
    assert server.accepts == 0


@pytest.mark.attack(148)
@pytest.mark.ordinary_user
def test_148_the_workload_cannot_widen_the_policy_of_the_next_run(netsandbox: Any) -> None:
    """INV-8: the configuration lies in the project folder, which the workload owns."""
    folder = netsandbox.home().work / "settings"
    folder.mkdir()
    config = folder / "rules.toml"
    config.write_text('[network]\nallow_domains = ["a.test"]\n')
    for path in (folder, config):
        os.chown(path, netsandbox.identity.uid, netsandbox.identity.gid)
    script = """
def write():
    open(config, "a").close()
out["tries"] = [refused(write), refused(os.unlink, config), refused(os.rename, config, config + ".old"),
    refused(os.truncate, config, 0), refused(os.rename, os.path.dirname(config), os.path.dirname(config) + ".old")]
"""
    tried = attack(netsandbox, ["--config", str(config)], script, arguments={"config": str(config)})
    assert None not in tried.out["tries"]
