"""One rule more, and nothing else in the file changes; what cannot be had so is an error."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from netsandbox.config.approved_rules import add_rule, with_rule
from netsandbox.errors import NetsandboxError, UsageError


def test_a_file_is_made_with_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "netsandbox" / "projects" / "0123.toml"
    add_rule(str(file), "asked.test:443")
    assert tomllib.loads(file.read_text()) == {"network": {"allow_domains": ["asked.test:443"]}}
    assert file.stat().st_mode & 0o777 == 0o600


def test_adding_a_rule_keeps_the_rest_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('# mine\n[network]\nallow_domains = ["a.test"]  # kept\n\n[audit]\nlog = "~/log"\n')
    add_rule(str(file), "asked.test:8443")
    assert file.read_text() == (
        '# mine\n[network]\nallow_domains = ["a.test", "asked.test:8443"]  # kept\n\n[audit]\nlog = "~/log"\n'
    )
    before = file.read_text()
    add_rule(str(file), "asked.test:8443")
    assert file.read_text() == before


def test_a_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    add_rule(str(link), "asked.test:443")
    assert link.is_symlink()
    assert "asked.test:443" in real.read_text()


@pytest.mark.parametrize(
    "text", ['network = { mode = "filtered" }\n', "[[network]]\n", "[network\n", "[unknown]\nx = 1\n"]
)
def test_a_file_that_cannot_take_it_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(UsageError):
        with_rule(str(file), "asked.test:443")
    with pytest.raises(UsageError):
        add_rule(str(file), "asked.test:443")
    assert file.read_text() == text
    assert os.listdir(tmp_path) == ["config.toml"]


def test_bytes_that_are_no_text_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"# \xff\n")
    with pytest.raises(UsageError):
        add_rule(str(file), "asked.test:443")
    assert file.read_bytes() == b"# \xff\n"


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NetsandboxError):
        add_rule(str(tmp_path / "file" / "config.toml"), "asked.test:443")
