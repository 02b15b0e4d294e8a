"""What is hidden is not read by any name, and a path that is not hidden is."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netsandbox.policy import home_paths
from tests.rig.inside import attack

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

CANARY, PLAIN = "canary-5b1f", "plain-77aa"
READ = """
def text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return __import__("errno").errorcode[error.errno]

def under(folder):
    return [text(os.path.join(top, name)) for top, _, names in os.walk(folder) for name in names]
"""


def put(home: Any, path: Path, content: str) -> Path:
    """A file of this account, its folders too."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    for each in made:
        os.chown(each, home.identity.uid, home.identity.gid)
    return path


@pytest.fixture
def secret(netsandbox: Any) -> Path:
    """A key in ~/.ssh, a file in ~/.config/op, a token in a file, and beside them what is no secret."""
    home = netsandbox.home()
    put(home, home.path / ".config" / "op" / "config", CANARY)
    put(home, home.path / ".config" / "other", PLAIN)
    put(home, home.path / ".netrc", CANARY)
    put(home, home.path / "open", PLAIN)
    return put(home, home.path / ".ssh" / "keys" / "id", CANARY)


@pytest.mark.open_files
@pytest.mark.attack(146)
@pytest.mark.attack(152)
@pytest.mark.attack(153)
def test_146_152_153_secrets_are_read_by_no_name(netsandbox: Any, secret: Path) -> None:
    home = netsandbox.home()
    (home.work / "link").symlink_to(secret)
    (home.work / "folder").symlink_to(secret.parent.parent)
    script = (
        READ
        + """
os.chdir(home)
folder = os.open(home, os.O_RDONLY)
config = os.open(home + "/.config", os.O_RDONLY)
names = [home + "/.ssh/keys/id", home + "/.netrc", home + "/.config/op/config", ".ssh/keys/id", "work/link",
         "work/folder/keys/id", "work/../.netrc", "/proc/self/root" + home + "/.netrc", "/proc/self/cwd/.netrc",
         "/proc/1/root" + home + "/.netrc", "/proc/1/cwd/../.netrc", f"/proc/self/fd/{folder}/.netrc",
         f"/proc/self/fd/{config}/op/config", f"/dev/fd/{folder}/.ssh/keys/id", f"/proc/thread-self/root{home}/.netrc"]
out["by name"] = [text(name) for name in names]
def relative(name, at):
    try:
        found = os.open(name, os.O_RDONLY, dir_fd=at)
    except OSError as error:
        return str(error.errno)
    return os.read(found, 99).decode()
out["by descriptor"] = [relative(".netrc", folder), relative("op/config", config), relative(".ssh/keys/id", folder)]
out["moved"] = [refused(os.rename, one, one + "2") for one in (".ssh", ".netrc", ".config/op", ".config")]
out["removed"] = [refused(os.unlink, ".netrc"), refused(os.rmdir, ".ssh"), refused(os.rename, "open", ".netrc")]
out["linked"] = [refused(os.link, ".netrc", "work/second"), refused(os.symlink, home + "/.netrc", "work/third")]
out["third"] = text("work/third")
out["written"] = [refused(open, ".netrc", "w"), refused(os.mkdir, ".ssh/new"), refused(os.chmod, ".netrc", 0o666)]
out["found"] = [one for one in under(home) if "canary" in one]
out["plain"] = [text("open"), text(".config/other"), text("/proc/self/root" + home + "/open")]
"""
    )
    tried = attack(netsandbox, [], script, arguments={"home": str(home.path)})
    assert CANARY not in str(tried.out)
    assert all(len(tried.out[kind]) >= 2 for kind in ("by name", "by descriptor"))
    for kind in ("moved", "removed", "written"):
        assert None not in tried.out[kind]
    assert tried.out["linked"][0] is not None
    assert tried.out["third"] == "EACCES"
    assert tried.out["plain"] == [PLAIN, PLAIN, PLAIN]
    assert secret.read_text() == CANARY  # nothing of it was touched
    shown = attack(
        netsandbox, ["--allow-read", "~/.ssh", "--allow-read", "~/.netrc"], script, arguments={"home": str(home.path)}
    )
    assert shown.out["by name"][:2] == [CANARY, CANARY]
    assert shown.out["by name"][2] == "ENOENT"


