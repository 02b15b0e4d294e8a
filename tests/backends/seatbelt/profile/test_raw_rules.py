"""Raw rules: what may go in goes in as it was meant, and nothing in them opens the network or changes our own rules."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.profile_settings import DOORS, NetworkSettings, OwnPaths, ProfileSettings
from netsandbox.backends.seatbelt.profile.raw_rules import check_raw, raw_rules
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.findings import ERROR
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.lint_network import network_findings
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import UDP, Request, connect, connect_unix, file, lookup

HOME, APP, STATE = "/Users/me", "/Users/me/src/app", "/Users/me/.local/state/netsandbox"
PLACES = {"home": HOME, "working_dir": APP}
OUT = [
    connect("203.0.113.7", 443),
    connect("2001:db8::7", 443),
    connect("203.0.113.7", 53, UDP),
    connect("127.0.0.1", 631),
    connect_unix("/private/var/run/mDNSResponder"),
    connect_unix(f"{STATE}/sessions/1/control"),
    lookup("com.apple.dnssd.service"),
    lookup("com.apple.SecurityServer"),
]


def profile(*texts: str) -> Profile:
    settings = ProfileSettings(
        APP,
        HOME,
        own=OwnPaths(hidden=(STATE,)),
        network=NetworkSettings(DOORS, 21001, 21002, 21003, base=20000, count=3),
        raw=tuple((text, f"f.toml:{number}") for number, text in enumerate(texts, 1)),
    )
    judged = load(session_profile(settings))
    if texts:
        errors = [each.text for each in network_findings(judged.checked()) if each.severity == ERROR]
        assert not errors, "the linter calls nothing about the network an error that the reader took"
        for text in texts:
            check_with_linter(text)
    return judged


def check_with_linter(text: str) -> None:
    """The oracle: rules that the strict reader takes are no error to the full linter."""
    rules = raw_rules([(text, "f")], PLACES)
    both = "\n".join(("(version 1) (deny default)", rules.others, rules.sockets))
    assert [each.text for each in lint(load(both)) if each.severity == ERROR] == []


GPG = """
; what another tool's profile for GnuPG says, without the keychain
(allow network-outbound
       (to unix-socket (subpath (string-append (param "home") "/.gnupg"))))
(allow mach-lookup
       (global-name-regex "^org\\\\.gpgtools\\\\..*"))
(allow file-read* file-write* (subpath "/opt/data"))
"""


def test_rules_of_a_user_count() -> None:
    before, after = profile(), profile(GPG)
    wanted = (
        connect_unix(f"{HOME}/.gnupg/S.gpg-agent"),
        lookup("org.gpgtools.gpgmail"),
        file("file-write-create", "/opt/data/x"),
    )
    for request in wanted:
        assert denied_under_all(before, request)
        assert allowed_under_all(after, request)
    for request in OUT:
        assert denied_under_all(after, request)
    assert allowed_under_all(after, connect("127.0.0.1", 21001)), "the doors stay open"


HALVED = '''
[filesystem]
allow_read = ["~/.gnupg"]
allow_write = ["~/.gnupg"]

[seatbelt]
raw = """
(allow network-outbound (to unix-socket (subpath (string-append (param "home") "/.gnupg"))))
(allow mach-lookup (global-name-regex "^org\\\\.gpgtools\\\\..*") (global-name "com.apple.SecurityServer"))
"""
'''


def test_a_profile_whose_backslashes_toml_has_halved_counts_with_a_warning() -> None:
    """So another tool's profile for GnuPG is written: a dot then is any character, and nothing more is open."""
    text = tomllib.loads(HALVED)["seatbelt"]["raw"]
    assert r'"^org\.gpgtools\..*"' in text
    judged = profile(text)
    for name in ("org.gpgtools.gpgmail", "org-gpgtools-x"):
        assert allowed_under_all(judged, lookup(name))
    assert denied_under_all(judged, lookup("org.gpgtools"))
    assert '"^org.gpgtools..*"' in raw_rules([(text, "gpg.toml:7")], PLACES).others
    for request in OUT:
        assert denied_under_all(judged, request)
    assert check_raw(text, PLACES) == [(2, 'in "…" \\. is . alone; write \\\\. to keep the backslash')] * 2


def test_a_users_deny_counts_too() -> None:
    request = file("file-read-data", f"{APP}/private/x")
    assert allowed_under_all(profile(), request)
    assert denied_under_all(
        profile('(deny file-read* (subpath (string-append (param "working_dir") "/private")))'), request
    )


