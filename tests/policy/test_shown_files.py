"""The tables of what a session sees."""

from __future__ import annotations

from netsandbox.policy import shown_files
from netsandbox.policy.file_rules import is_within
from netsandbox.policy.home_paths import OF_LINUX, OF_MAC


def test_no_toolchain_or_setting_shows_a_secret() -> None:
    for path in (*shown_files.TOOLCHAINS, *shown_files.SETTINGS):
        for secret in (*OF_LINUX, *OF_MAC):
            assert not is_within(secret, path), (path, secret)
            assert not is_within(path, secret), (path, secret)


def test_tables_hold_relative_paths_below_the_home() -> None:
    for path in (*shown_files.TOOLCHAINS, *shown_files.SETTINGS, *shown_files.PROTECTED):
        assert not path.startswith(("/", "~"))
        assert ".." not in path.split("/")


def test_variables_move_toolchains() -> None:
    found = shown_files.moved_toolchains(
        {"NVM_DIR": "/x/nvm", "CARGO_HOME": "/x/cargo", "GOPATH": "/a:/b", "PATH": "/p"}
    )
    assert found == ["/x/nvm", "/x/cargo/bin", "/x/cargo/env", "/x/cargo/config.toml", "/a/bin", "/b/bin"]


def test_relative_and_empty_variables_move_nothing() -> None:
    assert shown_files.moved_toolchains({"NVM_DIR": "x", "GOPATH": "", "CARGO_HOME": "rel"}) == []
