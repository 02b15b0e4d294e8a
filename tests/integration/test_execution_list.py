"""`--allow-execute`: only listed programs are executed. Each way around that is closed has a twin without the list; the
ways that stay open are here too, as docs/processes.md says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

CANARY = "RAN-ANYWAY"
SH = "/bin/sh"
MEMORY = """
import os, sys
fd = os.memfd_create("x", int(sys.argv[1]))
os.write(fd, open("/bin/echo", "rb").read())
os.execve(fd if sys.argv[2] == "fd" else f"/proc/self/fd/{fd}", ["echo", "RAN-ANYWAY"], {})
"""


def put(netsandbox: Any, name: str, text: str) -> Path:
    path: Path = netsandbox.home().work / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def denied(run: Any) -> set[tuple[str, str]]:
    return {(record["reason"], record["path"]) for record in run.events("exec", verdict="deny")}


@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_only_listed_programs_run_and_others_are_named(netsandbox: Any, mode: str) -> None:
    script = f"/usr/bin/id -u; /usr/bin/printf {CANARY}; true"
    run = netsandbox("run", "--files", mode, "--allow-execute", "/usr/bin/id", "--", SH, "-c", script)
    assert run.stdout.strip() == str(netsandbox.identity.uid)
    assert denied(run) == {("not-listed", "/usr/bin/printf")}
    assert "denied executing /usr/bin/printf; allow it with --allow-execute /usr/bin/printf\n" in run.stderr
    both = ("--allow-execute", "/usr/bin/id", "--allow-execute", "/usr/bin/print?")
    twin = netsandbox("run", "--files", mode, *both, "--", SH, "-c", script)
    assert CANARY in twin.stdout
    assert denied(twin) == set()


def test_a_folder_lists_all_below_and_a_file_of_the_configuration_too(netsandbox: Any) -> None:
    put(netsandbox, "tools/deep", f"#!{SH}\necho {CANARY}\n")
    put(netsandbox, "other", f"#!{SH}\necho {CANARY}\n")
    config = netsandbox.home().work / "rules.toml"
    config.write_text('[filesystem]\nexecute = "listed"\nallow_execute = ["tools"]\n')
    run = netsandbox("run", "--config", "rules.toml", "--", SH, "-c", "tools/deep; ./other")
    assert run.stdout == f"{CANARY}\n"
    assert run.returncode == 126
    config.write_text('[filesystem]\nallow_execute = ["tools"]\n')
    twin = netsandbox("run", "--config", "rules.toml", "--", SH, "-c", "tools/deep; ./other")
    assert twin.stdout == f"{CANARY}\n{CANARY}\n"


ROUNDABOUT = {
    "a copy": "/bin/cp /bin/echo mine && ./mine RAN-ANYWAY",
    "a copy under a listed name": "/bin/mkdir usr && /bin/cp /bin/echo usr/id && usr/id RAN-ANYWAY",
    "a link": "/bin/ln -s /bin/echo mine && ./mine RAN-ANYWAY",
    "a script": "printf '#!/bin/echo RAN-ANYWAY\\n' > mine; /bin/chmod +x mine; ./mine",
    "its own descriptor": "exec 3< /bin/echo; /proc/self/fd/3 RAN-ANYWAY",
    "env": "/usr/bin/env echo RAN-ANYWAY",
}


@pytest.mark.parametrize("way", ROUNDABOUT)
def test_ways_around_the_list(netsandbox: Any, way: str) -> None:
    listed = ("/bin/cp", "/bin/mkdir", "/bin/ln", "/bin/chmod", "/usr/bin/env", "/usr/bin/id")
    options = [word for path in listed for word in ("--allow-execute", path)]
    run = netsandbox("run", *options, "--", SH, "-c", ROUNDABOUT[way])
    assert CANARY not in run.stdout
    assert run.returncode in (126, 127)
    for name in ("mine", "usr"):
        path = netsandbox.home().work / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    twin = netsandbox("run", "--", SH, "-c", ROUNDABOUT[way])
    assert CANARY in twin.stdout


@pytest.mark.parametrize("how", ["fd", "path"])
def test_a_program_in_memory(netsandbox: Any, how: str) -> None:
    python = netsandbox.identity.python
    run = netsandbox("run", "--allow-execute", "/usr/bin/id", "--", python, "-c", MEMORY, "0", how)
    assert CANARY not in run.stdout
    assert "Function not implemented" in run.stderr
    sealed = netsandbox("run", "--allow-execute", "/usr/bin/id", "--", python, "-c", MEMORY, "8", how)
    assert CANARY not in sealed.stdout
    assert netsandbox("run", "--", python, "-c", MEMORY, "0", how).stdout == f"{CANARY}\n"


def test_what_the_list_does_not_hold(netsandbox: Any) -> None:
    """A listed interpreter runs what it reads, and the loader runs programs: no boundary for code that already runs."""
    put(netsandbox, "script", f"echo {CANARY}\n")
    run = netsandbox("run", "--allow-execute", "/usr/bin/id", "--", SH, "script")
    assert run.stdout == f"{CANARY}\n"
    loaders = "/lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1"
    script = f"for each in {loaders}; do [ -e $each ] && $each /bin/echo X; done; true"
    run = netsandbox("run", "--allow-execute", "/usr/bin/id", "--", SH, "-c", script)
    assert run.stdout == "X\n"


def test_files_move_from_folder_to_folder_as_before(netsandbox: Any) -> None:
    script = "mkdir a b; echo x > a/c; mv a/c b/c; ln b/c a/d; cat a/d"
    run = netsandbox("run", "--allow-execute", "/usr/bin", "--", SH, "-c", script)
    assert (run.stdout, run.stderr) == ("x\n", "")
    assert (netsandbox.home().work / "a/d").stat().st_nlink == 2
