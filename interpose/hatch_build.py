"""Compiles what is native while hatchling builds, each beside where it is used.

The program `netsandbox`, cli/native/launcher.c, which installers put beside the interpreter. The helpers of the Linux
backends, each of its own backends/*/native/*.c and of the shared units in backends/linux/native. All are static first,
because a session may see a root directory without our C library, and loaded at another address each time; dynamic
where no static library is installed. The preload library, interpose/src/*.c. And the module
`netsandbox_interpose._native`, by which Python reads the port map and tries the rewriting of the same sources; its
declarations are cut out of the headers. A machine without a C compiler borrows one from the `ziglang` package.

The wheels of a release are built by that package on any system, so that their users need no compiler: `make release`.
NETSANDBOX_BUILD_FOR names the platform of one, as in its tag (`RELEASES`), or `macos`. In those for Linux all programs
are static, whatever the C library; the library and the module ask for nothing newer than the tag allows. For Macs, with
backends/seatbelt/native/*.c as the helper, all four are made by zig on a Mac too (`universal_binary` says why).

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
BACKENDS = Path("netsandbox", "backends")
SHARED = BACKENDS / "linux" / "native"  # what the helpers of both Linux backends are made of
HELPERS = (BACKENDS / "namespaces" / "native" / "netsandbox-init", BACKENDS / "broker" / "native" / "netsandbox-broker")
SOURCES = Path("interpose", "src")
PACKAGE = Path("interpose", "netsandbox_interpose")
LIBRARY = "libnetsandbox_interpose.so"
MODULE = "_native.abi3.so"
MANUAL = Path("docs", "netsandbox.1")
SCRIPTS = "shared_scripts"  # of a wheel: what is installed beside the interpreter
PRODUCTS = (*HELPERS, PACKAGE / LIBRARY, PACKAGE / MODULE)
# For Macs
MAC_NATIVE, MAC_PROGRAM = Path("netsandbox", "backends", "seatbelt", "native"), "netsandbox-apply"
MAC_PRODUCTS = (MAC_NATIVE / MAC_PROGRAM, PACKAGE / macos_library.NAME, PACKAGE / MODULE)
MAC_PLATFORM = "macosx_11_0_universal2"
BUILD_FOR = "NETSANDBOX_BUILD_FOR"
MACOS = "macos"
# For Linux: the platform of a wheel's tag, and zig's name for it
RELEASES = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
}
PYCONFIG = Path("interpose", "cross", "pyconfig.h")
TAG = "cp311-abi3-{}"
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
GNU = "-D_GNU_SOURCE="  # empty, as the sources define it
RELEASE = ["-g0", "-s"]  # no folder of the machine that builds
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


def compile_program(sources: Path, product: Path, target: str = "", shared: Path | None = None) -> Path:
    """Builds a program of *sources* and, for helpers, the *shared* ones; a process that runs it meanwhile keeps the old
    one. *target*: see RELEASES."""
    units = sorted(source.name for source in sources.glob("*.c"))
    if shared is not None:
        units += ["-I", str(shared.resolve()), *sorted(str(source.resolve()) for source in shared.glob("*.c"))]
    links: tuple[list[str], ...] = (["-fPIE", "-static-pie"], ["-static"], [])
    if target or not compiler():  # zig brings C libraries with it, and of those only musl links statically
        target = f"{(target or os.uname().machine).partition('-')[0]}-linux-musl"
        links = (["-fPIE", "-static", "-pie"],)
    return _build(f"program {product.name}", sources, [GNU, "-pthread", *HARDEN, *WARN, *units], product, links, target)


def compile_library(sources: Path, folder: Path, target: str = "") -> Path:
    """Builds the preload library: every source, and nothing visible but the hooks."""
    units = sorted(source.name for source in sources.glob("*.c"))
    flags = [GNU, *HARDEN, *LOADABLE, *WARN, "-Wl,-soname," + LIBRARY]
    # before glibc 2.34 dlsym has a library of its own
    return _build("preload library", sources, [*flags, *units, "-ldl"], folder / LIBRARY, target=target)


class MissingHeaders(RuntimeError):
    """The module for Python cannot be built here. Only `--rewrite-engine preload` needs it, and says so without it."""


def compile_module(sources: Path, folder: Path, target: str = "") -> Path:
    """Builds the module for Python, by the stable interface, so that one build serves every later Python."""
    with tempfile.TemporaryDirectory() as scratch:
        include = _cross_headers(sources, Path(scratch)) if target else _headers()
        wrapper = Path(scratch, "_native.c")
        _write_wrapper(sources, wrapper)
        flags = [GNU, "-DNS_BRIDGE", *HARDEN, *LOADABLE, "-isystem", str(include), "-I."]
        return _build("cffi module", sources, [*flags, str(wrapper), *SHARED_SOURCES], folder / MODULE, target=target)


def compile_mac_program(native: Path, product: Path) -> Path:
    """Builds a program for every Mac."""
    sources = sorted(source.name for source in native.glob("*.c"))
    return universal_binary.build(product, product.name, native, [*WARN, *sources])


def compile_mac_module(sources: Path, product: Path) -> Path:
    """Builds the module for every Mac's Python; its names are looked up where it is loaded."""
    with tempfile.TemporaryDirectory() as scratch:
        include, wrapper = _cross_headers(sources, Path(scratch)), Path(scratch, "_native.c")
        _write_wrapper(sources, wrapper)
        flags = [*universal_binary.loadable(MODULE), "-undefined", "dynamic_lookup", "-isystem", str(include), "-I."]
        return universal_binary.build(product, MODULE, sources, [*flags, str(wrapper), *SHARED_SOURCES])


