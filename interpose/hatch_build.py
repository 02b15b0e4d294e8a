"""Compiles what is native while hatchling builds, each beside where it is used.

The program `netsandbox`, cli/native/launcher.c, which installers put beside the interpreter. The helper,
backends/namespaces/native/*.c. Both are static first, because a session may see a root directory without our C library;
dynamic where no static library is installed. The preload library, interpose/src/*.c. And the module
`netsandbox_interpose._native`, by which Python reads the port map and tries the rewriting of the same sources; its
declarations are cut out of the headers. A machine without a C compiler borrows one from the `ziglang` package.

For Macs, with backends/seatbelt/native/*.c as the helper, all four are made by that package on every system, a Mac too
(`universal_binary` says why). On another system NETSANDBOX_BUILD_FOR=macos asks for it: `make macos-wheel`.

`python interpose/hatch_build.py` builds everything in place, for the system that it runs on.
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

sys.path.append(str(Path(__file__).resolve().parent))  # hatchling loads this file alone, without its neighbours

import macos_library
import universal_binary

LAUNCHER = Path("netsandbox", "cli", "native", "netsandbox")
NATIVE = Path("netsandbox", "backends", "namespaces", "native")
PROGRAM = "netsandbox-init"
SOURCES = Path("interpose", "src")
PACKAGE = Path("interpose", "netsandbox_interpose")
LIBRARY = "libnetsandbox_interpose.so"
MODULE = "_native.abi3.so"
SCRIPTS = "shared_scripts"  # of a wheel: what is installed beside the interpreter
PRODUCTS = (NATIVE / PROGRAM, PACKAGE / LIBRARY, PACKAGE / MODULE)
# For Macs
MAC_NATIVE, MAC_PROGRAM = Path("netsandbox", "backends", "seatbelt", "native"), "netsandbox-apply"
MAC_PYCONFIG = Path("interpose", "macos", "pyconfig.h")
MAC_PRODUCTS = (MAC_NATIVE / MAC_PROGRAM, PACKAGE / macos_library.NAME, PACKAGE / MODULE)
MAC_TAG = "cp311-abi3-macosx_11_0_universal2"
MAC_BUILD = Path("build", "macos")
BUILD_FOR = "NETSANDBOX_BUILD_FOR"
# The headers that Python sees, and the sources that need neither a process of their own nor the real functions.
SHARED_HEADERS = (
    "portmap.h",
    "map.h",
    "rewrite.h",
    "route.h",
    "dns.h",
    "exec_target.h",
    "shell_command.h",
    "env_command.h",
    "injection.h",
    "shell_bridge.h",
)
SHARED_SOURCES = (
    "map.c",
    "sockaddr.c",
    "rewrite.c",
    "route.c",
    "dns.c",
    "exec_target.c",
    "shell_command.c",
    "env_command.c",
    "shell_bridge.c",
)
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
LOADABLE = ["-fPIC", "-fvisibility=hidden", "-shared"]
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


def compile_program(product: Path) -> Path:
    """Builds a program from the sources beside it; a process that runs it meanwhile keeps the old one."""
    sources = sorted(source.name for source in product.parent.glob("*.c"))
    # zig brings C libraries with it, and of those only musl links statically
    static = ["-static"] if compiler() else ["-static", "-target", f"{os.uname().machine}-linux-musl"]
    flags = ["-D_GNU_SOURCE", "-pthread", *HARDEN, *WARN, *sources]
    return _build(f"program {product.name}", product.parent, flags, product, links=(static, []))


def compile_library(sources: Path, folder: Path) -> Path:
    """Builds the preload library: every source, and nothing visible but the hooks."""
    units = sorted(source.name for source in sources.glob("*.c"))
    flags = ["-D_GNU_SOURCE", *HARDEN, *LOADABLE, *WARN, "-Wl,-soname," + LIBRARY]
    # before glibc 2.34 dlsym has a library of its own
    return _build("preload library", sources, [*flags, *units, "-ldl"], folder / LIBRARY)


class MissingHeaders(RuntimeError):
    """The module for Python cannot be built here. Only `--rewrite-engine preload` needs it, and says so without it."""


def compile_module(sources: Path, folder: Path) -> Path:
    """Builds the module for Python, by the stable interface, so that one build serves every later Python."""
    include = _headers()
    with tempfile.TemporaryDirectory() as scratch:
        wrapper = Path(scratch, "_native.c")
        _write_wrapper(sources, wrapper)
        flags = ["-D_GNU_SOURCE", "-DNS_BRIDGE", *HARDEN, *LOADABLE, f"-I{include}", "-I."]
        return _build("cffi module", sources, [*flags, str(wrapper), *SHARED_SOURCES], folder / MODULE)


def compile_mac_program(native: Path, product: Path) -> Path:
    """Builds a program for every Mac."""
    sources = sorted(source.name for source in native.glob("*.c"))
    return universal_binary.build(product, product.name, native, [*WARN, *sources])


def compile_mac_module(sources: Path, pyconfig: Path, product: Path) -> Path:
    """Builds the module for every Mac's Python; its names are looked up where it is loaded. The headers are those of
    the Python that builds, with a Mac's settings: what the stable interface declares is the same on all systems."""
    with tempfile.TemporaryDirectory() as scratch:
        include, wrapper = Path(scratch, "include"), Path(scratch, "_native.c")
        include.mkdir()
        for header in _headers().iterdir():
            (include / header.name).symlink_to(pyconfig if header.name == pyconfig.name else header)
        _write_wrapper(sources, wrapper)
        flags = [*universal_binary.loadable(MODULE), "-undefined", "dynamic_lookup", "-isystem", str(include), "-I."]
        return universal_binary.build(product, MODULE, sources, [*flags, str(wrapper), *SHARED_SOURCES])


