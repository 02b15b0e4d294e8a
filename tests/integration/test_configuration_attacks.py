"""Configuration is the user's word: what a command writes never becomes it (INV-8)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.rig.inside import attack

pytestmark = pytest.mark.usefixtures("user_namespaces")

FORGE = """
rules = '[network]\\nmode = "online"\\n'

def write(path, text):
    with open(path, "w") as file:
        file.write(text)

def swap(folder):
    os.rename(folder, folder + ".moved")
    os.makedirs(folder + "/netsandbox")
    write(folder + "/netsandbox/config.toml", rules)

tries = {
    "the user's file": lambda: write(config + "/netsandbox/config.toml", rules),
    "a new file beside it": lambda: write(config + "/netsandbox/projects", rules),
    "another folder in its place": lambda: os.rename(config + "/netsandbox", config + "/away"),
    "a folder above it": lambda: swap(config),
    "a note of trust": lambda: os.makedirs(state + "/netsandbox/trust"),
}
out["tries"] = {name: refused(call) for name, call in tries.items()}
write(project + "/.netsandbox.toml", rules)
out["project"] = True
"""


@pytest.mark.open_files
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.parametrize("before", ["a file", "no folder"])
def test_a_command_writes_no_configuration_that_counts(netsandbox: Any, before: str) -> None:
    home = netsandbox.home()
    config, project = home.path / "config", home.work
    own = config / "netsandbox" / "config.toml"
    if before == "a file":
        own.parent.mkdir()
        own.write_text('[network]\ndeny_domains = ["bad.test"]\n')
    places = {"config": str(config), "state": str(home.state), "project": str(project)}
    tried = attack(netsandbox, [], FORGE, arguments=places)
    assert {name for name, error in tried.out["tries"].items() if error is None} == set()
    assert own.exists() is (before == "a file")

    after = netsandbox("run", "--", "true")
    assert after.returncode == 0
    assert "would open network.mode; ignored until you run `netsandbox trust`" in after.stderr
    assert netsandbox("explain", "example.test").returncode == 1, "the twin: what the user trusts is allowed"
    assert netsandbox("trust", "--yes").returncode == 0
    assert netsandbox("explain", "example.test").returncode == 0


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.parametrize("link", ["", "netsandbox", "netsandbox/profiles"])
def test_149_a_command_forges_no_profile_where_the_configuration_is_kept_elsewhere(netsandbox: Any, link: str) -> None:
    """Those who keep their settings in a repository of their own have a link in one of these places."""
    home = netsandbox.home()
    place, kept = home.path / "config" / link, home.path / "dotfiles"
    if not link:
        place.rmdir()
    kept.mkdir()
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(kept)
    for path in (kept, place, place.parent):
        os.chown(path, home.identity.uid, home.identity.gid, follow_symlinks=False)
    profiles = home.path / "config" / "netsandbox" / "profiles"
    rules = '[network]\\nmode = "online"\\n'
    forge = f"cd {home.path}; mkdir -p {profiles}; printf '{rules}' > {profiles}/base.toml"
    again = f"{forge}; rm {place}; mv {place} x; {forge}"
    netsandbox("run", "--", "sh", "-c", again)
    assert netsandbox("explain", "example.test").returncode == 1
    profiles.mkdir(parents=True, exist_ok=True)
    (profiles / "base.toml").write_text('[network]\nmode = "online"\n')
    assert netsandbox("explain", "example.test").returncode == 0, "the twin: what the user writes there counts"


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
def test_what_was_trusted_is_not_trusted_once_a_command_has_changed_it(netsandbox: Any) -> None:
    file = netsandbox.home().work / ".netsandbox.toml"
    file.write_text('[network]\nallow_domains = ["a.test"]\n')
    file.chmod(0o666)  # whoever the command is
    assert netsandbox("trust", "--yes").returncode == 0
    assert netsandbox("explain", "a.test").returncode == 0
    done = netsandbox("run", "--", "sh", "-c", f"echo 'allow_addresses = [\"192.0.2.0/24\"]' >> {file}")
    assert done.returncode == 0, done.stderr
    for target in ("a.test", "192.0.2.1"):
        assert netsandbox("explain", target).returncode == 1


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.parametrize("name", [".claude-sandbox.json", ".agent-os/sandbox-config.json", ".sandbox.toml"])
def test_a_command_writes_no_file_of_another_sandbox_that_counts(netsandbox: Any, name: str) -> None:
    home = netsandbox.home()
    secret = home.path / ".netrc"
    secret.write_text("canary")
    os.chown(secret, netsandbox.identity.uid, netsandbox.identity.gid)
    toml = '[filesystem]\nallow_read = ["~/.netrc"]\n'
    rules = toml if name.endswith(".toml") else '{"additional_read_paths": ["~/.netrc"]}'
    script = 'os.makedirs(os.path.dirname(path), exist_ok=True)\nopen(path, "w").write(rules)'
    attack(netsandbox, [], script, arguments={"path": str(home.work / name), "rules": rules})
    after = netsandbox("run", "--", "cat", secret)
    assert after.stdout == ""
    assert f"{name} would open filesystem.allow_read; ignored until you run `netsandbox trust`" in after.stderr
    assert netsandbox("trust", "--yes").returncode == 0
    assert netsandbox("run", "--", "cat", secret).stdout == "canary"


@pytest.mark.open_files
@pytest.mark.ordinary_user
def test_a_command_cannot_add_to_what_sessions_of_its_folder_may_write(netsandbox: Any) -> None:
    """The list is the user's, and lies where no command writes; made by the user, it opens."""
    home = netsandbox.home()
    own = home.path / "config" / "netsandbox" / "projects"
    adding = [netsandbox.home().identity.python, "-m", "netsandbox", "config", "add-path", "/usr"]
    run = netsandbox("run", "--", *adding)
    assert run.returncode != 0
    assert "cannot write" in run.stderr
    assert not own.exists()
    extra = home.path / "extra"
    extra.mkdir()
    os.chown(extra, netsandbox.identity.uid, netsandbox.identity.gid)
    assert netsandbox("config", "add-path", extra).returncode == 0
    script = f"touch {extra}/x; echo $?; touch /usr/nsb-x 2>/dev/null; echo $?; echo /usr >> {own}/*; echo $?"
    confined = netsandbox("run", "--files", "readable", "--", "sh", "-c", script)
    assert confined.stdout.split()[:2] == ["0", "1"]
    assert "/usr\n" not in next(own.iterdir()).read_text()


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.attack(149)
def test_a_session_with_other_homes_prepares_nothing_for_one_with_the_usual(netsandbox: Any) -> None:
    """149: configuration, trust and what is remembered lie in the usual homes, which this session does not use."""
    netsandbox.home(warm=False)
    usual = {"XDG_CONFIG_HOME": None, "XDG_STATE_HOME": None}
    assert netsandbox("run", "--", "true", env=usual).returncode == 0
    script = """
cd || exit
echo '[network]
mode = "online"' > .config/netsandbox/config.toml
touch .local/state/netsandbox/forged
mv .config/netsandbox .config/away; mv .local/state/netsandbox .local/state/away
mv .config away; mv .local away
ls -A .local/state/netsandbox
echo done"""
    other = netsandbox("run", "--", "sh", "-c", script)
    assert other.stdout == "done\n", other.stderr
    home = netsandbox.home().path
    assert not (home / ".config" / "netsandbox" / "config.toml").exists()
    assert (home / ".local" / "state" / "netsandbox" / "first-session").exists()
    assert not (home / ".local" / "state" / "netsandbox" / "forged").exists()
    assert netsandbox("run", "--", "sh", "-c", "echo $SANDBOX_MODE", env=usual).stdout == "offline\n"


