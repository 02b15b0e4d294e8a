"""A session with the preload library has both of its parts, or ends with advice before the command starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from netsandbox_interpose import library
from netsandbox_interpose.library import load_native

from netsandbox.errors import HostError

ADVICE = "reinstall netsandbox with a C compiler at hand, or use --rewrite-engine kernel"


def test_the_module_is_loaded_where_the_library_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("netsandbox_interpose._native", reason="the native module is not built")
    (tmp_path / "library").touch()
    monkeypatch.setattr(library, "LIBRARY", str(tmp_path / "library"))
    assert load_native() is sys.modules["netsandbox_interpose._native"]


def test_a_missing_library_is_an_error_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("netsandbox_interpose._native", reason="the native module is not built")
    monkeypatch.setattr(library, "LIBRARY", str(tmp_path / "nowhere"))
    with pytest.raises(HostError, match=f"there is no {tmp_path}/nowhere.*{ADVICE}"):
        load_native()


def test_a_missing_module_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("netsandbox_interpose._native", raising=False)
    monkeypatch.setitem(sys.modules, "netsandbox_interpose._native", None)
    with pytest.raises(HostError, match=ADVICE):
        load_native()
