from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.registries.observed_connection import first_destination, tunnel_of

PROGRAM = """
import base64, os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["PROXY"])
for password, target in {visits!r}:
    pair = f"registry:{{proxy.password if password else 'guess'}}".encode()
    with socket.create_connection((proxy.hostname, proxy.port)) as stream:
        token = base64.b64encode(pair).decode()
        stream.sendall(f"CONNECT {{target}} HTTP/1.1\\r\\nProxy-Authorization: Basic {{token}}\\r\\n\\r\\n".encode())
        stream.recv(1000)
"""


IN_A_SESSION = pytest.mark.usefixtures("user_namespaces", "state")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def heard(folder: Path, visits: list[tuple[bool, str]]) -> str | None:
    program = folder / "program.py"
    program.write_text(PROGRAM.format(visits=visits))
    return first_destination([sys.executable, "-I", str(program)], {}, "/", "PROXY", patience=30)


@IN_A_SESSION
def test_the_first_tunnel_is_the_answer(tmp_path: Path) -> None:
    assert heard(tmp_path, [(True, "a.example:443"), (True, "b.example:443")]) == "a.example:443"


@IN_A_SESSION
def test_a_visitor_without_the_password_is_not_believed(tmp_path: Path) -> None:
    assert heard(tmp_path, [(False, "evil.example:443"), (True, "a.example:443")]) == "a.example:443"
    assert heard(tmp_path, [(False, "evil.example:443")]) is None


@IN_A_SESSION
def test_a_program_that_goes_nowhere_or_does_not_start_is_no_answer() -> None:
    assert first_destination(["/bin/true"], {}, "/", "PROXY") is None
    assert first_destination(["/nonexistent"], {}, "/", "PROXY") is None
    assert first_destination(["/bin/sleep", "1000"], {}, "/", "PROXY", patience=1.0) is None


@given(
    st.lists(
        st.sampled_from(
            [
                b"CONNECT ",
                b"a.example:443",
                b" HTTP/1.1",
                b"\r\n",
                b"Proxy-Authorization: Basic ",
                base64.b64encode(b"u:p"),
                b"x",
            ]
        )
    ).map(b"".join)
    | st.binary()
)
def test_only_what_was_asked_with_the_password_comes_out(head: bytes) -> None:
    target = tunnel_of(head, "u:p")
    if target is not None:
        assert target.encode() in head
        assert base64.b64encode(b"u:p") in head
