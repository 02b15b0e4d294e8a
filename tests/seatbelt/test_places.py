"""Places are named once, below the home directory, and paths are compared by whole names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.seatbelt import places
from netsandbox.seatbelt.request import file

PATHS = st.lists(st.sampled_from(["a", "b", "tmp", "var", "etc", "private", "..", ".", ""])).map("/".join)


@given(PATHS)
def test_a_plain_path_is_the_one_that_seatbelt_is_asked_for(path: str) -> None:
    plain = places.resolved(path)
    assert plain.startswith("/")
    assert plain == file("file-read-data", path).path
    assert places.resolved(plain) == plain


@pytest.mark.attack(141)
@pytest.mark.parametrize("path", ["/tmp/x", "/var/folders/T", "/etc/hosts", "/a/../b", "/a//b", "/a/", "/."])
def test_a_path_that_no_rule_would_match_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="is not resolved, so no rule would match it; give '/"):
        places.checked(path, "read path")


@pytest.mark.parametrize("path", ["a", "./a", "~", "~/a", "../a"])
def test_a_path_that_is_not_absolute_is_refused_without_a_guess(path: str) -> None:
    with pytest.raises(UsageError, match=r"the path to read .* is not absolute; write it from / on"):
        places.checked(path, "path to read")


@pytest.mark.parametrize("path", ["/", "/private/tmp/x", "/tmpfiles", "/Users/me/tmp", "/Users/me/a b"])
def test_a_resolved_path_is_taken_as_it_is(path: str) -> None:
    assert places.checked(path, "read path") == path


@pytest.mark.attack(145)
def test_a_folder_holds_itself_and_what_is_below_and_nothing_that_is_named_alike() -> None:
    assert places.is_within("/srv/app", "/srv/app")
    assert places.is_within("/srv/app/x", "/srv/app")
    assert not places.is_within("/srv/app-evil", "/srv/app")
    assert not places.is_within("/srv", "/srv/app")
    assert places.is_within("/srv", "/")


def test_the_folders_above_are_listed_once_without_the_root() -> None:
    assert list(places.ancestors("/a/b/c")) == ["/a/b", "/a"]
    assert places.above(["/a/b/c", "/a/d", "", "/"]) == ["/a", "/a/b"]


def test_no_place_is_open_and_secret() -> None:
    home = "/Users/me"
    closed = places.secrets(home)
    for name in (*places.TOOLCHAINS, *places.SETTINGS, *places.CACHES):
        assert not any(places.is_within(f"{home}/{name}", secret) for secret in closed), name


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
    assert f"/Users/me/{name}" in places.secrets("/Users/me")


def test_places_are_resolved_as_they_are_written() -> None:
    for path in places.secrets("/Users/me"):
        assert places.checked(path, "secret") == path
