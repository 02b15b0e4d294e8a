"""What a user expects of a sandbox that is started with no option at all, one promise a test.

The list is that of a verification script in a design that netsandbox began with. A write to the home is judged
by the files of the host: the session has a private home, in which the same command succeeds.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]

SECRET = "canary-51c0"


@pytest.fixture
def home(netsandbox: Any) -> Any:
    """A home with the usual secrets."""
    found = netsandbox.home()
    for name in (".ssh/id_rsa", ".aws/credentials", ".zshrc"):
        path: Path = found.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SECRET)
        for each in {path, path.parent} - {found.path}:
            os.chown(each, found.identity.uid, found.identity.gid)
    return found


@pytest.mark.parametrize("name", [".ssh/id_rsa", ".aws/credentials"])
@pytest.mark.parametrize("way", ["itself", "child", "grandchild", "background"])
def test_secrets_cannot_be_read_by_the_command_or_its_children(netsandbox: Any, home: Any, name: str, way: str) -> None:
    path = f"{home.path}/{name}"
    commands = {
        "itself": ("cat", path),
        "child": ("sh", "-c", f"cat {path}"),
        "grandchild": ("sh", "-c", f"sh -c 'cat {path}; exit 1'"),
        "background": ("sh", "-c", f"(setsid cat {path} & wait $!); exit 1"),
    }
    run = netsandbox("run", "--", *commands[way])
    assert run.returncode != 0
    assert SECRET not in run.stdout + run.stderr


def test_the_home_of_the_host_is_not_written(netsandbox: Any, home: Any) -> None:
    before = sorted(os.listdir(home.path))
    netsandbox("run", "--", "sh", "-c", "touch ~/.made-inside; mkdir ~/made; echo x > ~/made/file")
    assert not {".made-inside", "made"} & set(os.listdir(home.path))
    assert set(before) <= set(os.listdir(home.path))


def test_shell_settings_of_the_host_are_not_changed(netsandbox: Any, home: Any) -> None:
    run = netsandbox("run", "--", "sh", "-c", "echo malicious >> ~/.zshrc")
    assert run.returncode != 0
    netsandbox("run", "--", "sh", "-c", "echo malicious > ~/.bashrc; rm -f ~/.zshrc")
    assert (home.path / ".zshrc").read_text() == SECRET
    assert not (home.path / ".bashrc").exists()


def test_nothing_is_reached_on_the_network(netsandbox: Any, canary: Any) -> None:
    server = canary.http(body=b"reached\n")
    run = netsandbox("run", "--", "curl", "-s", "--max-time", "5", f"http://127.0.0.1:{server.port}/")
    assert run.returncode != 0
    assert "reached" not in run.stdout
    proxied = netsandbox("run", "--", "curl", "-s", "--noproxy", "*", "--max-time", "5", "https://example.com/")
    assert proxied.returncode != 0
    assert server.accepts == 0


def test_the_working_folder_is_written(netsandbox: Any, home: Any) -> None:
    assert netsandbox("run", "--", "touch", "./made").returncode == 0
    assert (home.work / "made").exists()
