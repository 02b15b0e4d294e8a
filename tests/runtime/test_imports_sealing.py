"""Nothing that the command wrote is ever imported by whoever watches over it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.backends.namespaces.backend import NamespacesBackend
from netsandbox.runtime.imports import AT_END, DOORS, NEEDED, UPPER
from tests.rig.account import PACKAGES
from tests.rig.workshop import ROOT

PATHS = [str(ROOT), *(str(ROOT / part) for part in ("proxy", "dns", "portmap", "interpose"))]
PLANTED = (*NEEDED, "netsandbox_proxy", "netsandbox_dns", "dnslib", "socket", "encodings", "re", "ctypes", "binascii")


def plant(folder: Path, marker: Path) -> None:
    for name in PLANTED:
        folder.joinpath(f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name + ' '!r})\n")


def test_a_sealed_process_imports_our_packages_and_nothing_else(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    refused = ("re", "socket", "ctypes", "dnslib", "evil", "netsandbox.cli.ps", "netsandbox.doctor")
    plant(tmp_path, marker)
    script = f"""
        import sys
        sys.path[:0] = {PATHS!r}
        from netsandbox.runtime.imports import DOORS, seal
        seal()
        sys.path.insert(0, {str(tmp_path)!r})
        for name in DOORS: __import__(name)
        import netsandbox.session.doors, netsandbox_proxy.door
        for name in {refused!r}:
            try: __import__(name)
            except ImportError: print(name, "refused")
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [f"{name} refused" for name in refused], done.stderr
    assert not marker.exists()


INSPECTING = ("inspect_stage", "plain_request")  # sessions that inspect load these


def test_the_list_of_doors_is_whole() -> None:
    """Loading the list leaves nothing of ours for later, but what a policy asks for and what speaks at the end."""
    script = f"""
        import sys
        sys.path[:0] = {PATHS!r}
        from netsandbox.runtime.imports import load_everything
        load_everything()
        print(*sorted(name for name in sys.modules if name.startswith("netsandbox")))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert set(DOORS) <= loaded
    ours = {
        f"netsandbox_{part}.{path.stem}"
        for part in ("proxy", "dns")
        for path in (ROOT / part / f"netsandbox_{part}").glob("*.py")
        if path.stem not in ("__init__", "reply_rebuild", *INSPECTING)
    }
    assert ours <= loaded, sorted(ours - loaded)


def test_nothing_of_the_upper_layers_is_needed_after_the_start_but_what_is_listed() -> None:
    """The bundle keeps no others in memory."""
    listed = (*DOORS, *NamespacesBackend.needed_modules, *AT_END)
    script = f"""
        import sys
        sys.path[:0] = {PATHS!r}
        for name in {listed!r}: __import__(name)
        print(*(name for name in sys.modules if name.startswith({UPPER!r})))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(name for name in listed if name.startswith(UPPER))


@pytest.mark.ordinary_user
def test_modules_planted_by_the_command_never_run_outside(netsandbox: Any) -> None:
    """The working directory, the folders of a module path: the doors are loaded while the files are there already."""
    work = netsandbox.home().work
    marker = work / "ran-outside"
    script = f"""
        import os, socket, time
        for name in {PLANTED!r}:
            with open(name + ".py", "w") as file:
                file.write("open({str(marker)!r}, 'a').write(__name__)")
        time.sleep(0.05)
        for address in ("192.0.2.1", "2001:db8::1"):
            try: socket.create_connection((address, 80), 5).recv(1)
            except OSError: pass
        try: socket.getaddrinfo("denied.test", 80)
        except OSError: pass
    """
    run = netsandbox("run", "--", netsandbox.python, "-I", "-c", textwrap.dedent(script), cwd=work)
    assert run.returncode == 0, run.stderr
    assert (work / "resource.py").exists()
    assert len(run.events("egress", verdict="deny")) == 2  # the doors were opened, and did their work
    assert run.events("dns", verdict="deny", host="denied.test")
    assert not run.events("policy")
    assert not marker.exists()


BUSY = """
import os, socket, time
os.mkdir(os.environ["OUTSIDE"])
for attempt in (lambda: socket.create_server(("127.0.0.1", 0)), lambda: socket.getaddrinfo("x.example", 80),
                lambda: socket.create_connection(("x.example", 80), 9).recv(1),
                lambda: socket.create_connection(("127.0.0.1", 5999), 1), lambda: socket.socket(socket.AF_PACKET),
                lambda: socket.socket(socket.AF_UNIX).connect(os.environ["CANARY"])):
    try: attempt()
    except OSError: pass
time.sleep(0.5)
"""


