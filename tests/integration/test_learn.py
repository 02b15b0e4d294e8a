"""`netsandbox learn`: what was used is proposed, written on a yes, and enough for the next run; nothing else is."""

from __future__ import annotations

import os
import tomllib
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


def curl(*urls: str) -> list[str]:
    return ["curl", "-sS", "-m", "30", *urls]


@pytest.fixture
def servers(canary: Any, authority: Any) -> tuple[Any, Any, list[str]]:
    """One to learn, one to refuse, and how names are found."""
    authority.answer("*.test", "127.0.0.1")
    return canary.http(body=b"reached"), canary.http(body=b"canary"), ["--upstream-dns", authority.address]


def test_what_was_learned_is_enough_and_nothing_else_is_let_through(netsandbox: Any, servers: Any) -> None:
    good, other, dns = servers
    file = netsandbox.home().work / ".netsandbox.toml"
    file.write_text("# kept\n[network]\ndeny_domains = ['bad.test'] # and this\n")
    lifted = [option for port in (good.port, other.port) for option in ("--allow-address", f"127.0.0.1:{port}")]
    learned = netsandbox(
        "learn", "--write", *lifted, *dns, "--", *curl(f"http://used.test:{good.port}/", f"http://bad.test:{other.port}/")
    )  # fmt: skip
    assert learned.stdout.startswith("reached")
    assert f'+    "used.test:{good.port}",' in learned.stderr
    assert "#   bad.test" in learned.stderr
    assert "`netsandbox trust`" in learned.stderr
    text = file.read_text()
    assert text.startswith("# kept\n[network]\n")
    assert "deny_domains = ['bad.test'] # and this\n" in text
    assert tomllib.loads(text)["network"] == {
        "deny_domains": ["bad.test"],
        "allow_domains": [f"used.test:{good.port}"],
        "allow_addresses": [f"127.0.0.1:{good.port}"],
    }
    assert other.accepts == 0
    untrusted = netsandbox("run", *dns, "--", *curl("-f", f"http://used.test:{good.port}/"))
    assert untrusted.returncode != 0
    assert good.accepts == 1
    assert netsandbox("trust", "--yes").returncode == 0
    again = netsandbox("run", *dns, "--", *curl("-f", f"http://used.test:{good.port}/"))
    assert (again.returncode, again.stdout) == (0, "reached")
    unused = netsandbox("run", *dns, "--", *curl("-f", f"http://unused.test:{good.port}/"))
    assert unused.returncode != 0
    assert good.accepts == 2


def test_without_a_yes_nothing_is_written_and_the_status_is_the_commands(netsandbox: Any, servers: Any) -> None:
    good, _, dns = servers
    home = netsandbox.home()
    script = f"curl -sS -m 30 http://used.test:{good.port}/; exit 7"
    learned = netsandbox("learn", "--allow-address", f"127.0.0.1:{good.port}", *dns, "--", "sh", "-c", script)
    assert learned.returncode == 7
    assert learned.stdout == "reached"
    assert "ended with status 7" in learned.stderr
    assert "nothing was written" in learned.stderr
    assert not (home.work / ".netsandbox.toml").exists()


def test_the_guard_holds_while_learning(netsandbox: Any, servers: Any) -> None:
    _, other, dns = servers
    file = netsandbox.home().work / ".netsandbox.toml"
    file.write_text("[filesystem]\nallow_write = []\n")
    learned = netsandbox("learn", "--write", *dns, "--", *curl("-f", f"http://private.test:{other.port}/"))
    assert other.accepts == 0
    assert f"connect_host = [{other.port}]" in learned.stderr
    assert "there is nothing to write" in learned.stderr
    assert file.read_text() == "[filesystem]\nallow_write = []\n"


@pytest.mark.attack(149)
def test_149_a_command_that_plants_a_link_makes_us_write_nothing(netsandbox: Any, servers: Any) -> None:
    good, _, dns = servers
    home = netsandbox.home()
    victim = home.work / "victim"
    victim.write_text("mine")
    script = f"curl -sS -m 30 http://used.test:{good.port}/; ln -s victim .netsandbox.toml"
    learned = netsandbox(
        "learn", "--write", "--allow-address", f"127.0.0.1:{good.port}", *dns, "--", "sh", "-c", script
    )
    assert "not a plain file" in learned.stderr
    assert learned.returncode == 1
    assert victim.read_text() == "mine"


def test_on_a_terminal_the_user_is_asked_when_the_command_has_ended(netsandbox: Any, servers: Any) -> None:
    good, _, dns = servers
    home = netsandbox.home()
    options = ["--allow-address", f"127.0.0.1:{good.port}", *dns]
    running = netsandbox.spawn("learn", *options, "--", *curl(f"http://used.test:{good.port}/"), terminal=True)
    running.read_until(b"Write this? [y/N] ")
    assert not (home.work / ".netsandbox.toml").exists()
    os.write(running.terminal, b"y\n")
    running.read_until(b"puts it into effect")
    assert running.wait() == 0
    written = tomllib.loads((home.work / ".netsandbox.toml").read_text())
    assert written["network"]["allow_domains"] == [f"used.test:{good.port}"]


def test_a_past_denial_is_explained_in_the_folder_where_it_happened(netsandbox: Any, servers: Any) -> None:
    good, _, dns = servers
    denied = netsandbox("run", "-q", *dns, "--", *curl("-f", f"http://used.test:{good.port}/"))
    assert denied.returncode != 0
    explained = netsandbox("explain", "--last")
    assert explained.returncode == 1
    assert explained.stdout.startswith(f"denied    used.test:{good.port}, by /")
    (change,) = [line for line in explained.stdout.splitlines() if line.startswith("to allow  netsandbox run ")]
    options = [*change.removeprefix("to allow  netsandbox run ").split(), "--allow-address", f"127.0.0.1:{good.port}"]
    assert netsandbox("run", *options, *dns, "--", *curl("-f", f"http://used.test:{good.port}/")).stdout == "reached"
    elsewhere = netsandbox("explain", "--last", cwd=netsandbox.home().path)
    assert "no session of this folder has left a log" in elsewhere.stderr
    assert elsewhere.stdout == ""
