"""Places are named once, below the home directory, and paths are compared by whole names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile import mac_paths
from netsandbox.errors import UsageError
from tests.seatbelt_model.request import file

PATHS = st.lists(st.sampled_from(["a", "b", "tmp", "var", "etc", "private", "..", ".", ""])).map("/".join)


@given(PATHS)
def test_a_plain_path_is_the_one_that_seatbelt_is_asked_for(path: str) -> None:
    plain = mac_paths.resolved(path)
    assert plain.startswith("/")
    assert plain == file("file-read-data", path).path
    assert mac_paths.resolved(plain) == plain


@pytest.mark.attack(141)
@pytest.mark.parametrize("path", ["/tmp/x", "/var/folders/T", "/etc/hosts", "/a/../b", "/a//b", "/a/", "/."])
def test_a_path_that_no_rule_would_match_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="is not resolved, so no rule would match it; give '/"):
        mac_paths.checked(path, "read path")


@pytest.mark.parametrize("path", ["a", "./a", "~", "~/a", "../a"])
def test_a_path_that_is_not_absolute_is_refused_without_a_guess(path: str) -> None:
    with pytest.raises(UsageError, match=r"the path to read .* is not absolute; write it from / on"):
        mac_paths.checked(path, "path to read")


@pytest.mark.parametrize("path", ["/", "/private/tmp/x", "/tmpfiles", "/Users/me/tmp", "/Users/me/a b"])
def test_a_resolved_path_is_taken_as_it_is(path: str) -> None:
    assert mac_paths.checked(path, "read path") == path


@pytest.mark.attack(145)
def test_a_folder_holds_itself_and_what_is_below_and_nothing_that_is_named_alike() -> None:
    assert mac_paths.is_within("/srv/app", "/srv/app")
    assert mac_paths.is_within("/srv/app/x", "/srv/app")
    assert not mac_paths.is_within("/srv/app-evil", "/srv/app")
    assert not mac_paths.is_within("/srv", "/srv/app")
    assert mac_paths.is_within("/srv", "/")


def test_the_folders_above_are_listed_once_without_the_root() -> None:
    assert list(mac_paths.ancestors("/a/b/c")) == ["/a/b", "/a"]
    assert mac_paths.above(["/a/b/c", "/a/d", "", "/"]) == ["/a", "/a/b"]


def test_no_place_is_open_and_secret() -> None:
    home = "/Users/me"
    closed = mac_paths.secrets(home)
    for name in (*mac_paths.ALL_TOOLCHAINS, *mac_paths.SETTINGS, *mac_paths.CACHES):
        assert not any(mac_paths.is_within(f"{home}/{name}", secret) for secret in closed), name


@pytest.mark.parametrize(
    "name",
    [
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".gcp",
        ".config/gcloud",
        ".config/gh",
        ".kube",
        ".docker",
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".bash_history",
        ".zsh_history",
        ".password-store",
        ".android",
        "Library/Keychains",
        "Library/Safari",
        "Library/Application Support/Google",
        "Library/Application Support/Firefox",
        ".cargo/credentials.toml",
    ],
)
def test_what_everybody_calls_a_secret_is_one(name: str) -> None:
    assert f"/Users/me/{name}" in mac_paths.secrets("/Users/me")


def test_places_are_resolved_as_they_are_written() -> None:
    for path in mac_paths.secrets("/Users/me"):
        assert mac_paths.checked(path, "secret") == path
