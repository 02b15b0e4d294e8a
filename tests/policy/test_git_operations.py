"""Of an operation that is not finished stays what runs nothing, and what the host had before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.git_operations import OPTIONS, STRATEGY, TODO, vetted

HOSTS = b"pick 1a2b one\nexec make test\n\n# a comment\n"
FINE = [
    *(
        "pick 1a2b x",
        "p 1",
        "\tedit 1",
        "reword 1",
        "fixup -C 1",
        "squash 1",
        "drop 1",
        "label onto",
        "reset [new root]",
    ),
    *("merge -C 1 topic # x", "update-ref refs/heads/x", "break", "b", "noop", "", "# exec x", "noop\r"),
]
RUN = [
    "exec ./evil",
    "x ./evil",
    " \tx\t./evil",
    "exec\t./evil",
    "x",
    "EXEC x",
    "\x0cexec x",
    "pick\x0bexec",
    "\0exec x",
]


@pytest.mark.parametrize("line", FINE)
def test_commands_that_git_carries_out_itself_stay(line: str) -> None:
    found = HOSTS + line.encode() + b"\n"
    assert vetted(TODO, HOSTS, found) == (found, [])
    assert vetted(TODO, None, line.encode()) == (line.encode(), [])


@pytest.mark.parametrize("line", RUN)
def test_a_line_that_a_shell_would_run_is_taken_away(line: str) -> None:
    assert vetted(TODO, HOSTS, HOSTS + line.encode() + b"\n") == (HOSTS, [line.strip()])
    assert vetted(TODO, None, line.encode()) == (b"", [line.strip()])


def test_the_hosts_own_commands_stay_while_the_session_goes_on() -> None:
    assert vetted(TODO, HOSTS, b"exec make test\n") == (b"exec make test\n", [])
    assert vetted(TODO, None, HOSTS)[1] == ["exec make test"]
    assert vetted(TODO, b"exec ./evil", b"exec ./evil") == (b"exec ./evil", [])


@pytest.mark.parametrize("name", [STRATEGY, OPTIONS])
def test_only_strategies_of_git_itself_stay(name: str) -> None:
    form = "{}\n" if name == STRATEGY else "[options]\n\tedit = true\n\tstrategy = {}\n"
    fine, evil = form.format("ort").encode(), form.format("x/evil").encode()
    assert vetted(name, None, fine) == (fine, [])
    assert vetted(name, None, evil) == (None, ["strategy x/evil"])
    assert vetted(name, fine, evil) == (fine, ["strategy x/evil"])
    assert vetted(name, evil, evil) == (evil, [])


@pytest.mark.parametrize(
    "found", [b"[options\n", b"[options]\n\tstrategy\n", b"[options]\n\tstrategy = ort\n\tstrategy = e"]
)
def test_options_that_are_not_understood_do_not_stay(found: bytes) -> None:
    content, taken = vetted(OPTIONS, None, found)
    assert content is None
    assert taken


def test_options_without_a_strategy_stay() -> None:
    found = b"[options]\n\tsignoff = true\n"
    assert vetted(OPTIONS, None, found) == (found, [])


@given(known=st.lists(st.sampled_from([*FINE, *RUN])), found=st.lists(st.sampled_from([*FINE, *RUN])))
def test_each_line_was_known_or_runs_nothing(known: list[str], found: list[str]) -> None:
    content, _ = vetted(TODO, "\n".join(known).encode(), "\n".join(found).encode())
    assert content is not None
    before = {line.strip() for line in known}
    assert all(line.strip() in before or line in FINE for line in content.decode().split("\n"))
