"""A trial tells how an action ended and leaves this process as it was."""

from __future__ import annotations

import errno
import os

import pytest

from netsandbox.doctor.trial import LIBC, STRANGE, checked, trial


def test_success_is_zero():
    assert trial(lambda: None) == 0


def test_an_error_is_its_number():
    assert trial(lambda: os.close(-1)) == errno.EBADF


def test_anything_else_is_strange_and_never_success():
    assert trial(lambda: int("x")) == STRANGE


def test_nothing_changes_here():
    before = os.getcwd()
    assert trial(lambda: os.chdir("/")) == 0
    assert os.getcwd() == before


def test_a_failed_call_of_libc_is_raised():
    with pytest.raises(OSError, match="Bad file descriptor"):
        checked(LIBC.close(-1))
