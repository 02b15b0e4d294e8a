"""What was said about files, against a slow and obvious reading of the same rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import (
    MAX_DENIED,
    MAX_WRITABLE,
    PathRule,
    ResolvedPath,
    check_few,
    check_hidden,
    check_open,
    check_shown,
    check_straight,
    check_writable,
    hidden,
    is_lifted,
    is_within,
    normal,
    outermost,
    path_rule,
)

names = st.sampled_from(["a", "b", "a-b", "ab", "é", "."])
paths = st.lists(st.sampled_from(["a", "b", "a-b", "ab"]), max_size=4).map(lambda parts: "/" + "/".join(parts))
places = st.lists(st.builds(ResolvedPath, paths, paths), max_size=6)


def at(*found: str) -> list[ResolvedPath]:
    return [ResolvedPath(path, path) for path in found]


def below(path: str, folder: str) -> bool:
    """By parts, where the code goes by characters."""
    wanted = [part for part in folder.split("/") if part]
    return [part for part in path.split("/") if part][: len(wanted)] == wanted


@given(paths, paths)
def test_145_within_goes_by_whole_names(path: str, folder: str) -> None:
    assert is_within(path, folder) == below(path, folder)


@given(st.lists(paths))
def test_the_outermost_paths_hold_all_of_them_and_none_holds_another(found: list[str]) -> None:
    kept = outermost(found)
    assert set(kept) <= set(found)
    assert all(any(below(path, folder) for folder in kept) for path in found)
    assert not any(below(one, other) for one in kept for other in kept if one != other)


@given(places, places, places, paths)
def test_a_path_is_hidden_by_a_deny_or_by_a_secret_that_nobody_lifted(
    secrets: list[ResolvedPath], allowed: list[ResolvedPath], denied: list[ResolvedPath], path: str
) -> None:
    closed = any(below(path, place.real) for place in denied)
    for secret in secrets:
        lifted = any(below(secret.name, place.name) or below(secret.real, place.name) for place in allowed)
        closed = closed or (below(path, secret.real) and not lifted)
    assert any(is_within(path, place) for place in hidden(secrets, allowed, denied)) == closed


@given(places, places, places, places)
def test_more_allows_never_hide_more_and_no_allow_opens_a_deny(
    secrets: list[ResolvedPath], allowed: list[ResolvedPath], more: list[ResolvedPath], denied: list[ResolvedPath]
) -> None:
    before, after = hidden(secrets, allowed, denied), hidden(secrets, [*allowed, *more], denied)
    assert all(any(is_within(path, place) for place in before) for path in after)
    assert all(any(is_within(place.real, path) for path in after) for place in denied)


@pytest.mark.parametrize(
    ("allowed", "lifted"),
    [
        ("/home/me/.ssh", True),
        ("/home/me", True),
        ("/", True),
        ("/data/keys", True),  # where the link leads
        ("/data", True),
        ("/home/me/.ssh/known_hosts", False),
        ("/home/me/.s", False),
        ("/home/me/.sshx", False),
    ],
)
def test_a_secret_is_shown_by_an_allow_at_it_or_above_it(allowed: str, lifted: bool) -> None:
    assert is_lifted(ResolvedPath("/home/me/.ssh", "/data/keys"), at(allowed)) == lifted


@pytest.mark.attack(146)
@pytest.mark.parametrize("leads", ["/home/me/.ssh", "/home/me", "/data/keys"])
def test_146_a_link_that_leads_to_a_secret_does_not_show_it(leads: str) -> None:
    """An earlier command may have made it; the twin is the same path written out."""
    secret = ResolvedPath("/home/me/.ssh", "/data/keys")
    assert not is_lifted(secret, [ResolvedPath("/home/me/project/fixtures", leads)])
    assert is_lifted(secret, [ResolvedPath(leads, leads)])


@pytest.mark.attack(146)
def test_146_a_link_in_a_writable_folder_opens_nothing_outside() -> None:
    place = ResolvedPath("/project/build", "/home/me")
    with pytest.raises(UsageError, match=r"^x: '/project/build' leads to '/home/me' by the link '/project/build'"):
        check_straight(place, "x:", ["/project/build"], ["/project"])
    check_straight(place, "x:", ["/project/build"], ["/project", "/home"])  # it is writable anyway
    check_straight(place, "x:", ["/workshop"], ["/project"])  # no command that is confined made this link
    check_straight(ResolvedPath("/project/build", "/project/build"), "x:", [], ["/project"])


def test_a_path_in_a_hidden_secret_cannot_be_allowed_alone() -> None:
    rule = PathRule("/home/me/.ssh/config", "rules.toml:3")
    with pytest.raises(UsageError, match=r"^rules\.toml:3: '/home/me/\.ssh/config' is within '/home/me/\.ssh'"):
        check_shown(rule, *at(rule.path), ["/home/me/.ssh"], [])
    check_shown(rule, *at(rule.path), ["/home/me/.ssh"], at("/home/me/.ssh"))  # a deny is the user's word, no slip
    check_shown(rule, *at(rule.path), ["/home/me/.aws"], [])


def test_a_folder_to_write_or_work_in_is_seen() -> None:
    with pytest.raises(UsageError, match=r"^the working folder '/secret/a' is within '/secret'"):
        check_open("/secret/a", "the working folder", ["/secret"])
    check_open("/secrets", "the working folder", ["/secret"])


def test_the_whole_disk_can_be_neither_hidden_nor_the_writable_folder() -> None:
    with pytest.raises(UsageError, match="whole disk"):
        check_hidden(("/",))
    with pytest.raises(UsageError, match="whole disk"):
        check_writable(("/",))
    assert check_hidden(("/a",)) == check_writable(("/a",)) == ("/a",)


def test_there_are_not_more_paths_to_hide_than_somebody_waits_for() -> None:
    many = tuple(PathRule(f"/{number}", f"x:{number}") for number in range(MAX_DENIED + 1))
    check_few(many[:-1])
    with pytest.raises(UsageError, match=r"^x:512: more than 512 paths to hide"):
        check_few(many)


def test_there_are_not_more_paths_to_write_than_the_helper_takes() -> None:
    many = tuple(f"/{number}" for number in range(MAX_WRITABLE))
    assert check_writable(many) == many
    with pytest.raises(UsageError, match="more than 512"):
        check_writable((*many, "/more"))


def home() -> str:
    return "/home/me"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~", "/home/me"),
        ("~/.ssh/", "/home/me/.ssh"),
        ("/srv//data/.", "/srv/data"),
        ("build", "/project/build"),
        ("./build", "/project/build"),
        ("../x", "/project/../x"),  # the kernel knows what is above a link
        (".", "/project"),
    ],
)
def test_a_path_is_written_from_the_root_from_home_or_from_its_file(text: str, path: str) -> None:
    assert path_rule(text, "x:1", "/project", home) == PathRule(path, "x:1", text.endswith("/"))


@pytest.mark.parametrize("text", ["", "a\0b", "~root/.ssh"])
def test_an_invalid_path_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^x:1: "):
        path_rule(text, "x:1", "/project", home)


@given(st.lists(names).map("/".join))
def test_a_normal_path_stays_as_it_is(text: str) -> None:
    once = normal("/" + text)
    assert normal(once) == once
    assert once.startswith("/")
    assert "//" not in once
