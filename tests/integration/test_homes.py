"""A home that cannot take our files: one sentence, and the way out that it names works as it is pasted."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
    pytest.mark.backend("namespaces", "broker"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount file systems"),
]


class Disk:
    """A home on a disk of its own. What is run sees it; the host does not."""

    def __init__(self, netsandbox: Any) -> None:
        home = netsandbox.home()
        self.top = home.path / "disk"
        self.top.mkdir()
        unset = {"XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None, "HOME": str(self.top)}
        self._environment, self._work, self.identity = home.environment(unset), home.work, home.identity
        words = [*home.identity.command, "run", f"--gateway-port={home.gateway_port}", "--backend", netsandbox.backend]
        self._run, self._ps = shlex.join(words), shlex.join([*home.identity.command, "ps"])

    def try_in(self, *steps: str) -> subprocess.CompletedProcess[str]:
        """Steps of the user: RUN is `netsandbox run` in the project, PS `netsandbox ps`; with a `#`, root's."""
        script = [f"mount -t tmpfs -o size=8m,uid={self.identity.uid},mode=700 none {self.top}"]
        for step in steps:
            words = [*self.identity.prefix, "sh", "-c", step.replace("RUN", self._run).replace("PS", self._ps)]
            script.append(step[1:] if step.startswith("#") else shlex.join(words))
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", "; ".join(script)],
            env=self._environment,
            cwd=self._work,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def disk(netsandbox: Any) -> Disk:
    netsandbox.home().plainly(["git", "init", "-q"])
    return Disk(netsandbox)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    return done.stderr


def advised(line: str) -> str:
    (command,) = re.findall(r"run `(export [^`]+)` first", line)
    return str(command)


@pytest.mark.parametrize("used", ["true", "RUN -- true"], ids=["new", "used"])
def test_a_home_that_became_read_only_has_a_way_out(disk: Disk, used: str) -> None:
    read_only = f"#mount -o remount,ro {disk.top}"
    refused = refusal(disk.try_in(used, read_only, "RUN -- echo ran"))
    assert "Read-only file system" in refused
    way_out = f'{advised(refused)}; RUN -- echo ran; RUN -- echo ran; rm -r "$XDG_STATE_HOME"'
    done = disk.try_in(used, read_only, way_out)
    assert (done.stdout, done.stderr) == ("ran\nran\n", "")


@pytest.mark.parametrize("used", ["true", "RUN -- true"], ids=["new", "used"])
def test_a_full_home_says_so_and_works_again_with_room(disk: Disk, used: str) -> None:
    fill = "head -c 9m /dev/zero 2>/dev/null > ~/filler"
    done = disk.try_in(used, fill, "RUN -- echo early; rm ~/filler; RUN -- echo ran")
    assert done.stdout == "ran\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("netsandbox: cannot ")
    assert line.endswith("No space left on device; free space on its disk")


def test_a_home_that_cannot_be_made_has_a_way_out(disk: Disk) -> None:
    if disk.identity.uid == 0:
        pytest.skip("root makes a missing home")
    nowhere = "export HOME=/var/empty-of-nobody/home"
    refused = refusal(disk.try_in(f"{nowhere}; RUN -- echo ran"))
    done = disk.try_in(f'{nowhere}; {advised(refused)}; RUN -- echo ran; rm -r "$XDG_STATE_HOME"')
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_a_home_of_another_user_has_a_way_out_that_removes_nothing(disk: Disk) -> None:
    if disk.identity.uid == 0:
        pytest.skip("root may write every home")
    theirs = f"#mkdir -p -m 700 {disk.top}/other/.local/share/netsandbox; chmod 700 {disk.top}/other"
    as_theirs = f"export HOME={disk.top}/other"
    refused = refusal(disk.try_in(theirs, f"{as_theirs}; RUN -- echo ran"))
    assert "HOME is another user's" in refused
    done = disk.try_in(theirs, f'{as_theirs}; {advised(refused)}; RUN -- echo ran; rm -r "$HOME"')
    assert (done.stdout, done.stderr) == ("ran\n", "")
    assert "cannot look for sessions" in refusal(disk.try_in(theirs, f"{as_theirs}; PS"))
