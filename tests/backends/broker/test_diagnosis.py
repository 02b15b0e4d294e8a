"""A broker that cannot be set up says why in one line, and what to do."""

from __future__ import annotations

import errno

import pytest

from netsandbox.backends.broker.diagnosis import explain_failure

DOING = (
    "run `netsandbox doctor`",
    "Linux 5.13 or newer",
    "outside of it",
    "or use Linux 6.7",
    "ulimit -n",
    "smaller folder",
)


@pytest.mark.parametrize(
    ("step", "number", "words"),
    [
        ("", 0, "ended before the sandbox was set up"),
        ("Landlock", errno.ENOSYS, "landlock among its lsm="),
        ("Landlock", errno.EOPNOTSUPP, "landlock among its lsm="),
        ("route_localnet", errno.EPERM, "has no rules for TCP"),
        ("installing the seccomp filter", errno.EBUSY, "Another sandbox around this one"),
        ("installing the seccomp filter", errno.EINVAL, "run `netsandbox doctor`"),
        ("making the doors", errno.EMFILE, "ulimit -n 1024"),
        ("making the doors", errno.ENFILE, "ulimit -n 1024"),
        ("reading the plan", errno.E2BIG, "too many rules"),
        ("anything else", 99999, "run `netsandbox doctor`"),
        ("/home/me/a\nb\x1b[31m", errno.EACCES, "failed: Permission denied"),
    ],
)
def test_each_failure_is_one_line_that_ends_with_advice(step: str, number: int, words: str) -> None:
    text = explain_failure(step, number)
    assert words in text
    assert any(advice in text for advice in DOING)
    assert "\n" not in text
    assert "\x1b" not in text
