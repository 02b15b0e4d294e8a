"""Facts that follow from the settings of a run."""

from __future__ import annotations

import pytest

from netsandbox.policy.file_rules import OPEN, PROJECT, READABLE, FileRules
from netsandbox.settings import RunSettings


@pytest.mark.parametrize(("mode", "asks"), [(PROJECT, True), (READABLE, False), (OPEN, False)])
def test_files_are_asked_about_where_the_session_does_not_see_them(mode: str, asks: bool) -> None:
    assert RunSettings(files=FileRules(mode=mode), ask_files=60).asks_files is asks
    assert not RunSettings(files=FileRules(mode=mode), ask=60).asks_files
