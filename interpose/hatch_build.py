"""Compiles the native helper while hatchling builds: netsandbox/native/*.c becomes netsandbox/native/netsandbox-init.

Static first, because a session may see a root directory without our C library; dynamic where no static library is
installed. A machine without a C compiler borrows one from the `ziglang` package for the build. A Mac needs no helper.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("netsandbox", "native")
PROGRAM = "netsandbox-init"
ZIG = [sys.executable, "-m", "ziglang", "cc"]
# Ubuntu's compiler defines _FORTIFY_SOURCE itself; without the -U the two definitions quarrel.
HARDEN = [
    "-std=gnu11",
    "-O2",
    "-fstack-protector-strong",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=2",
    "-Wl,-z,relro,-z,now",
]
WARN = [
    "-Wall",
    "-Wextra",
    "-Wundef",
    "-Wcast-align",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-Werror=return-type",
    "-Werror=format=2",
    "-Werror=format-security",
    "-Werror=missing-prototypes",
    "-Werror=missing-declarations",
    "-Werror=strict-prototypes",
    "-Werror=pointer-arith",
    "-Werror=init-self",
    "-Werror=array-bounds",
    "-Werror=shadow",
    "-Werror=vla",
    "-Werror=uninitialized",
    "-Werror=empty-body",
    "-Werror=unused-result",
    "-Werror=switch",
]


def compiler() -> list[str] | None:
    """The machine's own compiler: $CC, cc, gcc or clang. A $CC that is set but missing is an error, not a hint."""
    wanted = shlex.split(os.environ.get("CC", ""))
    if wanted:
        return wanted
    return next(([path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def compile_helper(native: Path) -> Path:
    """Builds the helper beside its sources, under another name first, so that a running session keeps its own."""
    sources = sorted(source.name for source in native.glob("*.c"))
    unfinished = native / f"{PROGRAM}.{os.getpid()}"
    own = compiler()
    command = [*(own or ZIG), *HARDEN, *WARN, *sources, "-o", unfinished.name]
    # zig brings C libraries with it, and of those only musl links statically
    static = ["-static"] if own else ["-static", "-target", f"{os.uname().machine}-linux-musl"]
    try:
        for link in (static, []):
            done = _attempt([*command, *link], native)
            if done.returncode == 0:
                break
        else:
            raise RuntimeError(f"the native helper does not compile:\n{done.stderr}")
        unfinished.chmod(0o755)
        unfinished.replace(native / PROGRAM)
    finally:
        unfinished.unlink(missing_ok=True)
    return native / PROGRAM


def _attempt(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"the C compiler cannot be run ({error}); install gcc and libc6-dev, or set CC") from error


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # generic only in newer hatchling
    """Wheels carry the helper and the platform's tag; editable installs build it in place; sdists carry its sources."""

    def dependencies(self) -> list[str]:
        return ["ziglang"] if self._wanted() and compiler() is None else []

    def clean(self, versions: list[str]) -> None:
        (Path(self.root) / NATIVE / PROGRAM).unlink(missing_ok=True)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._wanted():
            return
        compile_helper(Path(self.root) / NATIVE)
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"

    def _wanted(self) -> bool:
        return sys.platform == "linux" and self.target_name == "wheel"
