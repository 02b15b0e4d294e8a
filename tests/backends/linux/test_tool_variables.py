"""pnpm is told where its store is and uv how to take files, where they are in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.linux import tool_variables as module
from netsandbox.backends.linux.tool_variables import tool_variables
from netsandbox.policy.file_rules import PathRule

STORE = ".local/share/pnpm/store"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_no_tool_no_variables(home: Path) -> None:
    assert tool_variables([PathRule(f"{home}/.cache/pip", "x")], {}, "pip") == {}


def test_pnpms_store_is_named_in_both_ways(home: Path) -> None:
    (home / STORE).mkdir(parents=True)
    added = tool_variables([PathRule(f"{home}/{STORE}", "x")], {}, "make")
    assert added == {"npm_config_store_dir": f"{home}/{STORE}", "pnpm_config_store_dir": f"{home}/{STORE}"}


def test_a_store_that_the_user_named_stays(home: Path) -> None:
    assert tool_variables([PathRule(f"{home}/{STORE}", "x")], {"pnpm_config_store_dir": "/data/store"}, "pnpm") == {}


@pytest.mark.parametrize("is_made", [True, False])
def test_a_store_in_a_read_only_toolchain_is_made_elsewhere(home: Path, is_made: bool) -> None:
    (home / STORE).parent.mkdir(parents=True)
    if is_made:
        (home / STORE).mkdir()
    caches = [] if is_made else [PathRule(f"{home}/{STORE}", "x")]
    assert tool_variables(caches, {}, "pnpm")["npm_config_store_dir"] == f"{home}/.cache/pnpm-store"


def test_a_store_whose_folder_is_missing_is_made_in_the_private_home(home: Path) -> None:
    assert tool_variables((), {}, "pnpm")["npm_config_store_dir"] == f"{home}/{STORE}"


def test_uv_copies_or_clones(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(module, "MOUNTS", str(mounts))
    for kind, expected in (("xfs", "clone"), ("ext4", "copy")):
        mounts.write_text(f"/dev/x / {kind} rw 0 0\n")
        assert tool_variables((), {}, "uv") == {"UV_LINK_MODE": expected}
    assert tool_variables((), {"UV_LINK_MODE": "symlink"}, "uv") == {}
    mounts.unlink()
    assert tool_variables((), {}, "uv") == {"UV_LINK_MODE": "copy"}