@pytest.mark.attack(149)
def test_149_nothing_is_shown_by_the_next_session_after_folders_were_moved(netsandbox: Any, secret: Path) -> None:
    """A folder above a secret, moved in one session, would not be hidden in the next."""
    home = netsandbox.home().path
    netsandbox("run", "--", "sh", "-c", "cd; mv .config .moved; mkdir .config; mv .ssh/keys .; mv .netrc x")
    run = netsandbox("run", "--", "sh", "-c", f"grep -rs {CANARY} {home}; echo end")
    assert run.stdout == "end\n"
    assert (home / ".config" / "op" / "config").read_text() == CANARY


@pytest.mark.open_files
@pytest.mark.attack(149)
def test_149_nothing_is_shown_by_the_next_session_after_a_link_was_removed(netsandbox: Any) -> None:
    """A secret that lies elsewhere, as those who keep their settings in a repository have it."""
    home = netsandbox.home()
    place = put(home, home.path / "dotfiles" / "aws" / "credentials", CANARY)
    (home.path / ".aws").symlink_to("dotfiles/aws")
    os.chown(home.path / ".aws", home.identity.uid, home.identity.gid, follow_symlinks=False)
    seen = netsandbox("run", "--", "sh", "-c", "cd; rm .aws; mv .aws x; ls .aws")
    assert (seen.stdout, seen.stderr.count("busy")) == ("", 2)
    assert CANARY not in netsandbox("run", "--", "cat", place).stdout
    assert CANARY in netsandbox("run", "--allow-read", "~/.aws", "--", "cat", place).stdout


@pytest.mark.open_files
@pytest.mark.attack(146)
def test_146_a_link_that_an_earlier_command_made_shows_no_secret(netsandbox: Any, secret: Path) -> None:
    home = netsandbox.home()
    netsandbox("run", "--", "sh", "-c", "ln -s ~ fixtures")
    assert CANARY not in netsandbox("run", "--allow-read", "fixtures", "--", "cat", secret).stdout
    assert CANARY in netsandbox("run", "--allow-read", home.path, "--", "cat", secret).stdout


@pytest.mark.open_files
@pytest.mark.attack(153)
def test_153_what_the_user_denies_is_hidden_whatever_allows_it(netsandbox: Any) -> None:
    home = netsandbox.home()
    put(home, home.work / "data" / "private", CANARY)
    put(home, home.work / "data.txt", PLAIN)
    script = READ + 'out["seen"] = [text("data/private"), text("data.txt"), refused(os.rename, "data", "d")]'
    options = ["--deny-read", "data", "--allow-read", "data/private", "--allow-read", "/"]
    assert attack(netsandbox, options, script).out["seen"] == ["ENOENT", PLAIN, "EBUSY"]
    assert attack(netsandbox, [], script).out["seen"] == [CANARY, PLAIN, None]


@pytest.mark.attack(147)
def test_147_another_hard_link_is_another_name(netsandbox: Any, secret: Path) -> None:
    """A limit: what has a second name on the disk is hidden by the first alone, and by both if both are named."""
    home = netsandbox.home()
    (home.work / "second").hardlink_to(secret)
    script = READ + 'out["seen"] = text("second")'
    assert attack(netsandbox, [], script).out["seen"] == CANARY
    assert attack(netsandbox, ["--deny-read", "second"], script).out["seen"] == "EACCES"


@pytest.mark.parametrize("shown", ["home", ".ssh", ".ssh/keys"])
def test_a_second_mount_shows_no_secret(netsandbox: Any, secret: Path, short_tmp: Path, shown: str) -> None:
    """The host has mounted the home, or a part of it, at another place too."""
    home = netsandbox.home()
    source = home.path if shown == "home" else home.path / shown
    new = ["unshare", "--mount"] if home.identity.uid == 0 else ["unshare", "--mount", "--map-root-user"]
    product = f'"{home.identity.python}" -m netsandbox run --no-config --files readable "$@"'
    inside = f"grep -rs {CANARY} {short_tmp} {home.path}; ls -A {short_tmp} >/dev/null && echo looked"
    script = f'mount --bind "{source}" "{short_tmp}" && {product} -- sh -c "{inside}"'

    def run(*options: str) -> str:
        done = home.plainly([*new, "sh", "-c", script, "sh", *options])
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    assert run() == "looked\n"
    seen = run("--allow-read", str(home.path))
    assert CANARY in seen
    assert f"{short_tmp}/" in seen


