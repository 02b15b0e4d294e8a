"""Rules: what each text means, what `Policy` accepts, and that a slip is an error that names what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_address, parse_domain, read_port


@pytest.mark.parametrize(
    ("text", "name", "ports", "apex", "below"),
    [
        ("example.com", "example.com", None, True, False),
        ("Example.COM.", "example.com", None, True, False),
        ("*.example.com", "example.com", None, False, True),
        ("**.example.com", "example.com", None, True, True),
        ("example.com:443", "example.com", (443,), True, False),
        ("*.example.com:8443", "example.com", (8443,), False, True),
        ("example.com:*", "example.com", (), True, False),
        ("https://example.com", "example.com", (443,), True, False),
        ("HTTP://example.com/a?b#c", "example.com", (80,), True, False),
        ("https://example.com:8443/x:y@z", "example.com", (8443,), True, False),
        ("https://a.test#@b.test:99999@", "a.test", (443,), True, False),
        ("b\u00fccher.example", "xn--bcher-kva.example", None, True, False),
        ("localhost", "localhost", None, True, False),
    ],
)
def test_a_domain_rule_covers_its_names_and_ports(text, name, ports, apex, below):
    rule = parse_domain(text, "netsandbox.toml:12")
    assert (rule.name, rule.ports, rule.apex, rule.below) == (name, ports, apex, below)
    assert (rule.text, rule.origin) == (text, "netsandbox.toml:12")


@pytest.mark.attack(6)
@pytest.mark.parametrize("text", ["*", "**", "[*]", "[**]", "*.*", "?", "*.", "**.**", "*:443", "*:*", "[*]:443"])
def test_a_rule_for_everything_is_refused_and_points_to_online(text):
    with pytest.raises(UsageError, match="use --online"):
        parse_domain(text, "--allow-domain")


@pytest.mark.attack(6)
@pytest.mark.parametrize(
    "text", ["*.com", "**.com", "*.co.uk", "*.com.au", "*.co.jp", "*.github.io", "*.COM.", "*.test:443", "*.localhost"]
)
def test_a_wildcard_over_strangers_is_refused(text):
    with pytest.raises(UsageError, match="name the domains one by one"):
        parse_domain(text, "--allow-domain")


@pytest.mark.attack(6)
@pytest.mark.parametrize(
    "text",
    [
        "example.*",
        "a*.example.com",
        "a.*.example.com",
        "***.example.com",
        "*example.com",
        "ex?mple.com",
        "*.*.example.com",
        "[*.example.com]",
    ],
)
def test_a_wildcard_is_a_whole_first_label(text):
    with pytest.raises(UsageError, match="wildcard"):
        parse_domain(text, "--allow-domain")


@pytest.mark.attack(10)
@pytest.mark.attack(11)
@pytest.mark.attack(16)
@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "https://*.x.test",
        "https://a@example.com/",
        "http://allowed.test:80@denied.test",
        "ftp://example.com",
        "file:///etc/passwd",
        "http:///",
        "http:/example.com",
        "http:example.com",
        "https://a\\b.test/",
        "ht\ttp://a.test",
        "https://a.test/ b",
        "https://example.com:*/",
        "https:// a.test/",
        "example.com/path",
        "a b.test",
        "example.com:",
        "user@example.com",
        "a..b.test",
        "[::1",
        "evil.test\0.allowed.test",
        "a" * 64 + ".test",
    ],
)
def test_an_invalid_pattern_is_refused_with_advice_on_one_line(text):
    with pytest.raises(UsageError) as caught:
        parse_domain(text, "file.toml:3")
    message = str(caught.value)
    assert message.startswith("file.toml:3: ")
    assert "; " in message
    assert message.isprintable()
    assert caught.value.status == 2


@pytest.mark.attack(13)
@pytest.mark.parametrize("text", ["2001:db8::1:443", "2001:db8::1", "::1"])
def test_bare_ipv6_in_a_domain_rule_is_ambiguous(text):
    with pytest.raises(UsageError, match="--allow-address"):
        parse_domain(text, "--allow-domain")


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("10.0.0.5", "--allow-address 10.0.0.5"),
        ("10.0.0.5:5432", "--allow-address 10.0.0.5:5432"),
        ("[2001:db8::1]:443", "--allow-address [2001:db8::1]:443"),
        ("https://10.0.0.5/", "--allow-address 10.0.0.5:443"),
        ("10.0.0.5:*", "--allow-address 10.0.0.5:*"),
    ],
)
def test_an_address_in_a_domain_rule_is_sent_to_the_right_option(text, flag):
    with pytest.raises(UsageError) as caught:
        parse_domain(text, "--allow-domain")
    assert str(caught.value).endswith(flag)
    parse_address(flag.removeprefix("--allow-address "), "--allow-address")


BAD_PORTS = [
    "0",
    "65536",
    "0443",
    "+443",
    " 443",
    "443 ",
    "-1",
    "\uff14\uff14\uff13",
    "4_4_3",
    "0x1bb",
    "99999999999",
    "https",
    "",
    "443:1",
    "**",
]


@pytest.mark.attack(14)
@pytest.mark.parametrize("port", BAD_PORTS)
def test_bad_ports_are_refused(port):
    assert read_port(port) is None
    for read, host in ((parse_domain, "allowed.test"), (parse_address, "192.0.2.7"), (parse_address, "[2001:db8::1]")):
        with pytest.raises(UsageError):
            read(f"{host}:{port}", "--allow")


@given(st.text(max_size=8))
def test_a_port_is_plain_decimal(text):
    port = read_port(text)
    assert port is None or (str(port) == text and 1 <= port <= 65535)


@pytest.mark.parametrize("text", ["*.ru", "**.co.uk", "*.github.io", "*.example.com"])
def test_a_deny_rule_may_cover_a_whole_top_level_domain(text):
    assert parse_domain(text, "--deny-domain", deny=True).below


def test_denying_everything_is_called_offline():
    with pytest.raises(UsageError, match="use --offline"):
        parse_domain("*", "--deny-domain", deny=True)


@pytest.mark.parametrize(
    ("text", "network", "length", "ports"),
    [
        ("10.0.0.5", "10.0.0.5", 32, None),
        ("10.0.0.5:5432", "10.0.0.5", 32, (5432,)),
        ("10.0.0.0/8", "10.0.0.0", 8, None),
        ("10.0.0.0/8:*", "10.0.0.0", 8, ()),
        ("192.0.2.0/24:443", "192.0.2.0", 24, (443,)),
        ("::1", "::1", 128, None),
        ("2001:db8::1", "2001:db8::1", 128, None),
        ("fe80::a:b", "fe80::a:b", 128, None),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", 128, None),
        ("2001:db8::/32", "2001:db8::", 32, None),
        ("[2001:db8::/32]:443", "2001:db8::", 32, (443,)),
        ("[2001:db8::1:443]", "2001:db8::1:443", 128, None),
        ("[::1]:*", "::1", 128, ()),
        ("fc00::/7", "fc00::", 7, None),
        ("::ffff:10.0.0.0/104", "10.0.0.0", 8, None),
    ],
)
def test_an_address_rule_covers_its_network_and_ports(text, network, length, ports):
    rule = parse_address(text, "--allow-address")
    assert (rule.network.text, rule.length, rule.ports) == (network, length, ports)
    assert rule.exact == (length in (32, 128) and "/" not in text)


@pytest.mark.attack(96)
@pytest.mark.parametrize(
    "text",
    ["0.0.0.0/0", "::/0", "[::/0]:443", "0.0.0.0/0:*", "0.0.0.0/1", "128.0.0.0/1", "2000::/3", "::ffff:0.0.0.0/96"],
)
def test_a_rule_for_the_whole_internet_is_refused_and_points_to_online(text):
    with pytest.raises(UsageError, match="use --online"):
        parse_address(text, "--allow-address")


def test_a_parameter_of_python_is_refused_in_the_words_of_python():
    for text, parse, instead in (
        ("*", parse_domain, 'use mode="online"'),
        ("0.0.0.0/0", parse_address, 'use mode="online"'),
        ("**.a.test except b.a.test", parse_domain, "deny the name with deny_domains"),
    ):
        with pytest.raises(UsageError, match=f"^allow_domains: .*; {instead}"):
            parse(text, "allow_domains")


@pytest.mark.parametrize(
    ("text", "has_network"), [("nope", False), ("nope/24", True), ("[::1", False), ("[::/x", True)]
)
def test_networks_are_advised_to_who_meant_one(text, has_network):
    with pytest.raises(UsageError, match="; write ") as refused:
        parse_address(text, "--upstream-dns")
    assert ("/" in str(refused.value).partition("; write ")[2]) == has_network


@pytest.mark.attack(13)
@pytest.mark.parametrize("text", ["2001:db8::1:443", "2001:db8::/32:443", "::1:80"])
def test_unbracketed_ipv6_with_a_port_is_refused_as_ambiguous(text):
    with pytest.raises(UsageError, match="may or may not end in a port"):
        parse_address(text, "--allow-address")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "10.0.0.1/8",
        "10.0.0.5/33",
        "10.0.0.5/",
        "10.0.0.5/08",
        "10.0.0.5/+8",
        "127.1",
        "0x7f.1",
        "[10.0.0.5]:443",
        "[::1",
        "[::1]443",
        "[2001:db8::]/32",
        "10.0.0.0/255.0.0.0",
        "fe80::1%lo",
        "2001:db8::1/32",
        "10.0.0.5:5432:1",
        "*",
        "http://10.0.0.5/",
    ],
)
def test_an_invalid_address_rule_is_refused_with_advice(text):
    with pytest.raises(UsageError) as caught:
        parse_address(text, "file.toml:3")
    assert str(caught.value).startswith("file.toml:3: ")
    assert "; " in str(caught.value)


def test_host_bits_are_an_error_that_names_both_ways_out():
    with pytest.raises(UsageError, match=r"write 10\.0\.0\.0/8 or 10\.0\.0\.1"):
        parse_address("10.0.0.1/8", "--allow-address")


@given(st.one_of(st.text(max_size=60), st.text("a*.:/[]@?x0149", max_size=40)))
def test_any_text_is_a_rule_or_a_usage_error(text):
    for read in (parse_domain, parse_address):
        try:
            outcome = read(text, "--rule").text
        except UsageError as error:
            outcome = str(error)
        assert outcome == text or outcome.isprintable()


def test_the_repr_of_a_rule_has_its_text_and_origin():
    assert repr(parse_domain("example.com", "x:1")) == "DomainRule('example.com', 'x:1')"
    assert repr(parse_address("10.0.0.5", "x:1")) == "AddressRule('10.0.0.5', 'x:1')"


@pytest.mark.attack(16)
@pytest.mark.parametrize(
    "wrong",
    [
        {"allow_domains": "example.test"},
        {"allow_domains": b"example.test"},
        {"allow_domains": {"example.test": True}},
        {"allow_domains": 1},
        {"allow_domains": [1]},
        {"allow_domains": [None]},
        {"allow_domains": [["example.test"]]},
        {"deny_domains": "example.test"},
        {"allow_addresses": "192.0.2.1"},
        {"allow_addresses": [7]},
        {"default_ports": []},
        {"default_ports": None},
        {"default_ports": [0]},
        {"default_ports": [True]},
        {"default_ports": ["443"]},
        {"default_ports": 443},
        {"allow_unix_sockets": ["relative.sock"]},
        {"allow_unix_sockets": ["/run/../etc"]},
        {"allow_unix_sockets": ["/run/x\0y"]},
        {"allow_unix_sockets": [7]},
        {"allow_unix_sockets": "/run/x.sock"},
        {"allow_query_types": ["TXTX"]},
        {"allow_query_types": ["TYPE65536"]},
        {"allow_query_types": ["TYPE"]},
        {"allow_query_types": [16]},
        {"allow_query_types": ["AAAA"]},
        {"allow_query_types": ["TYPE65"]},
        {"allow_query_types": "TXT"},
        {"mode": 1},
    ],
)
def test_a_slip_is_an_error_and_never_an_open_or_empty_list(wrong):
    with pytest.raises(UsageError, match="; "):
        Policy(**wrong)


def test_lists_of_every_kind_are_taken():
    policy = Policy(
        iter(["example.test"]),
        ("*.ru",),
        {"192.0.2.1:22"},
        default_ports=[443],
        allow_unix_sockets=["/run/x.sock"],
        allow_query_types=["txt", "TYPE16", "type65280"],
    )
    assert [rule.text for rule in policy.allow_domains] == ["example.test"]
    assert [rule.text for rule in policy.deny_domains] == ["*.ru"]
    assert [rule.text for rule in policy.allow_addresses] == ["192.0.2.1:22"]
    assert (policy.default_ports, policy.allow_unix_sockets) == ((443,), ("/run/x.sock",))
    assert policy.allow_query_types == ("TXT", "TXT", "TYPE65280")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("allow_domains", "*"), ("deny_domains", "*"), ("allow_addresses", "0.0.0.0/0")),
        *(("allow_query_types", "FOO"), ("allow_unix_sockets", "a")),
    ],
)
def test_a_mistake_in_python_names_its_parameter(parameter: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{parameter}: ") as refused:
        Policy(**{parameter: [value]})  # type: ignore[arg-type]
    assert "--" not in str(refused.value)


def test_types_of_queries_have_one_spelling() -> None:
    assert Policy(["example.com"], allow_query_types=["txt"]).allow_query_types == ("TXT",)


@pytest.mark.parametrize("text", ["127.0.0.1:4444", "127.8.9.1", "[::1]:80"])
def test_a_port_of_this_machine_is_no_domain_and_the_advice_works(text: str) -> None:
    with pytest.raises(UsageError, match="--connect-host PORT"):
        parse_domain(text, "--allow-domain")


@pytest.mark.parametrize(
    ("text", "exceptions"),
    [
        ("**.corp.test except jira.corp.test", [("jira.corp.test", ())]),
        (
            "*.corp.test except  Jira.corp.test. ,*.dev.corp.test:443",
            [("jira.corp.test", ()), ("dev.corp.test", (443,))],
        ),
        ("**.corp.test:443 except jira.corp.test", [("jira.corp.test", (443,))]),
        ("**.corp.test:443 except jira.corp.test:*", [("jira.corp.test", (443,))]),
        ("corp.test except corp.test:443", [("corp.test", (443,))]),
        ("**.corp.test except *.corp.test", [("corp.test", ())]),
        ("**.test except https://jira.corp.test/x", [("jira.corp.test", (443,))]),
    ],
)
def test_a_deny_rule_may_have_exceptions_that_lie_in_it(text: str, exceptions: list[object]) -> None:
    rule = parse_domain(text, "rules:1", deny=True)
    assert rule.text == text
    assert [(each.name, each.ports) for each in rule.exceptions] == exceptions


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("**.corp.test except jira.other.test", "excepts jira.other.test, which it does not deny; name a part of"),
        ("**.corp.test except xcorp.test", "which it does not deny"),
        ("*.corp.test except corp.test", "which it does not deny"),
        ("*.corp.test except **.corp.test", "which it does not deny"),
        ("corp.test except *.corp.test", "which it does not deny"),
        ("**.corp.test:443 except jira.corp.test:80", "which it does not deny"),
        ("**.corp.test except **.corp.test", "excepts all that it denies; leave the rule out"),
        ("corp.test:443 except corp.test", "excepts all that it denies"),
        ("**.corp.test except a.corp.test except b.corp.test", "says except twice"),
        ("**.corp.test except a.corp.test b.corp.test", "names no host"),
        ("**.corp.test except a.corp.test,", "names no host"),
        ("**.corp.test except 192.0.2.7", "is an address"),
        ("**.corp.test except", "names no host"),
        (" except jira.corp.test", "names no host"),
    ],
)
def test_an_exception_that_lies_elsewhere_or_lifts_the_whole_rule_is_an_error(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"^rules:1: .*{why}"):
        parse_domain(text, "rules:1", deny=True)


def test_an_allow_rule_has_no_exceptions() -> None:
    with pytest.raises(UsageError, match="only a deny rule can have one; deny the name with --deny-domain"):
        parse_domain("**.corp.test except jira.corp.test", "--allow-domain")
