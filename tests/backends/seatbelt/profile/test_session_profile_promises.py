"""A profile as the backend needs it: what must stay shut is shut under every model, what must work works under every
model, and each of these tests would notice if a rule were missing, moved or changed."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import Request, bind, connect, connect_unix, file, listen, lookup

HEADER = "(version 1)"
RULES = [
    "(deny default)",
    "(allow process-fork process-exec)",
    "(allow signal (target same-sandbox))",
    '(allow mach-lookup (global-name "com.apple.system.logger"))',
    '(allow file-read* (subpath "/usr") (subpath "/System") (subpath (param "HOME")))',
    '(allow file-write* (subpath (param "PROJECT")))',
    '(deny file-read* file-write* (subpath (string-append (param "HOME") "/.ssh")))',
    '(deny file-write* (subpath (string-append (param "PROJECT") "/.git/hooks")))',
    "(deny network*)",
    '(allow network-bind network-inbound (local tcp "localhost:20000"))',
    '(allow network-outbound (remote tcp "localhost:9000") (remote udp "localhost:9053"))',
]
VALUES = {"HOME": "/Users/me", "PROJECT": "/Users/me/project"}
SHUT: list[Request] = [
    connect("203.0.113.7", 443),
    connect("203.0.113.7", 9000),
    connect("2001:db8::7", 443),
    connect("203.0.113.7", 53, "udp"),
    connect("192.0.2.1", 22),
    connect("127.0.0.1", 22),
    connect("::1", 9001),
    connect("127.0.0.1", 9053),
    connect("127.0.0.2", 22),
    connect("::ffff:127.0.0.1", 22),
    connect("192.0.2.9", 22, own=True),
    connect_unix("/var/run/mDNSResponder"),
    connect_unix("/Users/me/.ssh/agent"),
    lookup("com.apple.dnssd.service"),
    lookup("com.apple.trustd.agent"),
    bind("0.0.0.0", 20000),
    bind("127.0.0.1", 20001),
    bind("127.0.0.1", 0),
    listen("::", 20000),
    file("file-read-data", "/Users/me/.ssh/id_ed25519"),
    file("file-read-metadata", "/Users/me/.ssh/id_ed25519"),
    file("file-write-data", "/Users/me/.ssh/authorized_keys"),
    file("file-write-create", "/Users/me/project/.git/hooks/pre-commit"),
    file("file-write-create", "/Users/me/project/../.zshrc"),
    file("file-read-data", "/Users/you/x"),
    Request("signal", attributes={"target": "others"}),
    Request("appleevent-send"),
]
OPEN: list[Request] = [
    connect("127.0.0.1", 9000),
    connect("::1", 9000),
    connect("127.0.0.1", 9053, "udp"),
    bind("127.0.0.1", 20000),
    bind("::1", 20000),
    listen("127.0.0.1", 20000),
    lookup("com.apple.system.logger"),
    file("file-read-data", "/usr/lib/dyld"),
    file("file-read-metadata", "/Users/me/.npmrc"),
    file("file-write-create", "/Users/me/project/new"),
    Request("process-fork"),
    Request("signal", attributes={"target": "same-sandbox"}),
]


def made(rules: list[str]) -> Profile:
    return load("\n".join([HEADER, *rules]), VALUES)


def broken(rules: list[str]) -> list[Request]:
    """The promises that these rules do not keep."""
    profile = made(rules)
    shut = [request for request in SHUT if not denied_under_all(profile, request)]
    return shut + [request for request in OPEN if not allowed_under_all(profile, request)]


@pytest.mark.attack(135)
@pytest.mark.attack(136)
@pytest.mark.attack(137)
def test_every_promise_holds_under_every_model() -> None:
    assert broken(RULES) == []
    assert lint(made(RULES)) == []


# Without these everything holds all the same, for what they deny is denied by default; they are there for whoever adds
# an allowance above them.
SPARE = {"(deny default)", "(deny network*)"}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in SPARE])
def test_a_rule_that_is_missing_breaks_a_promise(rule: str) -> None:
    assert broken([other for other in RULES if other != rule])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(deny default)", "(allow default)"),
        ("(deny network*)", "(allow network*)"),
        ("(remote tcp", "(local tcp"),
        ('tcp "localhost:9000"', 'tcp "*:9000"'),
        ('"localhost:9000"', '"localhost:*"'),
        ('tcp "localhost:9000"', 'ip "localhost:*"'),
        (' (remote tcp "localhost:9000") (remote udp "localhost:9053")', ""),
        ('"localhost:20000"', '"*:20000"'),
        ('"localhost:20000"', '"localhost:*"'),
        ("network-bind network-inbound", "network-inbound"),
        ("network-bind network-inbound", "network-bind"),
        ("network-bind network-inbound", "network*"),
        (' (global-name "com.apple.system.logger")', ""),
        ('global-name "com.apple.system.logger"', 'global-name-prefix "com.apple."'),
        ('/.git/hooks"', '/.git/hook"'),
        ("(deny file-write*", "(deny file-write-data"),
        ("(deny file-read* file-write*", "(deny file-read-data file-write*"),
        ('"/.ssh"', '"/.ssh/"'),
        ('(subpath (param "PROJECT"))', '(subpath (param "HOME"))'),
        ('(subpath (param "PROJECT"))', '(literal (param "PROJECT"))'),
        (" (target same-sandbox)", ""),
    ],
)
def test_a_rule_that_is_changed_breaks_a_promise_or_is_told_by_lint(old: str, new: str) -> None:
    changed = [rule.replace(old, new) for rule in RULES]
    assert changed != RULES
    assert broken(changed) or lint(made(changed))


def test_a_deny_before_what_it_narrows_breaks_a_promise() -> None:
    secret = next(at for at, rule in enumerate(RULES) if ".ssh" in rule)
    moved = [*RULES[:1], RULES[secret], *RULES[1:secret], *RULES[secret + 1 :]]
    assert broken(moved)
    assert {finding.check for finding in lint(made(moved))} == {"reopened", "secrets"}


def test_the_doors_before_the_deny_of_the_network_break_a_promise() -> None:
    door, shut = RULES[-1], RULES.index("(deny network*)")
    moved = [*RULES[:shut], door, *RULES[shut:-1]]
    assert broken(moved)
    assert {finding.check for finding in lint(made(moved))} == {"disputed"}


def test_an_allowance_on_a_narrower_operation_breaks_a_deny_above_it() -> None:
    added = [*RULES[:6], '(allow file-read-data (subpath "/Users/me"))', *RULES[6:]]
    assert broken(added) == [file("file-read-data", "/Users/me/.ssh/id_ed25519")]
    assert "deny-too-high" in {finding.check for finding in lint(made(added))}
