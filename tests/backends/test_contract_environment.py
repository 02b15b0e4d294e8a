"""What the command finds in its environment: the caller's, and no proxy but ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.contract import EVERY_NAME, LOOPBACK, own_hosts, path_of, session_environment

names = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name and b"=" not in name)
DOOR = b"http://127.0.0.1:1008"
OWN = {b"NETSANDBOX_SESSION", b"NETSANDBOX_NAME", b"SANDBOX_MODE"}
values = st.binary(max_size=50).filter(lambda value: b"\0" not in value)


@pytest.mark.attack(160)
@given(st.dictionaries(names, values))
def test_everything_else_arrives_byte_for_byte(outer: dict[bytes, bytes]) -> None:
    inner = session_environment(outer, "session-1", mode="filtered", name=None, proxy=DOOR)
    for name, value in outer.items():
        if name.lower() not in EVERY_NAME and name not in OWN:
            assert inner[name] == value


@pytest.mark.attack(157)
@given(st.sampled_from(sorted(EVERY_NAME)), st.data(), st.booleans())
def test_no_spelling_of_a_proxy_variable_is_inherited(name: bytes, data: st.DataObject, proxy_env: bool) -> None:
    upper = data.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    spelled = bytes(
        letter - 32 if up and 97 <= letter <= 122 else letter for letter, up in zip(name, upper, strict=True)
    )
    inner = session_environment(
        {spelled: b"http://192.0.2.1:3128"}, "s", mode="filtered", name=None, proxy=DOOR if proxy_env else None
    )
    assert b"http://192.0.2.1:3128" not in inner.values()


@pytest.mark.attack(160)
def test_a_variable_without_a_name_is_left_out() -> None:
    """`=x` in an environment: no function of Python takes it, so the session could not be started."""
    inner = session_environment({b"": b"x", b"A": b"1"}, "s", mode="filtered", name=None, proxy=None)
    assert b"" not in inner
    assert inner[b"A"] == b"1"


def test_programs_that_look_for_a_proxy_find_the_door_and_leave_loopback_alone() -> None:
    inner = session_environment({}, "s", mode="filtered", name=None, proxy=DOOR)
    for name in (b"http_proxy", b"https_proxy", b"all_proxy"):
        assert inner[name] == inner[name.upper()] == DOOR
    assert inner[b"no_proxy"] == inner[b"NO_PROXY"]
    assert {b"localhost", b"127.0.0.1", b"::1"} <= set(inner[b"no_proxy"].split(b","))


def test_without_proxy_variables_there_are_none() -> None:
    assert session_environment(
        {b"HTTPS_PROXY": b"x", b"PATH": b"/bin"}, "s", mode="filtered", name=None, proxy=None
    ) == {
        b"PATH": b"/bin",
        b"NETSANDBOX_SESSION": b"s",
        b"SANDBOX_MODE": b"filtered",
    }


def test_a_session_cannot_be_named_by_the_caller() -> None:
    inner = session_environment({b"NETSANDBOX_SESSION": b"forged"}, "true", mode="offline", name=None, proxy=DOOR)
    assert inner[b"NETSANDBOX_SESSION"] == b"true"


def test_the_command_can_tell_its_mode_and_its_name_and_the_caller_can_forge_neither() -> None:
    forged = {b"SANDBOX_MODE": b"online", b"NETSANDBOX_NAME": b"forged"}
    inner = session_environment(forged, "s", mode="offline", name="shop", proxy=DOOR)
    assert (inner[b"SANDBOX_MODE"], inner[b"NETSANDBOX_NAME"]) == (b"offline", b"shop")
    assert b"NETSANDBOX_NAME" not in session_environment(forged, "s", mode="offline", name=None, proxy=DOOR)


def test_the_search_path_of_an_environment_is_text() -> None:
    assert path_of({b"PATH": b"/bin:/\xff"}) == "/bin:/\udcff"
    assert path_of({}) == ""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("vm", b",vm"),
        ("My-Machine2", b",my-machine2"),
        ("", b""),
        ("a,b", b""),
        ("host.example.com", b""),
        ("\udcff", b""),
    ],
)
def test_the_sessions_own_hosts_are_dialled_without_the_proxy(name: str, wanted: bytes) -> None:
    """A whole name may be that of a site, and is left to the rules."""
    assert own_hosts(name) == LOOPBACK + wanted
    assert b"0.0.0.0" in LOOPBACK.split(b",")
