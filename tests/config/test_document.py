"""The configuration file: what it may say, and that a slip stops the command instead of opening a door."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netsandbox_portmap.localhost_settings import HostPort, LocalhostSettings

from netsandbox.config import document
from netsandbox.config.document import read_layer
from netsandbox.config.file_settings import FileSettings
from netsandbox.config.keys import KEYS
from netsandbox.config.merging import file_settings as settings_of
from netsandbox.config.merging import merge
from netsandbox.errors import UsageError
from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import Request
from netsandbox.settings import Bounds


def load(path: str) -> FileSettings:
    return settings_of(merge([read_layer(path)]), [path])


@pytest.fixture
def written(tmp_path):
    """written(text) -> the path of a file that holds it"""

    def write(text: str | bytes) -> str:
        path = tmp_path / "netsandbox.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


WHOLE = """
[network]
mode = "filtered"
allow_domains = [
  "example.test",
  "*.x.test:443",
]
deny_domains = ["bad.x.test", "*.ru"]
allow_addresses = ["192.0.2.7:5432", "[2001:db8::/32]:443"]
default_ports = [443, 8443]
allow_unix_sockets = ["/run/example.sock"]
allow_query_types = ["txt"]
upstream_dns = ["192.0.2.53", "[2001:db8::53]:5353"]
upstream_proxy = "http://user:secret@proxy.example.com:3128"
proxy_env = false

[localhost]
network_strategy = "fail"
rewrite_engine = "preload"
listening_base_port = 31000
listening_port_count = 50
listening_loopback = "127.0.0.2"
port_pool = [30000, 31999]
publish = ["3000", "8080:9000"]
gateway_port = 7979
keep_host = true
connect_host = [6379, 5432, 6379, '99:db:98']

[session]
name = "shop"

