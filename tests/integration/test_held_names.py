"""A session makes what programs of the host obey by names that were missing, and the host finds none of it.

The twins: an ordinary file stays, a name that a rule opens stays, and `apply` puts in place what the user names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from netsandbox.policy.shown_files import PROTECTED
from tests.rig.command import CommandLine, Home

pytestmark = [
    pytest.mark.broker_as_root,
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.backend("namespaces", "broker"),
]

# What the host has before, what the session does, and the names that the host must not find after it.
ATTACKS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "file": ("", "echo x > .envrc", (".envrc",)),
    "folder": ("", "mkdir .vscode; echo x > .vscode/tasks.json", (".vscode",)),
    "every-name": (
        "",
        "".join(f"mkdir -p $(dirname {name}); echo x > {name};" for name in PROTECTED),
        PROTECTED,
    ),
    "in-a-folder-of-the-host": (
        "mkdir .claude; echo x > .claude/notes",
        "echo x > .claude/settings.json",
        (".claude/settings.json",),
    ),
    "link": ("mkdir -p src/x", "echo x > src/x/tasks.json; ln -s src/x .vscode", (".vscode",)),
    "link-that-leads-nowhere": ("", "ln -s /nowhere/x .envrc", (".envrc",)),
    "link-above": ("mkdir src", "echo x > src/settings.json; ln -s src .claude", (".claude/settings.json",)),
    "behind-a-link-of-the-host": (
        "mkdir shared; ln -s shared .claude",
        "echo x > shared/settings.json",
        (".claude/settings.json",),
    ),
    "at-the-end-of-a-link-of-the-host": (
        "mkdir src; ln -s src/x .vscode",
        "mkdir src/x; echo x > src/x/tasks.json",
        (".vscode/tasks.json",),
    ),
    "exchanged-folder": (
        "mkdir .claude; echo x > .claude/notes",
        "mv .claude c; echo x > c/settings.json; ln -s c .claude",
        (".claude/settings.json",),
    ),
    "second-name": ("echo x > a", "ln a .envrc", (".envrc",)),
    "pipe": ("", "mkfifo .envrc", (".envrc",)),
    "without-rights": (
        "",
        "mkdir .vscode; echo x > .vscode/tasks.json; chmod 0 .vscode/tasks.json .vscode",
        (".vscode",),
    ),
    "closed-folder": ("mkdir .claude", "echo x > .claude/settings.json; chmod 0 .claude", (".claude/settings.json",)),
    "closed-project": ("", "echo x > .envrc; chmod 500 .", (".envrc",)),
    "large": ("", "truncate -s 40M .envrc", (".envrc",)),
    "deep": (
        "",
        "mkdir .vscode; cd .vscode; for i in $(seq 100); do mkdir d; cd d; done",
        (".vscode",),
    ),
    "in-the-way": ("", "echo x > .envrc; echo y > .envrc.netsandbox", (".envrc",)),
}


def project_in(home: Home, before: str = "") -> Path:
    project = home.path / "shop"
    script = f"mkdir {project}; cd {project}; git init -q; {before or 'true'}"
    subprocess.run([*home.identity.prefix, "sh", "-ec", script], check=True, env=home.environment(None))
    return project


@pytest.mark.attack(270)
@pytest.mark.ordinary_user
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_host_finds_nothing_by_the_name(netsandbox: CommandLine, attack: str) -> None:
    before, script, names = ATTACKS[attack]
    home = netsandbox.home()
    project = project_in(home, before)
    done = netsandbox("run", "--", "sh", "-c", f"echo x > plain; {script}", cwd=project)
    assert done.returncode == 0, done.stderr
    assert [name for name in names if os.path.lexists(project / name)] == []
    assert (project / "plain").read_text() == "x\n"
    said = ("kept out of ~/shop", ".netsandbox now", "so it is removed")
    assert any(each in done.stderr for each in said), done.stderr


@pytest.mark.attack(270)
def test_a_shell_of_the_host_runs_nothing_that_the_session_left(netsandbox: CommandLine) -> None:
    home = netsandbox.home()
    project = project_in(home)
    canary = project / "canary"
    netsandbox("run", "--", "sh", "-c", f"echo 'touch {canary}' > .bashrc; mkdir -p .config/fish", cwd=project)
    subprocess.run(["bash", "-ic", "true"], env={"HOME": str(project), "PATH": "/bin:/usr/bin"}, check=False)
    assert not canary.exists()
    (project / ".bashrc").write_text(f"touch {canary}\n")  # the twin: it would have been run
    subprocess.run(["bash", "-ic", "true"], env={"HOME": str(project), "PATH": "/bin:/usr/bin"}, check=False)
    assert canary.exists()


@pytest.mark.attack(270)
def test_the_working_folder_is_looked_at_too_and_a_folder_below_it_is_not(netsandbox: CommandLine) -> None:
    project = project_in(netsandbox.home(), "mkdir -p app/inner")
    netsandbox("run", "--", "sh", "-c", "echo x > .envrc; echo x > inner/.envrc", cwd=project / "app")
    assert not (project / "app/.envrc").exists()
    assert (project / "app/inner/.envrc").exists()


@pytest.mark.attack(271)
@pytest.mark.parametrize("rule", ["keep", "new/deep/keep"])
def test_a_missing_path_of_deny_write_is_not_made(netsandbox: CommandLine, rule: str) -> None:
    project = project_in(netsandbox.home())
    script = f"mkdir -p {os.path.dirname(rule) or '.'}; echo x > {rule}; echo x > beside"
    done = netsandbox("run", "--deny-write", rule, "--", "sh", "-c", script, cwd=project)
    assert not (project / rule).exists()
    assert (project / "beside").exists()
    assert f"`netsandbox apply shop-held {rule}`" in done.stderr


def test_a_name_that_a_rule_opens_is_left_and_one_above_it_opens_nothing(netsandbox: CommandLine) -> None:
    project = project_in(netsandbox.home())
    script = "echo x > .envrc; mkdir .vscode; echo x > .vscode/tasks.json"
    done = netsandbox("run", "--allow-write", ".envrc", "--allow-write", ".", "--", "sh", "-c", script, cwd=project)
    assert (project / ".envrc").read_text() == "x\n"
    assert not (project / ".vscode").exists()
    assert "would obey it: .vscode;" in done.stderr


def test_what_was_kept_is_shown_and_put_in_place_by_the_commands_of_the_line(netsandbox: CommandLine) -> None:
    project = project_in(netsandbox.home(), "mkdir .claude; chmod 750 .claude")
    script = (
        "echo x > .envrc; echo '{}' > .claude/settings.json; mkdir .vscode; echo y > .vscode/a; chmod 755 .vscode/a"
    )
    done = netsandbox("run", "--", "sh", "-c", script, cwd=project)
    shows, puts = (part for part in done.stderr.split("`") if part.startswith("netsandbox "))
    assert "+x" in netsandbox(*shows.split()[1:], cwd=project).stdout
    assert puts == "netsandbox apply shop-held .vscode"
    assert netsandbox(*puts.split()[1:], cwd=project).returncode == 0
    assert (project / ".vscode/a").read_text() == "y\n"
    assert (project / ".vscode/a").stat().st_mode & 0o777 == 0o755
    listed = netsandbox("changes", "shop-held", cwd=project).stdout
    assert ".claude/settings.json" in listed
    assert "mode" not in listed
    assert netsandbox("apply", "shop-held", ".envrc", ".claude/settings.json", cwd=project).returncode == 0
    assert (project / ".claude/settings.json").read_text() == "{}\n"
    assert "no session keeps changes" in netsandbox("changes", cwd=project).stderr


def test_a_second_session_replaces_what_the_first_one_left_and_another_project_has_its_own_place(
    netsandbox: CommandLine,
) -> None:
    home = netsandbox.home()
    project = project_in(home)
    netsandbox("run", "--", "sh", "-c", "ln -s /etc .claude; echo x > .envrc", cwd=project)
    done = netsandbox(
        "run", "--", "sh", "-c", "mkdir .claude; echo y > .claude/settings.json; echo y > .envrc", cwd=project
    )
    assert "netsandbox apply shop-held" in done.stderr
    assert "+y" in netsandbox("changes", "shop-held", "--diff", cwd=project).stdout
    other = home.path / "other/shop"
    subprocess.run([*home.identity.prefix, "mkdir", "-p", str(other)], check=True)
    assert "apply shop-held-2" in netsandbox("run", "--", "sh", "-c", "echo x > .envrc", cwd=other).stderr
