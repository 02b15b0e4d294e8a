from __future__ import annotations

import os
from pathlib import Path

from netsandbox.runtime.fingerprint import ABSENT, stamp, with_prefix


def test_a_file_has_another_stamp_after_each_change(tmp_path: Path) -> None:
    file = tmp_path / "file"
    seen = [stamp(str(file), {})]
    file.write_text("a")
    seen.append(stamp(str(file), {}))
    assert stamp(str(file), {}) == seen[-1]
    file.write_text("ab")
    seen.append(stamp(str(file), {}))
    os.utime(file, ns=(0, 0))
    seen.append(stamp(str(file), {}))
    file.chmod(0o600)
    seen.append(stamp(str(file), {}))
    assert seen[0] == ABSENT
    assert len(set(seen)) == 5


def test_a_change_shows_although_size_and_time_are_set_back(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a")
    before, state = stamp(str(file), {}), file.stat()
    while file.stat().st_ctime_ns == state.st_ctime_ns:  # until the kernel's clock ticks
        file.write_text("b")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file.stat().st_mtime_ns == state.st_mtime_ns
    assert stamp(str(file), {}) != before


def test_names_that_no_file_can_have_are_absent() -> None:
    assert stamp("/a\0b", {}) == stamp("/" + "a" * 5000, {}) == stamp("/etc/passwd/x", {}) == ABSENT


def test_a_variables_stamp_does_not_tell_its_value() -> None:
    environment = {"PIP_INDEX_URL": "https://u:hunter2@a.example"}
    assert "hunter2" not in stamp("$PIP_INDEX_URL", environment)
    assert "hunter2" not in stamp("$pip_*", environment)
    assert stamp("$PIP_INDEX_URL", {}) == ABSENT
    assert stamp("$PIP_INDEX_URL", {"PIP_INDEX_URL": ""}) not in (ABSENT, stamp("$PIP_INDEX_URL", environment))


def test_a_prefix_stands_for_all_its_variables_in_any_case() -> None:
    environment = {"NPM_CONFIG_A": "1", "npm_config_b": "2", "OTHER": "3"}
    assert with_prefix(environment, "npm_config_") == ["NPM_CONFIG_A", "npm_config_b"]
    before = stamp("$npm_config_*", environment)
    assert stamp("$npm_config_*", {**environment, "OTHER": "4"}) == before
    assert stamp("$npm_config_*", {**environment, "npm_config_c": ""}) != before
    assert stamp("$npm_config_*", {**environment, "NPM_CONFIG_A": "2"}) != before
