"""A session inside a session: it says that it cannot be, and runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

PLAIN = ""
UNMARKED = "unset NETSANDBOX_SESSION; "
IN_DISGUISE = UNMARKED + 'export XDG_STATE_HOME="$PWD/state"; '


def inner(netsandbox: Any, mark: Path) -> list[str]:
    return [netsandbox.python, "-m", "netsandbox", "run", "--", "touch", str(mark)]


@pytest.mark.open_files
@pytest.mark.attack(144)
@pytest.mark.parametrize(
    ("before", "words"),
    [
        (PLAIN, "this is a session of netsandbox already, and the kernel lets only one receive the calls"),
        (UNMARKED, "XDG_STATE_HOME"),
        (IN_DISGUISE, "run netsandbox outside of it"),
    ],
    ids=["plain", "unmarked", "with-a-state-of-its-own"],
)
def test_a_session_in_a_session_runs_nothing_and_says_why(netsandbox: Any, before: str, words: str) -> None:
    mark = netsandbox.home().work / "mark"
    run = netsandbox(
        "run", "--pass-env", "PYTHONPATH", "--", "sh", "-c", f'{before}exec "$@"', "sh", *inner(netsandbox, mark)
    )
    assert run.returncode == 1
    assert words in run.stderr
    assert not mark.exists()


def test_outside_the_same_words_run(netsandbox: Any) -> None:
    mark = netsandbox.home().work / "mark"
    done = netsandbox.home().plainly(["env", *inner(netsandbox, mark)])
    assert (done.returncode, done.stderr) == (0, "")
    assert mark.exists()
