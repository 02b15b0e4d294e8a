"""What the helper reports, read and told: any bytes at all, and one line for the user."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.launch_failure import failure, read_report
from netsandbox.errors import CommandError, HostError


def test_a_report_has_a_step_a_number_and_a_detail() -> None:
    assert read_report(b"profile\x0022\0line 3: no") == ("profile", 22, "line 3: no")
    assert read_report(b"watch\x0012\0") == ("watch", 12, "")


@pytest.mark.parametrize("data", [b"", b"profile", b"profile\x0022", b"profile\0x\0y", b"\x001\0"])
def test_what_is_no_report_says_that_nothing_was_run(data: bytes) -> None:
    assert read_report(data) is None
    assert "nothing was run" in str(failure(data, "cmd", ""))


@given(st.binary(max_size=200))
def test_any_bytes_are_one_printable_line(data: bytes) -> None:
    text = str(failure(data, "cmd", "/bin"))
    assert "\n" not in text
    assert text.isprintable()


def test_the_system_s_words_are_quoted_and_the_user_is_told_what_to_do() -> None:
    told = failure(b"self-test\x0061\0TCP to ::1", "cmd", "")
    assert isinstance(told, HostError)
    assert "does not hold" in str(told)
    assert "TCP to ::1" in str(told)
    assert "nothing was run" in str(told)


def test_a_failed_exec_is_the_commands() -> None:
    told = failure(b"exec\x002\0", "cmd", "/bin")
    assert isinstance(told, CommandError)
    assert told.status == 127
