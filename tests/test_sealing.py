"""Nothing that the command wrote is ever imported by whoever watches over it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from netsandbox.sealing import DOORS, NEEDED

ROOT = Path(__file__).parent.parent
PATHS = [str(ROOT), *(str(ROOT / part) for part in ("proxy", "dns", "portmap", "interpose"))]
PLANTED = (*NEEDED, "netsandbox_proxy", "netsandbox_dns", "dnslib", "socket", "encodings", "re", "ctypes", "binascii")


def plant(folder: Path, marker: Path) -> None:
    for name in PLANTED:
        folder.joinpath(f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name + ' '!r})\n")


def test_a_sealed_process_imports_our_packages_and_nothing_else(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    plant(tmp_path, marker)
    script = f"""
        import sys
        sys.path[:0] = {PATHS!r}
        from netsandbox.sealing import DOORS, seal
        from netsandbox.linux.view import packages
        seal(packages())
        sys.path.insert(0, {str(tmp_path)!r})
        for name in DOORS: __import__(name)
        import netsandbox.doors, netsandbox_proxy.door
        print(netsandbox_proxy.door.__file__.startswith("/proc/self/fd/"))
        for name in ("re", "socket", "ctypes", "dnslib", "evil"):
            try: __import__(name)
            except ImportError: print(name, "refused")
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n") == [
        "True",
        *(f"{name} refused" for name in ("re", "socket", "ctypes", "dnslib", "evil")),
        "",
    ], done.stderr
    assert not marker.exists()


def test_the_list_of_doors_is_whole() -> None:
    """Loading the list leaves nothing of ours for later, but what a policy asks for and what speaks at the end."""
    script = f"""
        import sys
        sys.path[:0] = {PATHS!r}
        from netsandbox.sealing import load_everything
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
        if path.stem not in ("__init__", "forwarding")
    }
    assert ours <= loaded, sorted(ours - loaded)


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
