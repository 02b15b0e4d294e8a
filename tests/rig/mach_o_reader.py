"""LIEF, which reads Mach-O and ELF files. It takes a second to import and each worker collects every test, so the first
test that needs it imports it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest


@cache
def lief() -> Any:
    module = pytest.importorskip("lief", reason="nothing reads Mach-O and ELF files (package lief of the test extra)")
    module.disable_leak_warning()  # it lists hundreds of its own functions when Python ends
    return module