@pytest.mark.open_files
@pytest.mark.ordinary_user
@pytest.mark.attack(149)
@pytest.mark.parametrize("kept", ["1", None], ids=["missing", "there"])
def test_bytecode_that_lies_elsewhere_is_out_of_reach(netsandbox: Any, kept: str | None) -> None:
    """149: with PYTHONPYCACHEPREFIX the next launch would run what a command wrote there."""
    home = netsandbox.home()
    prefix = home.path / "bytecode"
    env = {"PYTHONPYCACHEPREFIX": str(prefix), "PYTHONDONTWRITEBYTECODE": kept}
    ours = f"{prefix}{home.identity.pythonpath.split(':')[0]}"
    script = f"""
echo forged > {ours}/forged.pyc; mkdir -p {ours}/netsandbox && echo forged > {ours}/netsandbox/errors.forged.pyc
mv {ours} {ours}.away; mv {prefix} {prefix}.away; rm -rf {ours}
mkdir -p {prefix}/mine && echo mine > {prefix}/mine/own.pyc && echo done"""
    for _ in range(2):
        run = netsandbox("run", "--", "sh", "-c", script, env=env)
        assert run.stdout == "done\n", run.stderr
    assert not list(home.path.rglob("*forged*"))
    assert os.path.isdir(ours)


