"""Caches follow the variables that move them; variables that name too much move nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.file_rules import PathRule, is_within
from netsandbox.policy.tool_caches import VARIABLES, file_system_of, followed, link_mode, needs_variables

HOME = "/home/me"


def paths(*names: str, **environment: str) -> list[str]:
    rules = [PathRule(f"{HOME}/{name}", "profile") for name in names]
    return [rule.path for _, rule in followed(rules, environment, HOME)]


@pytest.mark.parametrize(
    ("name", "variable", "value", "moved"),
    [
        (".cargo/registry", "CARGO_HOME", "/data/cargo", "/data/cargo/registry"),
        (".cache/go-build", "GOCACHE", "/data/build", "/data/build"),
        (".cache/go-build", "XDG_CACHE_HOME", "/data/cache/", "/data/cache/go-build"),
        (".cache/pip", "PIP_CACHE_DIR", "/data/pip", "/data/pip"),
        (".npm/_cacache", "npm_config_cache", "/data/npm", "/data/npm/_cacache"),
        ("go/pkg", "GOPATH", "/data/go:/data/more", "/data/go/pkg"),
        (".local/share/pnpm/store", "XDG_DATA_HOME", "/data/share", "/data/share/pnpm/store"),
        (".bun/install/cache", "BUN_INSTALL", "/data/bun", "/data/bun/install/cache"),
    ],
)
def test_a_variable_moves_a_cache(name: str, variable: str, value: str, moved: str) -> None:
    assert paths(name, **{variable: value}) == [moved]
    assert paths(name) == [f"{HOME}/{name}"]


def test_the_variable_that_says_most_wins() -> None:
    assert paths(".cache/pip", XDG_CACHE_HOME="/data/cache", PIP_CACHE_DIR="/data/pip") == ["/data/pip"]


def test_a_moved_part_of_a_cache_is_one_more_cache() -> None:
    assert paths("go/pkg", GOMODCACHE="/data/mod") == [f"{HOME}/go/pkg", "/data/mod"]


def test_the_name_of_a_moved_cache_stays_known() -> None:
    rules = [PathRule(f"{HOME}/.npm/_cacache", "profile")]
    assert [name for name, _ in followed(rules, {"npm_config_cache": "/data/npm"}, HOME)] == [".npm/_cacache"]


@pytest.mark.parametrize("value", ["", "relative", "/", "/home", HOME, f"{HOME}/", "/data/../home", "//"])
def test_a_variable_that_names_too_much_moves_nothing(value: str) -> None:
    assert paths(".cache/pip", PIP_CACHE_DIR=value) == [f"{HOME}/.cache/pip"]


def test_a_cache_outside_of_the_home_stays() -> None:
    assert [(name, rule.path) for name, rule in followed([PathRule("/srv/cache", "x")], {"GOPATH": "/data"}, HOME)] == [
        ("", "/srv/cache")
    ]


@given(st.sampled_from(sorted(VARIABLES)), st.text("/.a:", max_size=12))
def test_no_value_shows_the_home_or_the_disk(variable: str, value: str) -> None:
    for name in VARIABLES.values():
        for path in paths(name, f"{name}/below", **{variable: value}):
            assert not is_within(HOME, path)


@pytest.mark.parametrize(
    ("caches", "program", "expected"),
    [
        ((), "make", (False, False)),
        ((), "/usr/bin/pnpm", (True, False)),
        ((), "uvx", (False, True)),
        ((".cache/uv", ".local/share/pnpm/store"), "make", (True, True)),
        ((".cache/pip",), "pip", (False, False)),
    ],
)
def test_a_tool_is_in_use_by_its_profile_or_as_the_command(
    caches: tuple[str, ...], program: str, expected: tuple[bool, bool]
) -> None:
    assert needs_variables([PathRule(f"{HOME}/{name}", "x") for name in caches], program) == expected


MOUNTS = ["/dev/a / ext4 rw 0 0", "/dev/b /data btrfs rw 0 0", "tmpfs /data/with\\040space tmpfs rw 0 0", ""]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/me", "ext4"),
        ("/data/x", "btrfs"),
        ("/data", "btrfs"),
        ("/database", "ext4"),
        ("/data/with space", "tmpfs"),
    ],
)
def test_the_nearest_mount_holds_a_path(path: str, expected: str) -> None:
    assert file_system_of(path, MOUNTS) == expected


@given(st.lists(st.text(max_size=30), max_size=5))
def test_any_list_of_mounts_is_read(lines: list[str]) -> None:
    assert isinstance(file_system_of("/x", lines), str)


def test_files_are_cloned_where_that_works_across_mounts() -> None:
    assert (link_mode("xfs"), link_mode("btrfs"), link_mode("ext4"), link_mode("")) == (
        "clone",
        "clone",
        "copy",
        "copy",
    )
