"""Files that the user's git configuration names hold in a session, read-only, and none that may hold a secret is
shown."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_everyday_tools import plainly
from tests.integration.test_profiles import Shop, shop  # noqa: F401 (a fixture)
from tests.rig.waiting import wait_for
from tests.rig.world import need

pytestmark = [
    pytest.mark.ordinary_user,
    pytest.mark.backend("namespaces", "broker"),
]

CANARY = "canary-7b21c4"
CONFIG = """[user]
    name = me
    email = me@example.com
[core]
    excludesFile = ~/.gitignore_global
    attributesFile = ~/dotfiles/attributes
[commit]
    template = ~/.stCommitMsg
[include]
    path = more.gitconfig
[includeIf "gitdir:/"]
    path = ~/dotfiles/work
"""
COMMIT = "echo x > file && git add file && GIT_EDITOR='sed -i 1iSubject' git commit -q && git log --format=%B"


def repository(shop: Shop) -> None:  # noqa: F811
    shop.write("~/.gitignore_global", "*.log\n")
    shop.write("~/dotfiles/attributes", "*.bin binary\n")
    shop.write("~/.stCommitMsg", "from the template\n")
    shop.write("~/more.gitconfig", "[alias]\n    more = version\n")
    shop.write("~/dotfiles/work", "[alias]\n    work = version\n")
    shop.write("~/.gitconfig", CONFIG)
    plainly(shop.home, "git", "init", "-q")


def run(shop: Shop, script: str, *options: str) -> Any:  # noqa: F811
    return shop.world.netsandbox("run", "--no-detect", *options, "--", "sh", "-c", script)


def test_what_the_users_configuration_names_holds_inside(shop: Shop) -> None:  # noqa: F811
    repository(shop)
    shop.write("a.log", "x\n")
    done = run(shop, f"git status --short; git check-attr binary a.bin; git more && git work && {COMMIT}")
    assert done.returncode == 0, done.stderr
    assert "a.log" not in done.stdout
    assert "a.bin: binary: set" in done.stdout
    assert "Subject\nfrom the template\n" in done.stdout
    assert "denied" not in done.stderr


def test_they_are_read_only_and_gone_once_nothing_names_them(shop: Shop) -> None:  # noqa: F811
    repository(shop)
    written = run(shop, "echo planted > ~/.stCommitMsg; echo planted > ~/more.gitconfig; true")
    assert (shop.home.path / ".stCommitMsg").read_text() == "from the template\n", written.stderr
    assert (shop.home.path / "more.gitconfig").read_text() == "[alias]\n    more = version\n"
    shop.write("~/.gitconfig", "[user]\n    name = me\n")
    assert run(shop, "ls -d ~/more.gitconfig ~/dotfiles").stdout == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("~/.ssh/config", f"[alias]\n    x = {CANARY}\n"),
        ("~/.git-credentials", CANARY),
        ("~/.claude.json", CANARY),
        ("~/dotfiles/token", CANARY),
        ("~/dotfiles/git", f"[github]\n    token = {CANARY}\n"),
        ("~/dotfiles/git", f'[http "https://example.com/"]\n    extraHeader = Authorization: {CANARY}\n'),
        ("~/dotfiles/git", f'[url "https://me:{CANARY}@example.com/"]\n    insteadOf = x:\n'),
        ("~/dotfiles/git", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n"),
    ],
)
def test_no_secret_is_shown_because_the_configuration_names_it(
    shop: Shop,  # noqa: F811
    name: str,
    text: str,
) -> None:
    shop.write(name, text)
    shop.write("~/plain", "[alias]\n    plain = version\n")
    shop.write("~/.gitconfig", f"[include]\n    path = {name}\n    path = ~/plain\n")
    done = run(shop, f"cat {name} {name.replace('~', str(shop.home.path))}; cat ~/plain")
    assert CANARY not in done.stdout
    assert "plain = version" in done.stdout, "the twin: a harmless one is shown"


def test_a_projects_own_configuration_shows_nothing(shop: Shop) -> None:  # noqa: F811
    repository(shop)
    shop.write("~/Documents/plan", CANARY)
    plainly(shop.home, "git", "config", "commit.template", f"{shop.home.path}/Documents/plan")
    assert CANARY not in run(shop, f"cat ~/Documents/plan {shop.home.path}/Documents/plan").stdout


@pytest.fixture
def agent(shop: Shop, short_tmp: Path) -> Iterator[str]:  # noqa: F811
    """The socket of an ssh-agent that holds the key of which `user.signingKey` names the public part."""
    need("ssh-agent", "openssh-client")
    shop.write("~/.ssh/notes", "")
    key, socket = shop.home.path / ".ssh" / "id_ed25519", short_tmp / "agent"
    plainly(shop.home, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    words = ("ssh-agent", "-D", "-a", str(socket))
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, **shop.home.identity.popen) as process:
        try:
            wait_for(socket.exists)
            plainly(shop.home, "ssh-add", "-q", str(key), SSH_AUTH_SOCK=str(socket))
            yield str(socket)
        finally:
            process.terminate()


def test_a_commit_is_signed_by_the_ssh_agent_and_the_key_stays_outside(shop: Shop, agent: str) -> None:  # noqa: F811
    repository(shop)
    shop.write("~/.gitconfig", "[user]\n name = me\n email = me@example.com\n signingKey = ~/.ssh/id_ed25519.pub\n")
    plainly(shop.home, "git", "config", "--global", "gpg.format", "ssh")
    sign = "git commit -q --allow-empty -S -m signed && git cat-file commit HEAD; cat ~/.ssh/id_ed25519 && ls ~/.ssh"
    words = ("--no-detect", "--", "sh", "-c", sign)
    signed = shop.world.netsandbox("run", "git-ssh", *words, env={"SSH_AUTH_SOCK": agent})
    assert "BEGIN SSH SIGNATURE" in signed.stdout, signed.stderr
    assert "PRIVATE KEY" not in signed.stdout
    without = shop.world.netsandbox("run", "git", *words, env={"SSH_AUTH_SOCK": agent})
    assert "BEGIN SSH SIGNATURE" not in without.stdout, "the twin: the profile git opens no agent"


@pytest.mark.parametrize("there", [True, False])
def test_a_rule_that_shows_a_cache_takes_nothing_from_its_tool(shop: Shop, there: bool) -> None:  # noqa: F811
    """`allow_read = ["~/.npm"]`, as other sandboxes want it, made npm's own cache read-only."""
    shop.write("~/.npm/_cacache/of_host" if there else "~/.npm/other", "of the host\n")
    script = 'mkdir -p ~/.npm/_cacache && echo new > ~/.npm/_cacache/new && cat ~/.npm/_cacache/new && cat "$1"'
    shown = shop.home.path / (".npm/_cacache/of_host" if there else ".npm/other")
    done = shop.world.netsandbox(
        *("run", "node", "--allow-read", f"{shop.home.path}/.npm", "--", "/bin/sh", "-c", script, "sh", str(shown)),
        env={"PATH": "/bin"},
    )
    assert done.stdout == "new\nof the host\n", done.stderr
    assert not (shop.home.path / ".npm/_cacache/new").exists()


def test_a_rule_that_hides_a_cache_hides_it(shop: Shop) -> None:  # noqa: F811
    """The twin: no profile shows what the user denies."""
    cached = shop.write("~/.npm/_cacache/of_host", CANARY)
    words = ("run", "node", "--deny-read", f"{shop.home.path}/.npm", "--", "/bin/cat", str(cached))
    assert CANARY not in shop.world.netsandbox(*words, env={"PATH": "/bin"}).stdout