[audit]
log = "audit.jsonl"
"""


def test_everything_that_a_file_may_say(written):
    path = written(WHOLE)
    found = load(path)
    assert found.kept == (path,)
    assert found.mode == "filtered"
    assert [(rule.text, rule.origin) for rule in found.allow_domains] == [
        ("example.test", f"{path}:5"),
        ("*.x.test:443", f"{path}:6"),
    ]
    assert [(rule.text, rule.origin) for rule in found.deny_domains] == [
        ("bad.x.test", f"{path}:8"),
        ("*.ru", f"{path}:8"),
    ]
    assert [rule.origin for rule in found.allow_addresses] == [f"{path}:9"] * 2
    assert found.default_ports == (443, 8443)
    assert found.allow_unix_sockets == ("/run/example.sock",)
    assert found.allow_query_types == ("TXT",)
    assert found.upstream_dns == ("192.0.2.53", "[2001:db8::53]:5353")
    assert found.upstream_proxy == "http://user:secret@proxy.example.com:3128"
    assert found.proxy_env is False
    assert found.audit_log == "audit.jsonl"
    assert found.name == "shop"
    assert vars(found.localhost) == {
        "strategy": "fail",
        "chosen": True,
        "engine": "preload",
        "base": 31000,
        "count": 50,
        "device": "127.0.0.2",
        "pool": (30000, 31999),
        "publish": ((3000, None), (8080, 9000)),
        "connect_host": (HostPort(99, 98, "db"), HostPort(5432), HostPort(6379)),
        "gateway_port": 7979,
        "keep_host": True,
    }


def test_no_file_is_the_default():
    assert FileSettings().allow_domains == ()
    assert FileSettings().default_ports == (80, 443)
    assert FileSettings().proxy_env is True
    assert FileSettings().localhost == LocalhostSettings()
    assert FileSettings().name is None


def test_an_empty_list_of_ports_to_publish_publishes_none(written):
    assert load(written("[localhost]\npublish = []\n")).localhost.publish == ()
    assert load(written("[localhost]\n")).localhost.publish is None


def test_a_strategy_that_the_file_does_not_name_is_not_chosen(written):
    assert not load(written("[localhost]\npublish = []\n")).localhost.chosen


@pytest.mark.attack(1)
@pytest.mark.parametrize("text", ["[network]\nallow_domains = []\n", "[network]\n", "[audit]\nlog = 'x'\n"])
def test_an_empty_or_absent_list_denies_everything(written, text):
    """INV-6."""
    found = load(written(text))
    policy = Policy(found.allow_domains, found.deny_domains, found.allow_addresses, found.mode)
    for kind in ("tcp", "dns"):
        assert not policy.decide(Request(canonical("example.test"), 443, kind)).allowed


@pytest.mark.attack(16)
@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[network]\n\nallow_domain = ['x.test']\n", 3, "did you mean allow_domains?"),
        ("[netwrok]\nmode = 'online'\n", 1, "did you mean network?"),
        ("[network]\nzzz = 1\n", 2, "use one of mode"),
        ("mode = 'online'\n", 1, "unknown table 'mode'"),
        ("network = 1\n", 1, "write [network] on a line of its own"),
        ("[[network]]\nmode = 'online'\n", 1, "write [network] on a line of its own"),
        ("[network]\nmode = 'open'\n", 2, "write one of offline"),
        ("[network]\nmode = true\n", 2, "wrong type"),
        ("[network]\nallow_domains = 'x.test'\n", 2, "wrong type"),
        ("[network]\nallow_domains = [\n 'x.test',\n 7]\n", 4, "wrong type"),
        ("[network]\nallow_domains = [\n 'x.test',\n ['y.test']]\n", 4, "wrong type"),
        ("[network]\nallow_domains = [\n 'x.test',\n '*']\n", 4, "use --online"),
        ("[network]\nallow_domains = ['https://*.x.test']\n", 2, "wildcard inside a URL"),
        ("[network]\nallow_domains = ['10.0.0.1']\n", 2, "use --allow-address"),
        ("[network]\ndeny_domains = ['*']\n", 2, "use --offline"),
        ("[network]\nallow_addresses = ['0.0.0.0/0']\n", 2, "use --online"),
        ("[network]\nallow_addresses = ['x.test']\n", 2, "is not an address"),
        ("[network]\ndefault_ports = []\n", 2, "the list is empty"),
        ("[network]\ndefault_ports = [0]\n", 2, "is not a port"),
        ("[network]\ndefault_ports = [true]\n", 2, "wrong type"),
        ("[network]\ndefault_ports = ['443']\n", 2, "wrong type"),
        ("[network]\nallow_unix_sockets = [\n'x.sock']\n", 3, "not an absolute path"),
        ("[network]\nallow_unix_sockets = ['$SSH_AUTH_SOCK/x']\n", 2, "not an absolute path"),
        ("[network]\nallow_unix_sockets = ['$XDG_RUNTIME_DIR']\n", 2, "not an absolute path"),
        ("[network]\nallow_unix_sockets = ['$HOME/x']\n", 2, "not an absolute path"),
        ("[network]\nallow_query_types = ['NOPE']\n", 2, "not a record type"),
        ("[network]\nupstream_dns = []\n", 2, "the list is empty; write at least one server"),
        ("[network]\nupstream_dns = ['dns.example.com']\n", 2, "is not an address"),
        ("[network]\nupstream_dns = ['192.0.2.0/24']\n", 2, "not one server"),
        ("[network]\nupstream_dns = ['192.0.2.53:*']\n", 2, "not one server"),
        ("[network]\nupstream_proxy = 'socks5://proxy.test:1080'\n", 2, "write http://"),
        ("[network]\nupstream_proxy = 7\n", 2, "wrong type"),
        ("[network]\nproxy_env = 'false'\n", 2, "write true or false"),
        ("[network]\nproxy_env = 0\n", 2, "write true or false"),
        ("[localhost]\nstrategy = 'fail'\n", 2, "did you mean network_strategy?"),
        ("[localhost]\nnetwork_strategy = 'Fail'\n", 2, "use one of isolate, fail"),
        ("[localhost]\nnetwork_strategy = ['fail']\n", 2, "wrong type"),
        ("[localhost]\nrewrite_engine = ''\n", 2, "wrong type"),
        ("[localhost]\nrewrite_engine = 'ptrace'\n", 2, "use one of kernel, preload"),
        ("[localhost]\nlistening_base_port = 1023\n", 2, "from 1024 to 65535; write one, such as 20000"),
        ("[localhost]\nlistening_base_port = 65536\n", 2, "from 1024 to 65535"),
        ("[localhost]\nlistening_base_port = true\n", 2, "write a number"),
        ("[localhost]\nlistening_base_port = '3000'\n", 2, "write a number"),
        ("[localhost]\nlistening_base_port = 3e3\n", 2, "write a number"),
        ("[localhost]\nlistening_base_port = 0x" + "f" * 4000 + "\n", 2, "write a number"),
        ("[localhost]\nlistening_port_count = 0\n", 2, "from 1 to 4096; write one, such as 100"),
        ("[localhost]\nlistening_port_count = 4097\n", 2, "from 1 to 4096"),
        ("[localhost]\nlistening_port_count = -1\n", 2, "from 1 to 4096"),
        ("[localhost]\nlistening_loopback = '192.0.2.1'\n", 2, "no address in 127.0.0.0/8"),
        ("[localhost]\nlistening_loopback = 127\n", 2, "wrong type"),
        ("[localhost]\nport_pool = [1023, 2000]\n", 2, "within 1024-65535, for instance [20000, 29999]"),
        ("[localhost]\nport_pool = [3000, 2000]\n", 2, "within 1024-65535, for instance [20000, 29999]"),
        ("[localhost]\nport_pool = [3000]\n", 2, "write [20000, 29999]"),
        ("[localhost]\nport_pool = []\n", 2, "write [20000, 29999]"),
        ("[localhost]\nport_pool = [3000, 4000, 5000]\n", 2, "write [20000, 29999]"),
        ("[localhost]\nport_pool = [3000, 65536]\n", 2, "within 1024-65535, for instance [20000, 29999]"),
        ("[localhost]\nport_pool = [3000, true]\n", 2, "wrong type"),
        ("[localhost]\nport_pool = '3000-4000'\n", 2, "wrong type"),
        ("[localhost]\npublish = [3000]\n", 2, "wrong type"),
        ("[localhost]\npublish = '3000'\n", 2, "wrong type"),
        ("[localhost]\npublish = ['3000:']\n", 2, "no number"),
        ("[localhost]\npublish = ['3000:1:2']\n", 2, "no number"),
        ("[localhost]\npublish = ['3000', '3000:9000']\n", 2, "named twice"),
        ("[localhost]\nconnect_host = [5432.5]\n", 2, "wrong type"),
        ("[localhost]\nconnect_host = ['db:']\n", 2, "no number"),
        ("[localhost]\nconnect_host = ['host.example:5432']\n", 2, "no port to reach"),
        ("[localhost]\nconnect_host = 5432\n", 2, "wrong type"),
        ("[localhost]\nconnect_host = [0]\n", 2, "no number"),
        ("[localhost]\nconnect_host = [-5]\n", 2, "no number"),
        ("[localhost]\nconnect_host = [\n1,\n0x" + "f" * 4000 + "]\n", 4, "wrong type"),
        ("[network]\ndefault_ports = [0x" + "f" * 4000 + "]\n", 2, "wrong type"),
        ("[sandbox]\nnetwork = 'online'\n[network]\nmode = 'offline'\n", 4, "network.mode set twice"),
        ("[sandbox]\nnetwork = 'online'\ndefault_network = 'offline'\n", 3, "network.mode set twice"),
        ("[sandbox]\ninherit_global = 1\n", 2, "write true or false"),
        ("[sandbox]\nshell = ''\n", 2, "write a path"),
        ("[limits]\nconnections = 0\n", 2, "from 1 to 16384; write one, such as 4096"),
        ("[limits]\nidle_seconds = 604801\n", 2, "from 1 to 604800"),
        ("[limits]\nlog_megabytes = -1\n", 2, "from 1 to 4096"),
        ("[limits]\nlog_megabytes = '5'\n", 2, "write a number"),
        ("[shell]\npass_env = ['*']\n", 2, "is not the name of a variable"),
        ("[shell]\npass_env = [\n'A',\n'B=C']\n", 4, "is not the name of a variable"),
        ("[shell]\ndeny_env = 'A'\n", 2, "wrong type"),
        ("[shell]\nset_env = ['A=B']\n", 2, "wrong type"),
        ("[shell]\nset_env = { A = 1 }\n", 2, "wrong type"),
        ("[shell]\n[shell.set_env]\nA = '1'\n'B*' = '2'\n", 4, "is not the name of a variable"),
        ('[shell]\nset_env = { A = "b\\u0000" }\n', 2, "wrong type"),
        ("[session]\nname = ''\n", 2, "wrong type"),
        ("[session]\nname = 7\n", 2, "wrong type"),
        ("[session]\nnam = 'x'\n", 2, "did you mean name?"),
        ("[audit]\nlog = ''\n", 2, "write a path"),
        ("[audit]\nlog = 1\n", 2, "write a path"),
        ("[network]\nmode = 'online'\nmode = 'offline'\n", 3, "invalid TOML"),
        ("[network]\nmode = \n", 2, "invalid TOML"),
        (b"[network]\n# \xff\n", 2, "not UTF-8"),
    ],
)
def test_a_slip_is_an_error_with_file_line_and_advice(written, text, line, says):
    path = written(text)
    with pytest.raises(UsageError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert says in message
    assert "; " in message
    assert message.isprintable()
    assert caught.value.status == 2


@pytest.mark.attack(16)
@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n"])
def test_a_file_that_sets_nothing_is_an_error(written, text):
    with pytest.raises(UsageError, match="sets nothing; write"):
        load(written(text))


@pytest.mark.attack(16)
def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    for path in (str(tmp_path / "missing.toml"), str(tmp_path), "a\0b"):
        with pytest.raises(UsageError, match="cannot read the configuration"):
            load(path)


def test_an_unfinished_file_is_an_error(written):
    with pytest.raises(UsageError, match="invalid TOML"):
        load(written("[network]\nallow_domains = ["))


def test_a_number_without_end_is_an_error(written):
    with pytest.raises(UsageError, match="invalid TOML: a number without end; correct"):
        load(written("[localhost]\nlistening_base_port = " + "1" * 5000))


def test_a_file_nested_without_end_is_an_error(written):
    with pytest.raises(UsageError, match="invalid TOML"):
        load(written("x = " + "[" * 50_000))


def test_a_file_without_end_is_an_error(written, monkeypatch):
    monkeypatch.setattr(document, "MAX_SIZE", 10)
    with pytest.raises(UsageError, match="larger than 10 bytes"):
        load(written("[network]\nmode = 'online'\n"))


@given(st.one_of(st.text(max_size=60), st.text("[network]mode='\"=,\n#", max_size=60)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_text_is_settings_or_a_usage_error(written, text):
    try:
        load(written(text.encode("utf-8", "surrogatepass")))
    except UsageError as error:
        message = str(error)
    else:
        message = "; "
    assert "; " in message


MADE_OTHERWISE = (
    *("kept", "ignored", "bounds", "localhost", "profiles", "registry_tools", "notes"),
    *("mode_origin", "bounded", "narrowed"),
)


def test_every_setting_has_a_key():
    fields = {table: {key.field for key in keys.values()} for table, keys in KEYS.items()}
    assert fields.pop("localhost") | {"chosen"} == set(LocalhostSettings.__annotations__)
    assert fields.pop("limits") == set(Bounds.__annotations__)
    fields["sandbox"].discard("")
    fields["approvals"].discard("")  # `until` is used where files are read
    assert fields.pop("profiles") == {""}
    shell = {"variables" if field.endswith("s_env") or field == "deny_env" else field for field in fields.pop("shell")}
    assert set().union(shell, *fields.values()) | {*MADE_OTHERWISE} == set(FileSettings.__annotations__)


@pytest.mark.parametrize(
    ("value", "found"),
    [("/run/agent", ("/run/agent", "/run/agent/bus")), ("", ()), ("run/agent", ()), (None, ())],
)
def test_two_variables_may_stand_for_places_of_sockets(written, monkeypatch, value, found) -> None:
    """The agent's is a socket, the other one a folder; where a variable is not an absolute path, there is none."""
    for name in ("SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    path = written('[network]\nallow_unix_sockets = ["$SSH_AUTH_SOCK", "$XDG_RUNTIME_DIR/bus"]\n')
    assert load(path).allow_unix_sockets == found
