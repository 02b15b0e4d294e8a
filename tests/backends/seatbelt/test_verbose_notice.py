"""What a user of a Mac is told with -v: the strategy, the window, the doors, and whether the library is there."""

from __future__ import annotations

import pytest
from netsandbox_portmap.window import Window

from netsandbox.backends.seatbelt.verbose_notice import introduction, is_protected

WINDOW = Window(20000, 100, "127.0.0.1")


def test_one_line_says_how_the_session_is_made() -> None:
    assert introduction("rewire-port", WINDOW, "/opt/homebrew/bin/node", opens=True, library=True) == [
        "strategy rewire-port, window 20000-20099; doors for HTTP, SOCKS5 and names on localhost, behind a token;"
        " with the preload library"
    ]
    assert introduction("fail", WINDOW, "", opens=False, library=False) == [
        "strategy fail, window 20000-20099; no doors: nothing is allowed; without the preload library"
    ]


def test_a_program_of_the_system_is_told_to_be_without_the_library() -> None:
    lines = introduction("rewire-port", WINDOW, "/bin/sh", opens=True, library=True)
    assert len(lines) == 2
    assert lines[1].startswith("/bin/sh is a program of the system: macOS starts it without the preload library")
    assert len(introduction("fail", WINDOW, "/bin/sh", opens=True, library=False)) == 1


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        ("/bin/sh", True),
        ("/usr/bin/python3", True),
        ("/sbin/ifconfig", True),
        ("/System/Applications/Calculator.app/Contents/MacOS/Calculator", True),
        ("/usr/local/bin/node", False),
        ("/System/Volumes/Data/Users/me/bin/x", False),
        ("/opt/homebrew/bin/node", False),
        ("/Users/me/bin/sh", False),
        ("/binary", False),
        ("bin/sh", False),
        ("", False),
    ],
)
def test_protected_is_what_lies_in_the_systems_folders(path: str, protected: bool) -> None:
    assert is_protected(path) is protected
