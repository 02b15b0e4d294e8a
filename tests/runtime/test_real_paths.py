"""The cached resolver gives what the kernel gives."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.real_paths import RealPaths, identities, names_in, replaced

NAMES = st.sampled_from(["a", "b", "c", "..", "."])
RELATIVE = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(
    folders=st.lists(st.sampled_from(["a", "a/b", "b", "c", "c/a"]), max_size=4),
    links=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "a/c", "b/a", "c/b"]), RELATIVE, st.booleans()), max_size=5
    ),
    asked=st.lists(RELATIVE, min_size=1, max_size=6),
)
def test_every_path_leads_where_the_kernel_leads(
    folders: list[str], links: list[tuple[str, str, bool]], asked: list[str]
) -> None:
    base = os.path.realpath(tempfile.mkdtemp())
    try:
        for folder in folders:
            os.makedirs(f"{base}/{folder}", exist_ok=True)
        for name, target, absolute in links:
            if os.path.isdir(os.path.dirname(f"{base}/{name}")) and not os.path.lexists(f"{base}/{name}"):
                os.symlink(f"{base}/{target}" if absolute else target, f"{base}/{name}")
        paths = RealPaths()
        for path in asked:
            whole = f"{base}/{path}"
            try:
                expected: str | None = os.path.realpath(whole, strict=True)
            except OSError:
                expected = None
            found = paths.real(whole)
            if expected is None:
                # `x/..` of a missing or circular x is nothing for the kernel; so it is for us
                assert found is None or not os.path.exists(whole)
            else:
                assert found == expected
    finally:
        shutil.rmtree(base)


def test_the_links_on_the_way_are_named_with_their_targets(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    (base / "real/inner").mkdir(parents=True)
    (base / "first").symlink_to("real")
    (base / "real/second").symlink_to(base / "real/inner")
    paths = RealPaths()
    assert paths.links(f"{base}/first/second") == (
        (f"{base}/first", "real"),
        (f"{base}/real/second", f"{base}/real/inner"),
    )
    assert paths.real(f"{base}/first/second") == f"{base}/real/inner"


@pytest.mark.parametrize("target", ["loop", "other/loop", "./loop"])
def test_a_link_that_leads_to_itself_leads_nowhere(tmp_path: Path, target: str) -> None:
    (tmp_path / "loop").symlink_to(target)
    assert RealPaths().real(str(tmp_path / "loop")) is None


def test_what_was_made_since_can_be_looked_at_again(tmp_path: Path) -> None:
    paths = RealPaths()
    made = tmp_path / "made"
    assert paths.real(str(made)) is None
    made.mkdir()
    assert paths.real(str(made)) is None
    paths.forget_missing()
    assert paths.real(str(made)) == str(made.resolve())


def test_a_path_that_leads_nowhere_is_reached_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    assert RealPaths().reached(f"{tmp_path}/link/x") == f"{os.path.realpath(tmp_path)}/nothing/x"


def test_names_of_a_folder_are_sorted_and_a_missing_one_has_none(tmp_path: Path) -> None:
    for name in ("b", "a", ".c"):
        (tmp_path / name).touch()
    assert names_in(str(tmp_path)) == [".c", "a", "b"]
    assert names_in(f"{tmp_path}/missing") == names_in(f"{tmp_path}/a") == []


def test_replaced_files_are_known(tmp_path: Path) -> None:
    for name in ("kept", "changed", "replaced", "removed"):
        (tmp_path / name).write_text("")
    before = identities(str(tmp_path / name) for name in ("kept", "changed", "replaced", "removed", "made", "missing"))
    (tmp_path / "changed").write_text("x")
    (tmp_path / "new").write_text("")
    (tmp_path / "new").rename(tmp_path / "replaced")
    (tmp_path / "removed").unlink()
    (tmp_path / "made").write_text("")
    assert replaced(before) == [str(tmp_path / name) for name in ("replaced", "removed", "made")]
