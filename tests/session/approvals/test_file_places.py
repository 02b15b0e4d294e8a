"""An answer about a file or folder counts for what lies there, and for nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.session.approvals.file_places import (
    EXECUTE,
    OPERATIONS,
    READ,
    WRITE,
    closing,
    names_above,
    opening,
    raised,
)

NAMES = st.lists(st.sampled_from(("a", "b", "ab", ".c")), min_size=1, max_size=5)
PATHS = NAMES.map(lambda names: "/" + "/".join(names))
DONE = st.sampled_from(OPERATIONS)


@given(PATHS, PATHS, DONE, DONE)
def test_an_approval_opens_its_file_and_what_lies_in_its_folder(path: str, other: str, asked: str, done: str) -> None:
    covers = asked in (done, READ)
    assert ((path, done) in opening(other, asked, None)) == (path == other and covers)
    inside = f"{other}/".startswith(f"{path}/")
    assert ((f"{path}/", done) in opening(other, asked, None)) == (inside and covers)


@given(PATHS, PATHS, DONE, DONE)
def test_a_refusal_to_read_closes_everything(path: str, other: str, asked: str, done: str) -> None:
    inside = f"{other}/".startswith(f"{path}/")
    assert ((f"{path}/", done) in closing(other, asked)) == (inside and done in (READ, asked))


@given(PATHS, DONE, st.integers(0, 8))
def test_a_raised_place_is_the_folder_that_so_many_names_lie_in(path: str, done: str, above: int) -> None:
    place = raised((path, done), above)
    if above == 0:
        assert place == (path, done)
    elif above >= path.count("/"):
        assert place is None  # the root
    else:
        assert place is not None
        assert place[0].endswith("/")
        assert names_above(path, place[0][:-1]) == above
        assert place in opening(path, done, None)


@pytest.mark.parametrize("operation", [READ, WRITE, EXECUTE])
def test_a_folder_opens_the_secrets_in_it_only_from_within_their_place(operation: str) -> None:
    places = [place for place, _ in opening("/h/.aws/cli/key", operation, "/h/.aws")]
    assert sorted(set(places)) == ["/h/.aws/", "/h/.aws/cli/", "/h/.aws/cli/key", "/h/.aws/cli/key/"]


def test_a_folder_that_begins_alike_is_another() -> None:
    assert names_above("/h/ab/x", "/h/a") is None
    assert names_above("/h/a", "/h/a") is None
    assert names_above("/h/a/b/x", "/h/a") == 2