def test_a_configuration_from_a_pipe_holds(netsandbox: Any) -> None:
    """As `--config <(…)` has it: there is no name that would have to be protected."""
    notes = netsandbox.home().work / "notes"
    notes.write_text("mine\n")
    look = ("run", "--config", "/dev/stdin", "--", "sh", "-c", f"echo started; cat {notes}")
    hidden = netsandbox(*look, input=f"[filesystem]\ndeny_read = ['{notes}']\n")
    assert (hidden.stdout, hidden.returncode) == ("started\n", 1), hidden.stderr
    shown = netsandbox(*look, input="[network]\nmode = 'offline'\n")
    assert (shown.stdout, shown.returncode) == ("started\nmine\n", 0), shown.stderr


def rules_in(home: Any) -> tuple[Path, Path]:
    """A configuration in the working folder, and a link to it."""
    rules, link = home.work / "rules.toml", home.work / "link.toml"
    rules.write_text("[network]\nmode = 'offline'\n")
    link.symlink_to("rules.toml")
    for path in (rules, link):
        os.chown(path, home.identity.uid, home.identity.gid, follow_symlinks=False)
    return rules, link


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.parametrize("name", ["/dev/fd/3", "/proc/self/fd/3", "rules.toml", "link.toml"])
def test_a_configuration_that_is_a_file_is_protected_however_it_is_named(netsandbox: Any, name: str) -> None:
    home = netsandbox.home()
    rules, link = rules_in(home)
    script = "echo >> rules.toml; rm -f rules.toml; echo > new; mv -f new rules.toml; mv -f rules.toml moved; echo done"
    run = (home.identity.python, "-m", "netsandbox", "run", "--config", name, "--", "sh", "-c", script)
    done = home.plainly(["sh", "-c", 'exec "$@" 3< rules.toml', "sh", *run])
    assert done.stdout == "done\n", done.stderr
    assert rules.read_text() == "[network]\nmode = 'offline'\n"
    assert link.is_symlink()
    assert netsandbox("run", "--no-config", "--", "sh", "-c", "rm rules.toml").returncode == 0
    assert not rules.exists()


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.attack(132)
@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "rules.toml", "link.toml"])
def test_a_configuration_is_not_handed_over_as_standard_input(netsandbox: Any, name: str) -> None:
    """132: through /proc/self/fd a file is opened anew on the mount that it came from, which is not read-only."""
    rules, _ = rules_in(netsandbox.home())
    script = "echo started; echo '# mine' >> /proc/self/fd/0"
    with rules.open("rb") as file:
        refused = netsandbox.spawn("run", "--config", name, "--", "sh", "-c", script, stdin=file.fileno())
        out, err = refused.process.communicate(timeout=60)
        assert (out, refused.process.returncode) == (b"", 1), err
        assert b"the command could write through it" in err
        assert rules.read_text() == "[network]\nmode = 'offline'\n"
        started = netsandbox.spawn("run", "--no-config", "--", "sh", "-c", script, stdin=file.fileno())
        assert started.process.communicate(timeout=60)[0] == b"started\n"