def _cross_headers(sources: Path, scratch: Path) -> Path:
    """The headers of the Python that builds, with the settings of another system: what the stable interface declares is
    the same on all."""
    include = scratch / "include"
    include.mkdir()
    own = sources.parents[1] / PYCONFIG
    for header in _headers().iterdir():
        (include / header.name).symlink_to(own if header.name == own.name else header)
    return include


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
    what: str,
    folder: Path,
    arguments: list[str],
    product: Path,
    links: Sequence[Sequence[str]] = ((),),
    target: str = "",
) -> Path:
    """Compiles under another name first, so that its users keep the old product; tries *links* in turn."""
    unfinished = product.with_name(f"{product.name}.{os.getpid()}")
    chosen = [*ZIG, "-target", target, *RELEASE] if target else compiler() or ZIG
    command = [*chosen, *arguments, "-o", str(unfinished.resolve())]
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


def platform_wanted() -> str:
    """Of RELEASES, or MACOS; empty for the system that builds."""
    wanted = os.environ.get(BUILD_FOR, "")
    if wanted not in ("", MACOS, *RELEASES):
        known = ", ".join((MACOS, *RELEASES))
        raise RuntimeError(f"{BUILD_FOR}={wanted} is not known; set it to one of {known}, or unset it")
    return MACOS if not wanted and sys.platform == "darwin" else wanted


def build(root: Path) -> None:
    """In place, for this system."""
    if sys.platform == "darwin":
        build_for_macs(root, root)
        return
    compile_program(root / LAUNCHER.parent, root / LAUNCHER)
    for helper in HELPERS:
        compile_program(root / helper.parent, root / helper, shared=root / SHARED)
    compile_library(root / SOURCES, root / PACKAGE)
    try:
        compile_module(root / SOURCES, root / PACKAGE)
    except MissingHeaders as error:
        print(f"netsandbox: {error}; until then --rewrite-engine preload is not available", file=sys.stderr)


def build_release(root: Path, place: Path, platform: str) -> None:
    """Below *place* as they lie in the tree, for a system of RELEASES; none may be missing."""
    launcher, *helpers, library, module = _places(place, PRODUCTS)
    target = RELEASES[platform]
    compile_program(root / LAUNCHER.parent, launcher, target)
    for helper, product in zip(HELPERS, helpers, strict=True):
        compile_program(root / helper.parent, product, target, root / SHARED)
    compile_library(root / SOURCES, library.parent, target)
    compile_module(root / SOURCES, module.parent, target)


def build_for_macs(root: Path, place: Path) -> None:
    """Below *place* as they lie in the tree; none may be missing, since a Mac has no session without."""
    launcher, helper, library, module = _places(place, MAC_PRODUCTS)
    compile_mac_program(root / LAUNCHER.parent, launcher)
    compile_mac_program(root / MAC_NATIVE, helper)
    macos_library.build(library, root / SOURCES)
    compile_mac_module(root / SOURCES, module)
    if sys.platform == "darwin":
        for product in (launcher, helper, library, module):
            universal_binary.sign(product)


def _places(place: Path, products: Sequence[Path]) -> list[Path]:
    """The launcher and *products* below *place*, whose folders are made."""
    places = [place / product for product in (LAUNCHER, *products)]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
    return places


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # generic only in newer hatchling
    """Wheels carry what was compiled and the platform's tag; editable installs build in place; sdists carry sources."""

    def dependencies(self) -> list[str]:
        return ["ziglang"] if self._wanted() and (platform_wanted() or compiler() is None) else []

    def clean(self, versions: list[str]) -> None:
        for product in (LAUNCHER, *PRODUCTS, *MAC_PRODUCTS):
            (Path(self.root) / product).unlink(missing_ok=True)
        for platform in (MACOS, *RELEASES):
            shutil.rmtree(Path(self.root, "build", platform), ignore_errors=True)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._wanted():
            return
        root, platform = Path(self.root), platform_wanted()
        build_data["pure_python"] = False
        if version != "editable":  # `netsandbox man` finds the page in the package, or else in the tree
            build_data["force_include"][str(root / MANUAL)] = str(Path("netsandbox", "cli", MANUAL.name))
        if platform and version != "editable":
            self._cross_build(root, platform, build_data)
            return
        build(root)
        build_data[SCRIPTS] = {str(root / LAUNCHER): LAUNCHER.name}
        build_data["tag"] = TAG.format(sysconfig.get_platform().replace("-", "_").replace(".", "_"))
        build_data["artifacts"].extend(str(product) for product in PRODUCTS)

    def _cross_build(self, root: Path, platform: str, build_data: dict[str, Any]) -> None:
        """Beside the tree, where a module for another system may lie under the same name."""
        place = root / "build" / platform
        if platform == MACOS:
            build_for_macs(root, place)
        else:
            build_release(root, place, platform)
        products = MAC_PRODUCTS if platform == MACOS else PRODUCTS
        build_data["tag"] = TAG.format(MAC_PLATFORM if platform == MACOS else platform)
        build_data[SCRIPTS] = {str(place / LAUNCHER): LAUNCHER.name}
        build_data["force_include"].update({str(place / one): _packed(one) for one in products})

    def _wanted(self) -> bool:
        return self.target_name == "wheel"


def _packed(product: Path) -> str:
    """Where it lies in a wheel, whose packages are side by side."""
    return str(Path(*product.parts[-2:]) if product.parent == PACKAGE else product)


if __name__ == "__main__":
    build(Path(__file__).resolve().parents[1])
