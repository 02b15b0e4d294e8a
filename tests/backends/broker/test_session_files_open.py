"""The modes `readable` and `open`: secrets and denied files are closed, the rest is open."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.landlocked import DONE, REFUSED, Try, home, put

__all__ = ["home"]
pytestmark = pytest.mark.ordinary_user


@pytest.mark.parametrize("mode", ["readable", "open"])
def test_secrets_are_closed_in_open_modes_and_the_rest_is_read(home: Any, landlocked: Try, mode: str) -> None:
    plan, key, gh = put(home, "Documents/plan", "plan"), put(home, ".ssh/id_rsa"), put(home, ".config/gh/hosts.yml")
    tool, mine = put(home, ".config/tool/x", "tool"), put(home, "work/mine", "mine")
    denied = put(home, "Documents/deep/denied")
    found = landlocked(
        [
            *(("read", path) for path in (plan, tool, mine)),
            ("write", mine),
            ("make", home.work / "new"),
            *(("read", path) for path in (key, gh, denied)),
            ("write", key),
            ("list", home.state / "netsandbox"),
            ("make", home.state / "netsandbox/x"),
            ("write", "/proc/self/comm"),
        ],
        mode=mode,
        deny_read=[denied],
    )
    assert found.results[:5] == ["plan", "tool", "mine", DONE, DONE]
    assert found.results[5:] == [REFUSED] * 7
    written = landlocked([("write", plan)], mode=mode, temporary=False).results
    assert written == ([DONE] if mode == "open" else [REFUSED])


@pytest.mark.parametrize("mode", ["readable", "open"])
def test_open_modes_have_a_temporary_folder(home: Any, landlocked: Try, mode: str) -> None:
    found = landlocked([("sh", 'f=$(mktemp) && echo x >"$f" && cat "$f"')], mode=mode)
    assert found.results == [[0, "x\n", ""]]


@pytest.mark.parametrize("mode", ["readable", "open"])
def test_a_deny_in_the_working_folder_is_an_error_in_open_modes(home: Any, landlocked: Try, mode: str) -> None:
    keep = put(home, "work/keep")
    assert landlocked(mode=mode, deny_write=[keep]).kind == "UsageError"
    assert landlocked(mode=mode, deny_read=[keep]).kind == "UsageError"
    assert "belongs to netsandbox" in landlocked(mode=mode, own=[keep]).error


def test_a_deny_elsewhere_is_carved_out_of_what_is_open(home: Any, landlocked: Try) -> None:
    keep, beside = put(home, "data/keep", "keep"), put(home, "data/beside", "beside")
    found = landlocked([("write", keep), ("write", beside), ("read", keep)], mode="open", deny_write=[keep])
    assert found.results == [REFUSED, DONE, "keep"]