@pytest.mark.usefixtures("private_home")
@pytest.mark.parametrize(
    ("localhost", "policy", "more"),
    [
        ({}, {}, {}),
        ({}, {}, {"learn": True}),
        ({"strategy": "fail"}, {}, {}),
        ({"strategy": "rewire-port", "engine": "preload"}, {}, {}),
        ({"strategy": "rewire-device", "engine": "preload"}, {}, {}),
        ({"connect_host": (HostPort(5999),)}, {}, {}),
        ({"connect_host": (HostPort(5999, session="db"),)}, {}, {}),
        ({}, {"allow_unix_sockets": ("/run/canary.sock",)}, {}),
        ({}, {"allow_domains": ("allowed.example",), "allow_query_types": ("TXT",)}, {}),
        ({}, {"mode": "filtered"}, {"ask": 1}),
    ],
    ids=str,
)
def test_once_the_command_runs_nothing_of_ours_is_imported(
    workshop: Path, tmp_path: Path, localhost: dict[str, Any], policy: dict[str, Any], more: dict[str, Any]
) -> None:
    """Without a bundle all is loaded first: what came late could have been written by the command."""
    script = f"""
        import os, sys
        sys.path[:0] = {PATHS!r}
        os.environ.update(XDG_STATE_HOME={str(tmp_path)!r}, CANARY="/run/canary.sock")
        os.environ["OUTSIDE"] = {str(tmp_path / "made")!r}
        from netsandbox import HostPort, LocalhostSettings, Policy, RunSettings
        from tests.rig.in_process import run_here
        from netsandbox.backends.namespaces import launch
        go = launch.Helper.go
        def watched(self):
            global before
            before = set(sys.modules)
            go(self)
        launch.Helper.go = watched
        from netsandbox.policy.file_rules import FileRules
        from netsandbox.policy.path_folding import EntryLimits
        more = {more!r}
        if more.pop("learn", False):
            more = dict(files=FileRules(mode="open"), learn_files=EntryLimits("/home"))
        settings = RunSettings(localhost=LocalhostSettings(**{localhost!r}), **more)
        run_here(Policy(**{policy!r}), [sys.executable, "-c", {BUSY!r}], settings)
        print(sorted(set(sys.modules) - before))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


REWRITE = """
import os, pathlib, socket, sys, time
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    try:
        with open(path, "a") as file:  # the same inode, so that it counts under all its names
            file.write("\\nopen(%r, 'a').write(__name__ + ' ')\\n" % sys.argv[2])
    except OSError as error:
        print(error.strerror)
for attempt in (lambda: socket.create_server(("127.0.0.1", 0)), lambda: socket.getaddrinfo("denied.test", 80),
                lambda: socket.create_connection(("192.0.2.1", 80), 5).recv(1)):
    try: attempt()
    except OSError: pass
time.sleep(0.3)
"""


@pytest.mark.open_files
@pytest.mark.usefixtures("user_namespaces")
@pytest.mark.parametrize("starts", [1, 2], ids=["without-a-bundle", "from-a-bundle"])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to], ids=["symbolic", "hard"])
def test_our_files_may_be_links_to_files_that_the_command_can_write(
    netsandbox: Any, short_tmp: Path, link: Any, starts: int
) -> None:
    """Some installers link every file into a store of the user's. Where links lead is protected too; other names of a
    file are not known, so that nothing is imported once the command runs."""
    site, store, marker = short_tmp / "site", short_tmp / "store", short_tmp / "ran-outside"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, store / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in filter(Path.is_file, sorted(store.rglob("*"))):
        linked = site / file.relative_to(store)
        linked.parent.mkdir(parents=True, exist_ok=True)
        link(linked, file)
    environment = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": None}
    for _ in range(starts - 1):
        assert netsandbox("run", "--", "true", env=environment).returncode == 0
    command = [netsandbox.python, "-I", "-c", REWRITE, str(store), str(marker)]
    run = netsandbox("run", "--", *command, env=environment)
    assert run.returncode == 0, run.stderr
    written = "ran-outside" in (store / "netsandbox" / "session" / "doors.py").read_text()
    assert written is (link is Path.hardlink_to)
    assert written is not ("Read-only file system" in run.stdout)
    assert run.events("dns", verdict="deny", host="denied.test")  # the doors were opened, and did their work
    assert len(run.events("egress", verdict="deny")) == 1
    assert not run.events("policy")
    assert "denied.test" in run.stderr
    assert not marker.exists(), marker.read_text()
