"""What integration tests share besides the rig."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def origin(canary: Any, authority: Any) -> tuple[Any, list[str]]:
    """An allowed origin and the options that lead to it."""
    good = canary.http(body=b"reached")
    authority.answer("*.test", "127.0.0.1")
    options = ["--allow-domain", f"allowed.test:{good.port}", "--allow-address", f"127.0.0.1:{good.port}"]
    return good, [*options, "--upstream-dns", authority.address]
