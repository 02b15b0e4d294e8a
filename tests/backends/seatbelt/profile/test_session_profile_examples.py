"""Profiles of the kinds that people write by hand: what they open, and what lint says of it."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import bind, connect, connect_unix, file, lookup
from tests.seatbelt_model.values import ProfileError

# For a coding agent: secrets inside a readable workspace, name servers and web servers by port, servers of its own.
AGENT = """(version 1)
(deny default)
(allow file-read*
  (subpath (param "WORKSPACE"))
  (subpath (param "HOME") ".agent")
  (subpath "/tmp"))
(deny file-read*
  (subpath (param "HOME") ".ssh"))
(allow file-write* (subpath (param "PROJECT")) (literal "/dev/null"))
(allow network-outbound
  (remote udp "*:53")
  (remote tcp "*:443")
  (remote tcp "localhost:4222"))
(allow network-bind network-inbound (local ip "*:*"))
(allow mach-lookup (global-name "com.apple.dnssd.service"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"""
# For a shell: a function for places at home, loopback meant and more opened, an agent's socket by its folder.
SHELL = """(version 1)
(deny default)
(define home (param "HOME"))
(define (home-subpath path) (subpath (string-append home path)))
(allow file* (subpath (param "PROJECT")))
(deny file-read* (home-subpath "/.ssh") (home-subpath "/.aws"))
(allow network* (local ip "localhost:*"))
(allow network-outbound (to unix-socket (home-subpath "/.gnupg")))
(allow mach-lookup (global-name-regex "^org[.]gpgtools[.]"))
"""
# For a shell whose writes are all that is confined.
WRITES = """(version 1)
(deny default)
(allow process*)
(allow mach-lookup)
(allow network*)
(allow file-read*)
(deny file-write*)
(allow file-write* (subpath (param "PROJECT")))
(allow file-write* (subpath "/tmp"))
"""
# For an agent whose maker opened the system's parts until it worked.
GENEROUS = """(version 1)
(deny default)
(import "dyld-support.sb")
(allow signal)
(allow sysctl-read)
(allow system-socket)
(allow iokit-open)
(allow ipc-posix-shm)
(allow process-exec (subpath "/opt/homebrew/bin") (subpath (param "PROJECT")))
(allow file-read* file-write* (subpath "/opt/homebrew") (subpath (param "PROJECT")))
(allow file-read* (subpath (param "HOME")))
(allow file-ioctl (literal "/dev/tty"))
(allow mach-lookup (global-name "com.apple.trustd.agent"))
"""
VALUES = {"HOME": "/Users/me", "WORKSPACE": "/Users/me/dev", "PROJECT": "/Users/me/dev/project"}


def checks(text: str) -> set[tuple[int, str]]:
    return {(finding.line, finding.check) for finding in lint(load(text, VALUES))}


def test_the_agents_profile_opens_the_world_and_all_of_home() -> None:
    profile = load(AGENT, VALUES)
    assert allowed_under_all(profile, connect("203.0.113.7", 443))
    assert allowed_under_all(profile, connect("203.0.113.7", 53, "udp"))
    assert allowed_under_all(profile, lookup("com.apple.dnssd.service"))
    assert allowed_under_all(profile, connect_unix("/var/run/mDNSResponder"))
    assert allowed_under_all(profile, bind("0.0.0.0", 80))
    assert denied_under_all(profile, connect("203.0.113.7", 25))
    # Two values are alternatives: meant was one folder, allowed all of home, and then the deny takes it all back.
    assert denied_under_all(profile, file("file-read-data", "/Users/me/dev/project/main.py"))
    assert not allowed_under_all(profile, file("file-read-data", "/tmp/x"))
    assert checks(AGENT) == {
        (4, "overridden"),
        (5, "overridden"),
        (5, "relative"),
        (6, "unresolved"),
        (8, "relative"),
        (11, "any-host"),
        (12, "any-host"),
        (14, "any-listener"),
        (15, "resolver"),
        (16, "resolver"),
    }


def test_the_shells_profile_opens_everything_or_nothing() -> None:
    profile = load(SHELL, VALUES)
    assert not denied_under_all(profile, connect("203.0.113.7", 443))
    assert not allowed_under_all(profile, connect("127.0.0.1", 8080))
    assert allowed_under_all(profile, connect_unix("/Users/me/.gnupg/S.gpg-agent"))
    assert denied_under_all(profile, connect_unix("/Users/me/.ssh/agent"))
    assert denied_under_all(profile, lookup("com.apple.dnssd.service"))
    assert checks(SHELL) == {(7, "local-outbound")}


def test_the_writers_profile_confines_writes_and_nothing_else() -> None:
    profile = load(WRITES, VALUES)
    assert denied_under_all(profile, file("file-write-data", "/Users/me/.zshrc"))
    assert allowed_under_all(profile, file("file-write-data", "/Users/me/dev/project/x"))
    assert allowed_under_all(profile, file("file-read-data", "/Users/me/.ssh/id_ed25519"))
    assert allowed_under_all(profile, connect("203.0.113.7", 443))
    assert checks(WRITES) == {
        (3, "processes"),
        (4, "services"),
        (4, "resolver"),
        (5, "unfiltered-network"),
        (5, "resolver"),
        (6, "secrets"),
        (9, "unresolved"),
    }


def test_the_generous_profile_reaches_other_programs_the_kernel_keys_and_the_terminal() -> None:
    text = GENEROUS.replace('(import "dyld-support.sb")', "")
    profile = load(text, VALUES)
    assert allowed_under_all(profile, file("file-read-data", "/Users/me/.ssh/id_ed25519"))
    assert allowed_under_all(profile, file("file-write-data", "/opt/homebrew/bin/git"))
    assert checks(GENEROUS) == {
        (3, "import"),
        (4, "processes"),
        (5, "processes"),
        (6, "kernel"),
        (7, "kernel"),
        (8, "processes"),
        (9, "written-and-run"),
        (11, "secrets"),
        (12, "terminal"),
        (13, "certificates"),
    }


@pytest.mark.parametrize(
    "rule",
    [
        '(allow file-execute (literal "/bin/sh"))',
        '(allow file-read-write* (literal "/dev/null"))',
        '(trace "audit" (deny file-read*))',
        "(deny file-read* (with-info (path target-path)))",
        '(define log-name (string-replace (param "PROJECT") "/" "-"))',
        '(allow network-outbound (remote tcp "127.0.0.1:4222"))',
    ],
)
def test_what_profiles_on_the_web_hope_for_and_seatbelt_does_not_have(rule: str) -> None:
    with pytest.raises(ProfileError):
        load(f"(version 1)(deny default)\n{rule}", VALUES).checked()
