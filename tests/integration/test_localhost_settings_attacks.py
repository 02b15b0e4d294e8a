"""Settings of the session's localhost that ask for more than loopback, or for what another session has.

By option, by file and by the Python API: each is refused before anything runs, and none is quietly left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox import LocalhostSettings, Policy, Sandbox
from netsandbox.errors import NetsandboxError
from netsandbox.settings import RunSettings
from tests.rig import ports

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.mark.attack(189)
@pytest.mark.parametrize(
    "option",
    [
        ("--listening-loopback", "0.0.0.0"),
        ("--listening-loopback", "192.0.2.1"),
        ("--listening-loopback", "localhost"),
        ("--listening-loopback", "::"),
        ("--listening-loopback", "127.1"),
        ("--publish", "3000:0.0.0.0:80"),
        ("--publish", "0.0.0.0:3000"),
        ("--publish", "3000:example.com"),
        ("--publish", "0"),
        ("--connect-host", "192.0.2.1:80"),
        ("--connect-host", "1008"),
        ("--listening-base-port", "80"),
        ("--listening-base-port", "65500"),
        ("--listening-port-count", "0"),
    ],
    ids="=".join,
)
def test_an_address_other_than_loopback_cannot_be_asked_for(netsandbox: Any, option: tuple[str, str]) -> None:
    run = netsandbox("run", *option, "--", "echo", "ran")
    assert run.returncode != 0
    assert run.stdout == ""
    assert run.stderr.startswith("netsandbox: ")
    assert "Traceback" not in run.stderr


@pytest.mark.attack(189)
@pytest.mark.parametrize(
    "line",
    [
        'listening_loopback = "0.0.0.0"',
        'listening_loopback = "localhost"',
        'listening_loopback = ["127.0.0.2"]',
        'network_strategy = "Fail"',
        'network_strategy = ""',
        'rewrite_engine = "none"',
        "listening_base_port = 80",
        "listening_base_port = -1",
        "listening_port_count = 1000000",
        "listening_port_count = true",
        'publish = ["3000:0.0.0.0:80"]',
        "connect_host = [0]",
        "connect_host = [70000]",
        'bind_address = "0.0.0.0"',
    ],
)
def test_a_file_cannot_ask_for_it_either(netsandbox: Any, line: str) -> None:
    file = netsandbox.home().path / "policy.toml"
    file.write_text(f"[localhost]\n{line}\n")
    run = netsandbox("run", "--config", file, "--", "echo", "ran")
    assert run.returncode != 0
    assert run.stdout == ""
    assert run.stderr.startswith("netsandbox: ")
    assert "Traceback" not in run.stderr


@pytest.mark.attack(1)
@pytest.mark.attack(189)
@pytest.mark.parametrize(
    "wrong",
    [
        {"strategy": "Fail"},
        {"strategy": ""},
        {"strategy": "fail", "engine": "Preload"},
        {"device": "0.0.0.0"},
        {"device": "192.0.2.1"},
        {"publish": ((3000, 99999),)},
        {"publish": ((0, None),)},
        {"publish": ((3000, 0),)},
        {"connect_host": (HostPort(70000),)},
        {"connect_host": (HostPort(0),)},
        {"connect_host": (5432,)},
        {"count": 0},
    ],
    ids=str,
)
def test_wrong_settings_by_the_api_are_an_error_and_never_no_guard(
    wrong: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    evidence = tmp_path / "ran"
    with pytest.raises(NetsandboxError):
        Sandbox(Policy(), RunSettings(localhost=LocalhostSettings(**wrong))).run(["touch", str(evidence)])
    assert not evidence.exists()


@pytest.mark.ordinary_user
@pytest.mark.attack(209)
def test_what_one_session_holds_no_other_gets(netsandbox: Any) -> None:
    """Its window or a part of it, its device, its name, its port on the host: each is refused before anything runs."""
    base = ports.free_window(60)
    held = ("--name", "first", "--listening-base-port", str(base), "--listening-port-count", "20")
    held += ("--listening-loopback", "127.0.77.9", "--publish", f"3000:{base + 40}")
    running = netsandbox.spawn("run", *held, "--", "sh", "-c", "echo ready; exec sleep 60")
    running.read_until(b"ready")
    wishes = [
        ("--listening-base-port", str(base)),
        ("--listening-base-port", str(base + 19), "--listening-port-count", "1"),
        ("--listening-base-port", str(base - 10), "--listening-port-count", "11"),
        ("--listening-loopback", "127.0.77.9"),
        ("--name", "first"),
        ("--publish", f"3000:{base + 40}"),
        ("--publish", f"3000:{base + 5}"),
        ("--listening-base-port", str(base + 40), "--network-strategy", "fail"),
    ]
    for wish in wishes:
        run = netsandbox("run", *wish, "--", "echo", "ran")
        assert (run.returncode != 0, run.stdout) == (True, ""), wish
        assert run.stderr.startswith("netsandbox: "), wish
    twin = ("--name", "second", "--listening-base-port", str(base + 20), "--listening-port-count", "20")
    run = netsandbox("run", *twin, "--publish", f"3000:{base + 41}", "--", "echo", "ran")
    assert run.stdout == "ran\n", run.stderr


@pytest.mark.attack(190)
@pytest.mark.parametrize("name", ["../x", "a b", "localhost", "3000", "x" * 60, "\x1b[31m", "a.b"])
def test_a_hostile_name_by_the_api_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    evidence = tmp_path / "ran"
    with pytest.raises(NetsandboxError):
        Sandbox(Policy(), RunSettings(name=name)).run(["touch", str(evidence)])
    assert not evidence.exists()