def _headers() -> Path:
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        raise MissingHeaders(f"Python's headers are missing ({include / 'Python.h'}); install python3-dev")
    return include


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
    """Compiles under another name first, so that its users keep the old product; tries *links* in turn."""
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


def for_macs() -> bool:
    wanted = os.environ.get(BUILD_FOR, "")
    if wanted not in ("", "macos"):
        raise RuntimeError(f"{BUILD_FOR}={wanted} is not known; set it to macos, or to nothing for this system")
    return bool(wanted) or sys.platform == "darwin"


def build(root: Path) -> None:
    """In place, for this system."""
    if sys.platform == "darwin":
        build_for_macs(root, root)
        return
    compile_program(root / LAUNCHER)
    compile_program(root / NATIVE / PROGRAM)
    compile_library(root / SOURCES, root / PACKAGE)
    try:
        compile_module(root / SOURCES, root / PACKAGE)
    except MissingHeaders as error:
        print(f"netsandbox: {error}; until then --rewrite-engine preload is not available", file=sys.stderr)


def build_for_macs(root: Path, place: Path) -> None:
    """Below *place* as they lie in the tree; none may be missing, since a Mac has no session without."""
    launcher, helper, library, module = (place / product for product in (LAUNCHER, *MAC_PRODUCTS))
    for folder in {launcher.parent, helper.parent, library.parent}:
        folder.mkdir(parents=True, exist_ok=True)
    compile_mac_program(root / LAUNCHER.parent, launcher)
    compile_mac_program(root / MAC_NATIVE, helper)
    macos_library.build(library, root / SOURCES)
    compile_mac_module(root / SOURCES, root / MAC_PYCONFIG, module)
    if sys.platform == "darwin":
        for product in (launcher, helper, library, module):
            universal_binary.sign(product)


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # generic only in newer hatchling
    """Wheels carry what was compiled and the platform's tag; editable installs build in place; sdists carry sources."""

    def dependencies(self) -> list[str]:
        return ["ziglang"] if self._wanted() and (for_macs() or compiler() is None) else []

    def clean(self, versions: list[str]) -> None:
        products = (LAUNCHER, *PRODUCTS, *MAC_PRODUCTS)
        for product in (*products, *(MAC_BUILD / product for product in products)):
            (Path(self.root) / product).unlink(missing_ok=True)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._wanted():
            return
        root = Path(self.root)
        build_data["pure_python"] = False
        if for_macs() and version != "editable":
            # Beside the tree, where a module for Linux may lie under the same name.
            build_for_macs(root, root / MAC_BUILD)
            build_data["tag"] = MAC_TAG
            build_data[SCRIPTS] = {str(root / MAC_BUILD / LAUNCHER): LAUNCHER.name}
            build_data["force_include"].update({str(root / MAC_BUILD / one): _packed(one) for one in MAC_PRODUCTS})
            return
        build(root)
        build_data[SCRIPTS] = {str(root / LAUNCHER): LAUNCHER.name}
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["artifacts"].extend(str(product) for product in PRODUCTS)

    def _wanted(self) -> bool:
        return self.target_name == "wheel"


def _packed(product: Path) -> str:
    """Where it lies in a wheel, whose packages are side by side."""
    return str(Path(*product.parts[-2:]) if product.parent == PACKAGE else product)


if __name__ == "__main__":
    build(Path(__file__).resolve().parents[1])
