"""Links on the way to a protected path cannot be replaced; others are left alone."""

from __future__ import annotations

import os
from pathlib import Path

from netsandbox.backends.linux.held_links import hold_links
from netsandbox.backends.linux.session_root import SessionRoot


def test_each_replaceable_link_is_covered_and_the_folders_above_it_pinned(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "p/real").mkdir(parents=True)
    (top / "p/deep").mkdir()
    (top / "p/deep/one").symlink_to("../two")
    (top / "p/two").symlink_to(top / "p/real")
    root = SessionRoot()
    root.show(f"{top}/p", writable=True)
    hold_links(root, f"{top}/p/deep/one/file", lambda link: not link.endswith("two"))
    assert root.entries[f"{top}/p/deep/one"].source == "../two"
    assert f"{top}/p/deep" in root.entries
    assert f"{top}/p/two" not in root.entries
    hold_links(root, f"{top}/p/deep/one/file", lambda link: True)
    assert root.entries[f"{top}/p/two"].kind == "cover"


def test_links_that_lead_round_are_held_too(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "a").symlink_to("b")
    (top / "b").symlink_to("a")
    root = SessionRoot()
    root.show(str(top), writable=True)
    hold_links(root, f"{top}/a", lambda link: True)
    assert {f"{top}/a", f"{top}/b"} <= root.entries.keys()