@pytest.mark.parametrize(
    "request_",
    [file("file-read-data", f"{HOME}/.ssh/id_rsa"), file("file-read-data", f"{STATE}/sessions/1/audit.jsonl")],
)
def test_our_own_denials_win(request_: Request) -> None:
    assert denied_under_all(profile(f'(allow file-read* file-write* (subpath "{HOME}"))'), request_)


def test_services_that_act_for_others_stay_closed() -> None:
    judged = profile('(allow mach-lookup (global-name-regex "^com\\\\.apple\\\\.(Security|example).*"))')
    assert allowed_under_all(judged, lookup("com.apple.example")), "the twin"
    assert denied_under_all(judged, lookup("com.apple.SecurityServer"))


NETWORK = "raw rules open no network"
PROGRAM = "rules, not programs"
REFUSED = {
    "(allow network*)": NETWORK,
    "(allow network-outbound)": NETWORK,
    '(allow network-outbound (remote ip "*:443"))': NETWORK,
    '(allow network-outbound (remote tcp "localhost:631"))': NETWORK,
    '(allow network-outbound (remote udp "*:53"))': NETWORK,
    '(allow network-outbound (local ip "localhost:*"))': NETWORK,
    '(allow network-bind (local ip "localhost:8080"))': NETWORK,
    '(allow network-inbound (local ip "*:8080"))': NETWORK,
    "(allow network-outbound (to unix-socket))": NETWORK,
    '(allow network-outbound (require-not (literal "/x")))': NETWORK,
    '(allow network-outbound (require-any (literal "/x") (remote ip "*:*")))': NETWORK,
    '(allow network-outbound (control-name "com.apple.net.utun_control"))': NETWORK,
    "(allow system-socket)": NETWORK,
    "(allow system*)": NETWORK,
    "(allow default)": NETWORK,
    '(allow network-outbound (literal "/private/var/run/mDNSResponder"))': "DNS question",
    '(allow network-outbound (subpath "/private/var/run"))': "DNS question",
    "(allow mach-lookup)": "com.apple.dnssd.service",
    '(allow mach-lookup (global-name "com.apple.dnssd.service"))': "com.apple.dnssd.service",
    "(allow appleevent-send)": "reaches programs outside of the sandbox",
    '(allow process-exec (with no-sandbox) (literal "/bin/sh"))': "without any sandbox",
    '(allow file-read* network-outbound (literal "/x"))': "about sockets or about something else",
    "(version 1)": "begin with (allow or (deny",
    "(define deny allow)": "begin with (allow or (deny",
    "allow": "begin with (allow or (deny",
    '(import "system.sb")': "begin with (allow or (deny",
    '(allow file-read* (begin (define deny list) (subpath "/x")))': PROGRAM,
    '(allow file-read* (if x (subpath "/x")))': PROGRAM,
    "(allow file-read* (lambda (x) x))": PROGRAM,
    '(allow file-read* (subpath (param "elsewhere")))': "there is no such parameter; use one of home, working_dir",
    '(allow file-read* (subpath (string-append "/" (list "x"))))': "make a text here",
    '(allow file-red* (subpath "/x"))': "there is no operation",
    '(allow file-read* (subpath "/x")': "never closed",
    '(allow file-read* (subpath "/x\ny"))': "cannot stand in a Seatbelt profile",
    "(allow)": "names no operation",
    "(allow ())": "names no operation",
    "(deny network*)": NETWORK,
    "(deny default)": NETWORK,
    '(deny network-outbound (remote ip "*:443"))': NETWORK,
    '(allow network-outbound (regex "^/opt/x"))': NETWORK,
    '(allow network-outbound (to unix-socket "/x"))': NETWORK,
    '(allow network-outbound (literal "/PRIVATE/var/run/MDNSRESPONDER"))': "DNS question",
    '(allow network-outbound (subpath "/"))': "DNS question",
    '(allow network-outbound (to unix-socket (subpath "/var/run/")))': "DNS question",
    '(allow mach* (global-name "x"))': "reaches programs outside",
    '(allow mach-per-user-lookup (global-name "x"))': "reaches programs outside",
    '(allow mach-lookup (require-not (global-name "com.apple.dnssd.service")))': "com.apple.dnssd.service",
    '(allow mach-lookup (global-name-regex "mDNS"))': "com.apple.mDNSResponder",
    '(allow mach-lookup (global-name-prefix "com."))': "com.apple.dnssd.service",
    '(allow mach-lookup (extension "x"))': "com.apple.dnssd.service",
    '(allow file-read* (regex "(a+)+"))': "is not understood",
    '(allow file-read* (regex "[a-"))': "is not understood",
    '(allow file-read* (regex "[z-a]"))': "is wrong",
    '(allow file-read* (subpath "x"))': "is not an absolute path",
    "(allow file-read* (subpath x))": "make a text here",
    "(allow file-read* (subpath))": "takes strings, not nothing",
    "(allow file-read* (require-any))": "takes filters and at least one",
    '(allow file-read* (to ip "*:1"))': NETWORK,
    '(allow file-read* "/x")': "a string alone is not a filter",
    "(allow file-read* (with send-signal SIGKILL))": "this modifier is not taken",
    '(deny file-read* (subpath "/tmp/x"))': "is not resolved and may match nothing",
    '(deny file-read* (regex "^/tmp/x"))': "is a link, so this matches nothing",
    '(deny file-read* (subpath "/a"))\n(allow file-read* (subpath "/a/b"))': "put the deny last",
    '(allow file-read-data (subpath "/a"))\n(deny file-read* (subpath "/a/b"))': "deny file-read-data here",
    "(allow file-read*))": "closes nothing",
    "(allow file-read* '(a))": "is not understood",
    "(allow file-read* #t)": "is not understood",
    '(allow file-read* (literal "/a\\x41"))': "the escape",
    '(allow file-read* (literal #"/a\\"))': "it is not known how",
    f"{'(allow ' * 20}": "nested more than",
    f'(allow file-read* (literal "/{"x" * 70000}"))': "more than 65536 characters",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_why_and_where(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        profile(f"\n{text}")
    assert REFUSED[text] in str(raised.value)
    assert str(raised.value).startswith("f.toml:1: raw, line ")


def test_lines_are_those_of_the_text() -> None:
    with pytest.raises(UsageError, match=r"f\.toml:1: raw, line 3: raw rules open"):
        profile('(allow file-read* (subpath "/a"))\n\n(allow network*)')
    assert [
        line for line, _ in check_raw('\n\n(allow file-read*\n (subpath "/opt/\\x\\y"))'.replace("x", "z"), PLACES)
    ] == [4, 4]


def test_comments_and_strings_hide_nothing() -> None:
    text = raw_rules(
        [('(allow file-read* ; (deny\n (literal "/a ) ; (allow network*) \\" x"))', "f:1\n(allow network*)")], PLACES
    )
    assert text.others == (
        '; Raw rules of f:1\\n(allow network*)\n(allow file-read* (literal "/a ) ; (allow network*) \\" x"))'
    )
    assert "(allow" not in text.sockets.partition("\n")[2]


def test_without_raw_rules_the_profile_is_what_it_was() -> None:
    plain = ProfileSettings(APP, HOME)
    assert "Raw rules" not in session_profile(plain)


FORMS = st.recursive(
    st.sampled_from(
        ["network*", "network-outbound", "file-read*", "allow", "deny", '"/x"', '"*:443"', "ip", "tcp", "1"]
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda items: f"({' '.join(items)})"),
    max_leaves=8,
)
HEADS = st.sampled_from(["remote", "to", "literal", "subpath", "require-any", "require-not", "define", "begin", "with"])
WRAPPED = st.tuples(HEADS, FORMS, FORMS).map(lambda parts: f"({' '.join(parts)})")


@given(st.lists(st.tuples(st.sampled_from(["allow", "deny"]), FORMS, WRAPPED), max_size=3))
def test_whatever_is_written_nothing_gets_out(rules: list[tuple[str, str, str]]) -> None:
    text = "\n".join(f"({' '.join(parts)})" for parts in rules)
    try:
        judged = profile(text)
    except UsageError:
        return
    for request in OUT[:4]:
        assert denied_under_all(judged, request)


@given(st.text(max_size=60))
def test_any_text_is_rules_or_an_error(text: str) -> None:
    try:
        check_raw(text, PLACES)
    except UsageError:
        return
    check_with_linter(text)


def test_the_rules_that_the_documentation_shows_are_taken() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "profiles.md").read_text("utf-8")
    (shown,) = (block for block in page.split("```toml\n")[1:] if block.startswith("[seatbelt]"))
    assert check_raw(tomllib.loads(shown.partition("```")[0])["seatbelt"]["raw"], PLACES) == []
