"""`netsandbox learn` on the real kernel: what a command wrote is what it may write from then on, and nothing else."""

from __future__ import annotations

import os
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

KEY = "key-5b1c"
STATIC = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
/* Calls that no C library makes: pointers to nowhere, paths without an end. Then one file in the folder of argv[1]. */
int main(int argc, char **argv) {
    static char endless[8192];
    memset(endless, 'x', sizeof endless);
    for (long address = 1; address; address <<= 9) {
        if (syscall(SYS_openat, AT_FDCWD, address, O_WRONLY | O_CREAT, 0600) != -1 || errno != EFAULT) return 2;
        if (syscall(SYS_renameat2, AT_FDCWD, address, AT_FDCWD, address, 0) != -1 || errno != EFAULT) return 3;
    }
    if (syscall(SYS_openat, AT_FDCWD, endless, O_WRONLY | O_CREAT, 0600) != -1 || errno != ENAMETOOLONG) return 4;
    if (syscall(SYS_openat2, AT_FDCWD, argv[1], 0L, 24L) != -1 || errno != EFAULT) return 5;
    if (chdir(argv[1]) != 0 || mkdir("static", 0700) != 0 && errno != EEXIST) return 6;
    int folder = open("static", O_RDONLY | O_DIRECTORY);
    int made = openat(folder, "by-descriptor", O_WRONLY | O_CREAT, 0600);
    return made < 0 ? 7 : argc == 2 ? 0 : 8;
}
"""
WRITES = """
import os, subprocess, sys, threading
home, static = os.environ["HOME"], sys.argv[1]
def make(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("x")

make(home + "/.cache/tool/http/a/b/c")
for number in range(40):  # as a store of packages has it
    make(home + "/.store/content/%02x/%02x/f" % (number, number))
make(home + "/.moved/from")
os.replace(home + "/.moved/from", home + "/.moved/to")
os.chdir(home + "/.moved")
make(os.path.join(os.getcwd(), "relative"))
open("plain", "w").close()
folder = os.open(home + "/.moved", os.O_RDONLY)
os.close(os.open("by-descriptor", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder))
threads = [threading.Thread(target=make, args=(home + "/.threads/%d/f" % number,)) for number in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
subprocess.run(["sh", "-c", "mkdir -p ~/.child && echo x > ~/.child/f"], check=True)
subprocess.run([static, home], check=True)
try: os.truncate(home + "/.there", 0)
except FileNotFoundError: pass
open(os.environ["OLDPWD_"] + "/in-the-working-folder", "w").close()
"""
Learn = Callable[..., Any]


@pytest.fixture
def place(netsandbox: Any, outside: Path) -> dict[str, Any]:
    """A home and a project that lie in none of the folders that are always open."""
    identity = netsandbox.home().identity
    for name in ("home", "home/.ssh", "project"):
        (outside / name).mkdir()
    (outside / "home/.ssh/id").write_text(KEY)
    (outside / "home/.there").write_text("x")
    for path in (outside, *outside.rglob("*")):
        os.chown(path, identity.uid, identity.gid)
    env = {"HOME": str(outside / "home"), "XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None, "TMPDIR": None}
    return {"env": {**env, "OLDPWD_": str(outside / "project")}, "cwd": outside / "project"}


def rules(outside: Path) -> dict[str, Any]:
    return tomllib.loads((outside / "project/.netsandbox.toml").read_text())


def records(netsandbox: Any, place: dict[str, Any]) -> list[str]:
    shown: list[str] = netsandbox("audit", "show", "--event", "file", **place).stdout.splitlines()
    return shown


@pytest.mark.open_files
def test_what_was_learned_is_enough_for_the_same_command_and_for_nothing_else(
    netsandbox: Any, outside: Path, place: dict[str, Any], probe: Any
) -> None:
    static = str(probe("learned", STATIC, static=True))
    command = [netsandbox.python, "-I", "-c", textwrap.dedent(WRITES), static]
    learned = netsandbox("learn", "--write", "--", *command, **place)
    assert learned.returncode == 0, learned.stderr
    assert '+    "~/.cache/tool/",' in learned.stderr
    assert rules(outside) == {
        "filesystem": {
            "allow_write": [
                "~/.cache/tool/",
                "~/.child/",
                "~/.moved/",
                "~/.store/",
                "~/.there",
                "~/.threads/",
                "~/static/",
            ]
        }
    }
    assert netsandbox("trust", "--yes", **place).returncode == 0
    again = netsandbox("run", "--files", "readable", "--", *command, **place)
    assert again.returncode == 0, again.stderr
    canary = outside / "home/.other"
    other = netsandbox(
        "run", "--files", "readable", "--", "sh", "-c", "touch ~/.other || touch ~/.other/x || touch ../beside", **place
    )
    assert other.returncode != 0
    assert not canary.exists()
    assert not (outside / "beside").exists()
    nothing_new = netsandbox("learn", "--write", "--", *command, **place)
    assert "there is nothing to write" in nothing_new.stderr


@pytest.mark.open_files
def test_a_fresh_home_is_made_ready_by_the_rules_themselves(
    netsandbox: Any, outside: Path, place: dict[str, Any]
) -> None:
    """What the command made while learning is gone, as on a colleague's machine: folders with a slash are made."""
    script = "mkdir -p ~/.cache/tool ~/.tool/deep && echo x > ~/.cache/tool/f && echo x > ~/.tool/deep/f"
    assert netsandbox("learn", "-w", "--", "sh", "-c", script, **place).returncode == 0
    assert rules(outside)["filesystem"]["allow_write"] == ["~/.cache/tool/", "~/.tool/"]
    removed = netsandbox("run", "--no-config", "--", "sh", "-c", "rm -r ~/.cache/tool ~/.tool", **place)
    assert removed.returncode == 0, removed.stderr
    assert not (outside / "home/.tool").exists()
    assert netsandbox("trust", "--yes", **place).returncode == 0
    assert netsandbox("run", "--", "sh", "-c", script, **place).returncode == 0
    assert (outside / "home/.tool/deep/f").read_text() == "x\n"


def test_a_command_that_writes_nothing_outside_needs_no_rule(
    netsandbox: Any, outside: Path, place: dict[str, Any]
) -> None:
    learned = netsandbox("learn", "-w", "--", "sh", "-c", "echo x > here; echo x > /tmp/$$; rm /tmp/$$", **place)
    assert "there is nothing to write" in learned.stderr
    assert not (outside / "project/.netsandbox.toml").exists()
    assert records(netsandbox, place) == []


@pytest.mark.open_files
def test_a_secret_stays_hidden_is_remarked_and_never_written(
    netsandbox: Any, outside: Path, place: dict[str, Any]
) -> None:
    learned = netsandbox(
        "learn", "-w", "--", "sh", "-c", "cat ~/.ssh/id; cat ~/.ssh/other; echo x > ~/.ssh/id", **place
    )
    assert KEY not in learned.stdout
    assert "# refused: private keys stay closed; use your agent with the profile git-ssh" in learned.stderr
    assert f"#   {outside}/home/.ssh\n" in learned.stderr
    assert "allow_read" not in learned.stderr
    assert not (outside / "project/.netsandbox.toml").exists()
    assert (outside / "home/.ssh/id").read_text() == KEY
    tried = records(netsandbox, place)
    assert len(tried) == 2
    assert all(f"place={outside}/home/.ssh" in line for line in tried)
    harmless = netsandbox("learn", "-w", "--", "sh", "-c", "cat ~/.there", **place)
    assert harmless.stdout == "x"
    assert "allow_read" not in harmless.stderr
    summary = netsandbox("audit", "summary", **place).stdout
    assert "Secrets" not in summary


def test_confinement_holds_while_learning_and_what_it_refused_is_proposed(
    netsandbox: Any, outside: Path, place: dict[str, Any]
) -> None:
    (outside / "project/.netsandbox.toml").write_text("[filesystem]\nallow_write = []\n")
    (outside / "home/.tool").mkdir()
    identity = netsandbox.home().identity
    os.chown(outside / "home/.tool", identity.uid, identity.gid)
    learned = netsandbox("learn", "-w", "--files", "readable", "--", "sh", "-c", "echo x > ~/.tool/f", **place)
    assert learned.returncode != 0
    assert not (outside / "home/.tool/f").exists()
    assert rules(outside) == {"filesystem": {"allow_write": ["~/.tool/"]}}
    assert netsandbox("trust", "--yes", **place).returncode == 0
    assert netsandbox("run", "--", "sh", "-c", "echo x > ~/.tool/f", **place).returncode == 0


@pytest.mark.open_files
def test_links_are_proposed_by_where_they_lead(netsandbox: Any, outside: Path, place: dict[str, Any]) -> None:
    """A link that a command could have made opens nothing, so the rule has to name the true folder."""
    script = "mkdir -p ~/true/deep && ln -s ~/true/deep ~/true/link && ln -s ~/true/deep link && echo x > link/f"
    assert netsandbox("learn", "-w", "--", "sh", "-c", script, **place).returncode == 0
    assert rules(outside)["filesystem"]["allow_write"] == ["~/true/"]


@pytest.mark.open_files
def test_folders_too_deep_for_one_path_are_covered_and_said_to_be_unlisted(
    netsandbox: Any, outside: Path, place: dict[str, Any]
) -> None:
    """The log cuts a path at 500 characters, /proc names none of more than 4,096; what is above them is known."""
    script = """
    import os, sys
    os.chdir(os.environ["HOME"])
    for name in ("deep", *("x" * 250 for _ in range(20))):
        os.makedirs(name, exist_ok=True)
        os.chdir(name)
    open("file", "w").close()
    """
    command = [netsandbox.python, "-I", "-c", textwrap.dedent(script)]
    learned = netsandbox("learn", "-w", "--", *command, **place)
    assert learned.returncode == 0, learned.stderr
    assert rules(outside)["filesystem"]["allow_write"] == ["~/deep/"]
    assert "more paths than are recorded" in learned.stderr
    assert netsandbox("trust", "--yes", **place).returncode == 0
    assert netsandbox("run", "--", *command, **place).returncode == 0


@pytest.mark.open_files
def test_an_ordinary_run_watches_no_files(netsandbox: Any, outside: Path, place: dict[str, Any]) -> None:
    assert netsandbox("run", "--", "sh", "-c", "echo x > ~/.written; cat ~/.ssh/id", **place).returncode == 1
    assert (outside / "home/.written").exists()
    assert records(netsandbox, place) == []


@pytest.mark.attack(115)
def test_115_a_path_that_changes_under_our_eyes_decides_nothing(
    netsandbox: Any, outside: Path, place: dict[str, Any], probe: Any
) -> None:
    """The secret stays hidden and the confined folder closed, whatever the watcher was shown."""
    source = r"""
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <pthread.h>
    #include <string.h>
    #include <unistd.h>
    static char path[4096]; static const char *one, *two; static volatile int over;
    static void *flip(void *x) { while (!over) { strcpy(path, one); strcpy(path, two); } return x; }
    int main(int argc, char **argv) {
        pthread_t thread; char data[64];
        one = argv[1]; two = argv[2]; strcpy(path, one);
        pthread_create(&thread, 0, flip, 0);
        for (int turn = 0; turn < 2000; turn++) {
            int fd = open(path, O_RDWR | O_CREAT, 0600);
            if (fd < 0) continue;
            ssize_t got = read(fd, data, sizeof data);
            if (got > 4 && !memcmp(data, "key-", 4)) return 9;
            close(fd);
        }
        over = 1; pthread_join(thread, 0);
        return 0;
    }
    """
    (outside / "project/.netsandbox.toml").write_text("[filesystem]\nallow_write = []\n")
    flipper = str(probe("flipper", source))
    harmless, secret = str(outside / "project/xx"), str(outside / "home/.ssh/id")
    learned = netsandbox("learn", "--files", "readable", "--", flipper, harmless, secret, **place)
    assert learned.returncode == 0, learned.stderr
    assert (outside / "home/.ssh/id").read_text() == KEY
    closed = str(outside / "home/.canary")
    assert netsandbox("learn", "--files", "readable", "--", flipper, harmless, closed, **place).returncode == 0
    assert not Path(closed).exists()