@pytest.mark.open_files
@pytest.mark.backend("namespaces", "broker")
def test_a_working_folder_that_is_hidden_is_an_error(netsandbox: Any, secret: Path) -> None:
    """INV-1: the command would stand elsewhere than the user thinks."""
    run = netsandbox("run", "--", "pwd", cwd=secret.parent)
    assert (run.returncode, run.stdout) == (2, "")
    assert "--allow-read" in run.stderr
    run = netsandbox("run", "--allow-read", "~/.ssh", "--", "pwd", cwd=secret.parent)
    assert run.stdout == f"{secret.parent}\n"


@pytest.mark.open_files
def test_one_word_that_shows_every_secret_is_told(netsandbox: Any, secret: Path) -> None:
    run = netsandbox("run", "--allow-read", "~", "--", "cat", secret)
    assert run.stdout == CANARY
    assert "shows the command every secret of your home" in run.stderr
    assert netsandbox("run", "-q", "--allow-read", "~", "--", "cat", secret).stderr == ""
    named = netsandbox("run", "--allow-read", "~/.ssh", "--", "cat", secret)
    assert named.stderr == "netsandbox: --allow-read: the command can read ~/.ssh, which may hold secrets\n"


@pytest.mark.open_files
def test_what_is_hidden_and_confined_is_told_on_demand(netsandbox: Any, secret: Path) -> None:
    run = netsandbox("run", "-v", "--allow-write", ".", "--", "true")
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("netsandbox: hidden: ")]
    assert line.endswith("~/.config/op, ~/.netrc, ~/.ssh; --allow-read PATH shows a secret")  # after the system's
    assert "netsandbox: writing is confined to /dev, " in run.stderr


def test_a_path_that_is_not_there_is_told_where_it_matters(netsandbox: Any) -> None:
    for option in ("--allow-write", "--deny-read", "--deny-write"):
        run = netsandbox("run", "--files", "readable", option, "absent", "--", "true")
        assert run.returncode == 0
        assert f"netsandbox: {option}: ~/{netsandbox.home().work.name}/absent is missing, so not " in run.stderr
    read = netsandbox("run", "--files", "readable", "--allow-read", "absent", "--", "true")
    assert (read.returncode, read.stderr) == (0, "")  # what appears later can be read anyway


@pytest.mark.attack(152)
def test_152_no_disk_is_reached_below_its_files(netsandbox: Any) -> None:
    """Root could read every secret from /dev/sda. An ordinary user sees the devices and opens none."""
    if not any(stat.S_ISBLK(path.lstat().st_mode) for path in Path("/dev").iterdir()):
        pytest.skip("this machine has no block devices")
    script = """
import stat
found = [os.path.join(top, name) for top, _, names in os.walk("/dev") for name in names]
blocks = [path for path in found if stat.S_ISBLK(os.lstat(path).st_mode)]
out["opened"] = [path for path in blocks for how in (os.O_RDONLY, os.O_WRONLY) if refused(os.open, path, how) is None]
out["seen"] = len(blocks) if os.getuid() == 0 else 0
out["twin"] = refused(os.open, "/dev/null", os.O_RDWR)
"""
    for options in ([], ["--allow-write", "."]):
        tried = attack(netsandbox, options, script)
        assert (tried.out["opened"], tried.out["seen"], tried.out["twin"]) == ([], 0, None)


