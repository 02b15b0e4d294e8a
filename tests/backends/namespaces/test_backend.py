"""The backend for Linux names the modules that a running session needs, and has no process before it starts one."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from netsandbox.backends.namespaces.backend import NamespacesBackend


@pytest.fixture
def backend() -> NamespacesBackend:
    context: Any = SimpleNamespace(settings=SimpleNamespace(name="mine"))
    return NamespacesBackend(context)


def test_every_needed_module_can_be_imported() -> None:
    for name in NamespacesBackend.needed_modules:
        importlib.import_module(name)


def test_a_session_that_has_not_started_has_no_process(backend: NamespacesBackend) -> None:
    assert (backend.pid, backend.recorded_name) == (0, "mine")
