"""Each check of a Mac says what is there, and for what is lacking what to do; only what no session does without is
missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.doctor import mac_checks as machine
from netsandbox.doctor.check import MISSING, NOTE, OK, UNTRIED, Check
from netsandbox.doctor.mac_checks import loopback_aliases, name_servers, product_version, protection
from netsandbox.runtime.loop import Loop


@pytest.mark.parametrize(
    ("sw_vers", "release", "status", "found"),
    [
        ("ProductVersion: 14.6.1", "", OK, "macOS 14.6.1"),
        ("ProductVersion: 11.0", "", OK, "macOS 11.0"),
        ("ProductVersion: 10.15.7", "", MISSING, "macOS 10.15.7"),
        (None, "25.1.0", OK, "macOS 26"),
        ("nonsense", "19.0.0", MISSING, "macOS 10.15"),
        (None, "", NOTE, "its version is unknown"),
    ],
)
def test_an_old_macos_is_named(sw_vers: str | None, release: str, status: str, found: str) -> None:
    check = machine.version(sw_vers, release)
    assert (check.status, check.found) == (status, found)


def test_both_processors_are_known_and_no_other() -> None:
    assert [machine.architecture(name).status for name in ("arm64", "x86_64", "ppc")] == [OK, OK, MISSING]


def test_protection_that_is_off_is_a_note() -> None:
    texts = ["System Integrity Protection status: enabled.", "System Integrity Protection status: disabled.", None]
    assert [machine.integrity(text).status for text in texts] == [OK, NOTE, NOTE]


def test_a_helper_that_cannot_run_is_missing() -> None:
    assert machine.helper("/x", "") == Check("native helper", OK, "/x runs")
    lacking = machine.helper("/x", "it is missing")
    assert (lacking.status, lacking.remedy) == (MISSING, "reinstall netsandbox")


def test_what_is_optional_is_a_note() -> None:
    assert machine.preload("/x", there=False).status == NOTE
    assert machine.preload("/x", there=True).status == OK
    assert machine.resolver("").status == NOTE
    assert machine.resolver("nameserver 192.0.2.1").status == OK


def test_a_signature_is_accepted_or_quoted_or_not_asked_for() -> None:
    assert machine.signature("helper", "/x", "").status == OK
    bad = machine.signature("helper", "/x", "/x: code object is not signed at all")
    assert (bad.status, bad.found) == (NOTE, "/x: code object is not signed at all")
    assert "codesign --force --sign - /x" in (bad.remedy or "")
    assert machine.signature("helper", "/x", None).status == UNTRIED


def test_what_this_mac_did_not_sign_is_a_note_that_says_why() -> None:
    assert machine.signed_here("").status == OK
    found = machine.signed_here("there is no /usr/bin/codesign")
    assert (found.status, found.found) == (NOTE, "there is no /usr/bin/codesign")


def test_codesign_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, file = tmp_path / "codesign", tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(machine, "CODESIGN", str(program))
    assert machine.verified(str(file)) is None
    for text, answer in (
        ("exit 0", ""),
        ('echo "$1 $2: invalid" >&2; exit 1', f"-v {file}: invalid"),
        ("exit 3", "codesign ended with 3"),
    ):
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        assert machine.verified(str(file)) == answer
    assert machine.verified(str(tmp_path / "none")) is None


def test_a_deep_state_directory_has_no_control_socket() -> None:
    assert machine.control_socket(Check("state directory", OK, "/Users/me/.local/state/netsandbox")).status == OK
    deep = machine.control_socket(Check("state directory", OK, "/" + "x" * 60))
    assert (deep.status, deep.remedy) == (NOTE, "set XDG_STATE_HOME to a shorter path")
    assert machine.control_socket(Check("state directory", MISSING, "")).status == UNTRIED


def test_locks_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.locks_work()
    assert machine.locks(works=True).status == OK
    assert machine.locks(works=False).status == MISSING

    class Lax:
        @staticmethod
        def open(path: str, *, shared: bool) -> Any:
            return Lax()

        def take(self, start: int, length: int) -> bool:
            return True

        def close(self) -> None: ...

    monkeypatch.setattr(machine, "RangeLock", Lax)
    assert not machine.locks_work()
    monkeypatch.setattr(Lax, "take", lambda *_: (_ for _ in ()).throw(OSError(22, "no")))
    assert not machine.locks_work()
    monkeypatch.setattr(Lax, "open", lambda *_, **__: (_ for _ in ()).throw(OSError(22, "no")))
    assert not machine.locks_work()


def test_aliases_are_listed_or_how_to_make_one_is_said() -> None:
    assert machine.aliases("\tinet 127.0.0.1 x\n\tinet 127.0.0.2 x\n").found.startswith("127.0.0.2, ")
    none = machine.aliases(None)
    assert none.status == NOTE
    assert "`" not in (none.remedy or "")
    assert "sudo ifconfig lo0 alias 127.0.0.2" in (none.remedy or "")


def test_every_check_is_made_and_none_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a system that has none of a Mac's programs too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    none = str(tmp_path / "none")
    system = MacSystem(none, Loop, lambda pid: None, lambda clock: frozenset, library=none)  # type: ignore[arg-type, return-value]
    found = {check.name: check.status for check in machine.checks(system)}
    assert list(found) == [
        "macOS",
        "architecture",
        "SIP",
        "native helper",
        "preload library",
        "helper's signature",
        "library's signature",
        "signed by this Mac",
        "state directory",
        "control socket",
        "locks by open file",
        "lo0 aliases",
        "resolver",
    ]
    assert found["native helper"] == MISSING
    assert found["locks by open file"] == OK
    if sys.platform != "darwin":
        assert found["macOS"] == NOTE


SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t14.6.1\nBuildVersion:\t\t23G93\n"
LO0 = """lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
\tinet 127.0.0.2 netmask 0xff000000
\tinet 127.78.32.1 netmask 0xff000000
\tnd6 options=201<PERFORMNUD,DAD>
"""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (SW_VERS, (14, 6, 1)),
        ("ProductVersion: 26.0", (26, 0)),
        ("ProductVersion: 10.15.7 ", (10, 15, 7)),
        ("ProductVersion:", None),
        ("ProductVersion: 14.x", None),
        ("ProductVersion: 14.\u0661", None),
        ("ProductName: macOS", None),
        ("", None),
    ],
)
def test_the_version_is_read(text: str, version: tuple[int, ...] | None) -> None:
    assert product_version(text) == version


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("System Integrity Protection status: enabled.\n", True),
        ("System Integrity Protection status: disabled.\n", False),
        ("System Integrity Protection status: unknown (Custom Configuration).\n\nConfiguration:\n", False),
        ("System Integrity Protection status: perhaps.\n", None),
        ("status: enabled.", None),
        ("csrutil: failed", None),
        ("", None),
    ],
)
def test_protection_is_on_or_not_or_not_known(text: str, enabled: bool | None) -> None:
    assert protection(text) is enabled


def test_aliases_are_the_addresses_beside_the_first() -> None:
    assert loopback_aliases(LO0) == ("127.0.0.2", "127.78.32.1")
    assert loopback_aliases("\tinet 127.0.0.1 netmask 0xff000000\n\tinet 192.0.2.1\n\tinet\n") == ()


def test_name_servers_are_named_one_a_line() -> None:
    assert name_servers("# x\nsearch a.test\nnameserver 192.0.2.53\nnameserver\nnameserver fe80::1%en0\n") == (
        "192.0.2.53",
        "fe80::1%en0",
    )


@given(st.text(max_size=60))
def test_any_text_is_facts_or_none(text: str) -> None:
    version = product_version("ProductVersion: " + text)
    assert version is None or all(part >= 0 for part in version)
    assert protection("System Integrity Protection status:" + text) in (True, False, None)
    assert all(alias.startswith("127.") for alias in loopback_aliases(text))
    name_servers(text)