@pytest.mark.attack(230)
@pytest.mark.parametrize("mode", ["readable", "open"])
def test_secrets_that_a_variable_moved_around_the_working_folder_are_hidden(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    for name in ("gh/hosts.yml", "git/credentials", "plain/file"):
        path = home.work / name
        path.parent.mkdir()
        path.write_text("canary-moved" if name[0] == "g" else "plain")
    run = netsandbox(
        "run", "--no-config", "--files", mode, "--", "sh", "-c", "cat gh/* git/* plain/*; true",
        env={"XDG_CONFIG_HOME": str(home.work)},
    )  # fmt: skip
    assert run.stdout == "plain", run.stderr


@pytest.mark.attack(230)
@pytest.mark.parametrize("mode", ["readable", "open"])
def test_where_links_in_a_secret_folder_lead_is_hidden(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    for name in ("keys/id_rsa", "keys/plain", "vault/deep/key"):
        path = home.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("plain" if name.endswith("plain") else "canary-linked")
    (home.path / ".ssh").mkdir()
    (home.path / ".ssh/id_rsa").symlink_to("../keys/id_rsa")
    (home.path / ".ssh/more").symlink_to(home.path / "vault")
    (home.path / ".ssh/up").symlink_to(home.path)
    (home.path / ".ssh/gone").symlink_to("nowhere")
    script = f"cat {home.path}/keys/* {home.path}/vault/deep/key; true"
    run = netsandbox("run", "--no-config", "--files", mode, "--", "sh", "-c", script)
    assert run.stdout == "plain", run.stderr
    shown = netsandbox(
        "run", "--no-config", "--files", mode, "--allow-read", f"{home.path}/.ssh", "--", "sh", "-c", script
    )
    assert "canary-linked" in shown.stdout, "the twin: the user shows the folder"


@pytest.mark.attack(230)
@pytest.mark.parametrize("mode", ["readable", "open"])
def test_a_key_outside_of_the_home_that_a_secret_folder_links_to_is_hidden(
    netsandbox: Any, outside: Path, mode: str
) -> None:
    home = netsandbox.home()
    for name in ("id_rsa", "plain"):
        (outside / name).write_text("plain" if name == "plain" else "canary-linked")
    (home.path / ".ssh").mkdir()
    (home.path / ".ssh/id_rsa").symlink_to(outside / "id_rsa")
    script = f"cat {outside}/*; true"
    run = netsandbox("run", "--no-config", "--files", mode, "--", "sh", "-c", script)
    assert run.stdout == "plain", run.stderr


@pytest.mark.attack(273)
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("mode", ["readable", "open"])
def test_logins_of_agents_are_hidden_until_a_rule_names_one(netsandbox: Any, mode: str) -> None:
    home = netsandbox.home()
    logins = [home.path / name for name in home_paths.AGENTS]
    logins = [path if path.suffix or path.name.startswith("id_") else path / "auth.json" for path in logins]
    moved = home.path / "elsewhere/auth.json"
    for path in (*logins, moved):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"canary-{path.parent.name}\n")
    subprocess.run(["chown", "-R", f"{home.identity.uid}:{home.identity.gid}", str(home.path)], check=True)
    command = ["--", "cat", *map(str, logins), str(moved)]
    options = ["run", "--no-config", "--files", mode]
    environment = {"CODEX_HOME": str(moved.parent)}
    hidden = netsandbox(*options, *command, env=environment)
    assert "canary" not in hidden.stdout
    shown = netsandbox(*options, "--allow-read", str(home.path / ".claude"), *command, env=environment)
    assert shown.stdout.split() == ["canary-.claude"], "the twin: the user shows one"
    assert "which may hold secrets" in shown.stderr


@pytest.mark.attack(219)
def test_a_hard_link_to_a_secret_is_not_there_by_default_and_is_told_otherwise(netsandbox: Any) -> None:
    home = netsandbox.home()
    secret, second = home.path / ".netrc", home.path / "copies" / "netrc"
    secret.write_text("canary-second-name")
    second.parent.mkdir()
    os.link(secret, second)
    run = netsandbox("run", "--", "cat", str(second))
    assert "canary-second-name" not in run.stdout
    told = netsandbox("run", "--files", "readable", "--", "cat", str(secret))
    assert told.stdout == ""
    assert "a hard link is a second name by which it may be read" in told.stderr
    second.unlink()
    assert "hard link" not in netsandbox("run", "--files", "readable", "--", "cat", str(secret)).stderr
