"""The engine's process has no part of mitmproxy that it does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("mitmproxy")

from netsandbox_proxy.inspect.absent import NAMES, EmptyFinder

from tests.rig.inspecting import import_folders

PROGRAM = """
import sys
sys.path += {folders!r}
from netsandbox_proxy.inspect import absent
absent.keep_out()
from netsandbox_proxy.inspect import layers, rehearsal, tls_contexts
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.session_ca import SessionCa
authority = Authority(SessionCa("s"))
layers.install()
rehearsal.rehearse(tls_contexts.TlsContexts(authority, authority.pem.encode()))
print(*(name for name, module in sys.modules.items() if type(module).__name__ != "_EmptyModule"))
"""


def test_an_exchange_needs_none_of_them() -> None:
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(folders=import_folders())]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "mitmproxy.proxy.layers.http" in loaded
    assert not [name for name in loaded if name in NAMES or name.startswith(tuple(f"{absent}." for absent in NAMES))]


def test_a_name_in_an_empty_module_is_an_empty_class() -> None:
    finder = EmptyFinder()
    assert finder.find_spec("asyncio.events").submodule_search_locations == []
    assert finder.find_spec("asynciox") is None
    made = finder.create_module(finder.find_spec("aioquic"))
    assert isinstance(made.QuicEvent, type)
    assert isinstance(made.ErrorCode.NO_ERROR, type)
    assert not isinstance(1, made.QuicEvent)
    assert made.is_new(1, kind=2) is None
    with pytest.raises(AttributeError):
        made.__all__  # noqa: B018 (its absence is the test)
