#!/usr/bin/env python3
"""What mmdebstrap runs on the folder that it unpacked: hook.py kernel|disk OUT FOLDER

`kernel` keeps the kernel and its modules in OUT. `disk` adds the modules of all kernels in OUT/.. to the programs, and
makes the root disk there and an initramfs for each kernel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from initramfs import initramfs
from recipe import ACCOUNTS, make_disk

HERE = Path(__file__).resolve().parent
LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt")
MOUNT_POINTS = ("dev", "home", "opt", "proc", "root", "run", "sys", "tmp", "usr/lib/modules")


def keep_kernel(out: Path, folder: Path) -> None:
    """OUT/vmlinuz, and OUT/modules/VERSION."""
    (kernel,) = (folder / "boot").glob("vmlinuz-*")
    version = kernel.name.removeprefix("vmlinuz-")
    out.mkdir(parents=True)
    shutil.copy(kernel, out / "vmlinuz")
    (modules,) = {path.resolve() for path in folder.glob(f"**/lib/modules/{version}")}
    shutil.copytree(modules, out / "modules" / version, symlinks=True, ignore=shutil.ignore_patterns("build", "source"))


def make_root_disk(out: Path, folder: Path) -> None:
    for name in LEFT_OUT:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in MOUNT_POINTS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, text in ACCOUNTS.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text, "utf-8")
    busybox, init = (folder / "usr/bin/busybox").read_bytes(), (HERE / "guest" / "init").read_bytes()
    for kernel in sorted(path.parent for path in out.glob("*/vmlinuz")):
        (modules,) = (kernel / "modules").iterdir()
        own = folder / "usr/lib/modules" / modules.name
        shutil.move(modules, own)
        subprocess.run(["depmod", "-b", folder, modules.name], check=True)
        (kernel / "initramfs").write_bytes(initramfs(busybox, init, own))
    subprocess.run(make_disk(str(folder), str(out / "disk"), root=os.geteuid() == 0), check=True)


if __name__ == "__main__":
    {"kernel": keep_kernel, "disk": make_root_disk}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
