"""Which macOS it is, by its kernel; one that is too old is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.macos_release import check_release, macos_version
from netsandbox.errors import HostError


@pytest.mark.parametrize(
    ("darwin", "version"),
    [
        ("19.6.0", "10.15"),
        ("20.0.0", "11"),
        ("23.1.0", "14"),
        ("24.6.0", "15"),
        ("25.0.0", "26"),
        ("26.0.0", "27"),
        ("5.0", "10.1"),
        ("4.0", None),
        ("", None),
        ("6.18.5-generic", "10.2"),
        ("x", None),
        ("\u0662\u0660.0", None),
        ("9999.0", None),
    ],
)
def test_a_kernel_has_its_macos(darwin: str, version: str | None) -> None:
    assert macos_version(darwin) == version


@pytest.mark.parametrize(("darwin", "version"), [("19.6.0", "10.15"), ("18.0.0", "10.14"), ("8.1", "10.4")])
def test_a_mac_that_is_too_old_is_named(darwin: str, version: str) -> None:
    with pytest.raises(HostError, match=rf"this is macOS {version}, .*needs macOS 11 or newer; nothing was run"):
        check_release(darwin)


@pytest.mark.parametrize("darwin", ["20.0.0", "25.1.0", "99.0.0", "", "strange"])
def test_what_is_newer_or_unknown_is_for_the_self_test_to_decide(darwin: str) -> None:
    check_release(darwin)


@given(st.text(max_size=12))
def test_any_text_is_a_version_or_none(text: str) -> None:
    version = macos_version(text)
    assert version is None or version.replace(".", "").isdigit()
