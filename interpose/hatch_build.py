"""Compiles what is native while hatchling builds, each beside where it is used.

The helper, netsandbox/native/*.c: static first, because a session may see a root directory without our C library;
dynamic where no static library is installed; on a Mac netsandbox/native_macos/*.c in its place. The preload library,
interpose/src/*.c. And the module `netsandbox_interpose._native`, by which Python reads the port map and tries the
rewriting of the same sources; its declarations are cut out of the headers. A machine without a C compiler borrows one
from the `ziglang` package.

`python interpose/hatch_build.py` builds everything in place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("netsandbox", "native")
PROGRAM = "netsandbox-init"
SOURCES = Path("interpose", "src")
MAC_NATIVE, MAC_PROGRAM = Path("netsandbox", "native_macos"), "netsandbox-apply"
PACKAGE = Path("interpose", "netsandbox_interpose")
MAC = sys.platform == "darwin"
LIBRARY = "libnetsandbox_interpose.dylib" if MAC else "libnetsandbox_interpose.so"
MODULE = "_native.abi3.so"
# The headers that Python sees, and the sources that need neither a process of their own nor the real functions.
SHARED_HEADERS = ("portmap.h", "map.h", "rewrite.h", "target.h")
SHARED_SOURCES = ("map.c", "rewrite.c", "target.c")
ZIG = [sys.executable, "-m", "ziglang", "cc"]
# Ubuntu's compiler defines _FORTIFY_SOURCE itself; without the -U the two definitions quarrel.
HARDEN = [
    "-std=gnu11",
    "-O2",
    "-fstack-protector-strong",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=2",
    *([] if MAC else ["-Wl,-z,relro,-z,now"]),
]
LOADABLE = ["-fPIC", "-fvisibility=hidden", "-dynamiclib" if MAC else "-shared"]
RUN_TIME_NAMES = ["-undefined", "dynamic_lookup"] if MAC else []
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
    """Builds the helper; a session that runs meanwhile keeps its own."""
    sources = sorted(source.name for source in native.glob("*.c"))
    # zig brings C libraries with it, and of those only musl links statically
    static = ["-static"] if compiler() else ["-static", "-target", f"{os.uname().machine}-linux-musl"]
    return _build("native helper", native, [*HARDEN, *WARN, *sources], native / PROGRAM, links=(static, []))


def compile_mac_helper(native: Path) -> Path:
    """Builds the helper for macOS. The linker signs it ad hoc; a signature made elsewhere is not taken everywhere."""
    sources = sorted(source.name for source in native.glob("*.c"))
    return _build("helper for macOS", native, [*HARDEN, *WARN, *sources], native / MAC_PROGRAM)


def compile_library(sources: Path, folder: Path) -> Path:
    """Builds the preload library: every source, and nothing visible but the hooks."""
    name = ["-install_name", f"@rpath/{LIBRARY}"] if MAC else ["-Wl,-soname," + LIBRARY]
    units = sorted(source.name for source in sources.glob("*.c"))
    flags = ["-D_GNU_SOURCE", *HARDEN, *LOADABLE, *WARN, *name]
    # before glibc 2.34 dlsym has a library of its own
    return _build("preload library", sources, [*flags, *units, *([] if MAC else ["-ldl"])], folder / LIBRARY)


class MissingHeaders(RuntimeError):
    """The module for Python cannot be built here. Only `--rewrite-engine preload` needs it, and says so without it."""


def compile_module(sources: Path, folder: Path) -> Path:
    """Builds the module for Python, by the stable interface, so that one build serves every later Python."""
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        raise MissingHeaders(f"Python's headers are missing ({include / 'Python.h'}); install python3-dev")
    with tempfile.TemporaryDirectory() as scratch:
        wrapper = Path(scratch, "_native.c")
        _write_wrapper(sources, wrapper)
        flags = ["-D_GNU_SOURCE", *HARDEN, *LOADABLE, *RUN_TIME_NAMES, f"-I{include}", "-I."]
        return _build("cffi module", sources, [*flags, str(wrapper), *SHARED_SOURCES], folder / MODULE)


def declarations(header: str) -> str:
    """What stands between the two marks of a header, for cffi."""
    _, _, rest = header.partition("/* cdef */\n")
    text, mark, _ = rest.partition("/* end of cdef */")
    if not mark:
        raise RuntimeError("a header that Python reads has lost its cdef marks")
    return text


def _write_wrapper(sources: Path, wrapper: Path) -> None:
    from cffi import FFI

    ffi = FFI()
    for header in SHARED_HEADERS:
        ffi.cdef(declarations((sources / header).read_text()))
    ffi.set_source("netsandbox_interpose._native", "".join(f'#include "{header}"\n' for header in SHARED_HEADERS))
    ffi.emit_c_code(str(wrapper))


def _build(
    what: str, folder: Path, arguments: list[str], product: Path, links: Sequence[Sequence[str]] = ((),)
) -> Path:
    """Compiles under another name first, so that whoever uses the old product keeps it; tries *links* in turn."""
    unfinished = product.with_name(f"{product.name}.{os.getpid()}")
    command = [*(compiler() or ZIG), *arguments, "-o", str(unfinished.resolve())]
    try:
        for link in links:
            done = _attempt([*command, *link], folder)
            if done.returncode == 0:
                break
        else:
            raise RuntimeError(f"the {what} does not compile:\n{done.stderr}")
        unfinished.chmod(0o755)
        unfinished.replace(product)
    finally:
        unfinished.unlink(missing_ok=True)
    return product


def _attempt(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"the C compiler cannot be run ({error}); install gcc and libc6-dev, or set CC") from error


def build(root: Path) -> None:
    if MAC:
        compile_mac_helper(root / MAC_NATIVE)
    else:
        compile_helper(root / NATIVE)
    compile_library(root / SOURCES, root / PACKAGE)
    try:
        compile_module(root / SOURCES, root / PACKAGE)
    except MissingHeaders as error:
        print(f"netsandbox: {error}; until then --rewrite-engine preload is not available", file=sys.stderr)


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # generic only in newer hatchling
    """Wheels carry what was compiled and the platform's tag; editable installs build in place; sdists carry sources."""

    def dependencies(self) -> list[str]:
        return ["ziglang"] if self._wanted() and compiler() is None else []

    def clean(self, versions: list[str]) -> None:
        for product in (NATIVE / PROGRAM, MAC_NATIVE / MAC_PROGRAM, PACKAGE / LIBRARY, PACKAGE / MODULE):
            (Path(self.root) / product).unlink(missing_ok=True)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._wanted():
            return
        build(Path(self.root))
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"

    def _wanted(self) -> bool:
        return self.target_name == "wheel"


if __name__ == "__main__":
    build(Path(__file__).resolve().parents[1])
