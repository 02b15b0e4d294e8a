"""The start of a session's inspection."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from netsandbox.errors import UsageError

if not sys.platform.startswith("linux"):
    pytest.skip("the engine needs seccomp", allow_module_level=True)
pytest.importorskip("mitmproxy")

from netsandbox.paths import new_session_id
from netsandbox.session.inspection import SessionInspection
from netsandbox.session.java_key_store import key_store


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_bundle_has_the_systems_the_users_and_the_sessions_authority(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.write_text("# of the user\n")
    made = SessionInspection(new_session_id(), {b"SSL_CERT_FILE": str(own).encode()})
    try:
        made.finish()
        text = Path(made.bundle).read_text()
        assert text.startswith(Path(made.places[0]).read_text())
        assert "# of the user" in text
        assert text.count("BEGIN CERTIFICATE") == Path(made.places[0]).read_text().count("BEGIN CERTIFICATE") + 1
        assert made.variables[b"SSL_CERT_FILE"] == made.places[0].encode()
        assert "PRIVATE KEY" not in text
        if made.java_places:
            assert Path(made.key_store).read_bytes() == key_store(text.encode())
    finally:
        made.close(2)
    assert not Path(made.bundle).exists()
    assert not Path(made.key_store).exists()


def test_a_list_of_the_user_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(UsageError, match="SSL_CERT_FILE"):
        SessionInspection("one", {b"SSL_CERT_FILE": b"/nowhere.pem"})


def test_without_mitmproxy_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.session.inspection.version_in", lambda paths: None)
    with pytest.raises(UsageError, match="pip install"):
        SessionInspection("one", {})
