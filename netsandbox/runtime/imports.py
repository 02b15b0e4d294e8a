"""Where a process imports from: at its start the bytecode of everything that it loads, and after `go` memory alone.

    <our package>/__pycache__/launch.cpython-311.bundle      for `netsandbox run` and the Python API
    <our package>/__pycache__/commands.cpython-311.bundle    for all others

The search for a module takes longer than its execution, so one file, the bundle, holds the bytecode of our modules and
of the standard modules that are not part of the interpreter, and the paths of those that are shared objects.

Rules kept for the bundle: it lies beside the bytecode that the interpreter keeps, and is trusted for the same reason:
our packages are read-only in every session, so a process that can write the bundle can write the sources too. (The
state home would not do: a session that was given another one sees the usual one.) An entry counts only while its file
has the same size and the same time of change, to the nanosecond. Any other module is imported as usual, and the bundle
is written again before a command runs (`bundle_writer`).

The supervisor loads the doors while the command is already running, and the command can write what the user can: the
working directory, a virtual environment, a Python of the user's own, and our files too if an installer made them links
into a store. A module planted there and imported here would run outside the sandbox. So before `go` there are two ways:

- `seal` (the command line): from then on only built-in and frozen modules of the interpreter can be imported, and those
  of our modules whose bytecode was read into memory before. Without a complete bundle, everything is loaded first.
- `load_everything` (the Python API, where the process is not ours to seal): all of it is imported first.
"""

# No `from __future__ import annotations`: that module would be searched for before there is a bundle.
import gc
import marshal
import os
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter, ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, ExtensionFileLoader, SourceFileLoader, spec_from_file_location
from _imp import is_frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(PACKAGE)
COMPONENTS = ("proxy", "dns", "portmap", "interpose")
LAUNCH, COMMANDS = (
    os.path.join(PACKAGE, "__pycache__", f"{name}.{sys.implementation.cache_tag}.bundle")
    for name in ("launch", "commands")
)
MARK = (MAGIC_NUMBER, sys.flags.optimize, PACKAGE, sys.prefix, sys.version)
LENGTH_BYTES = 4  # of the number before the list of entries
STDERR = 2

# Modules of the interpreter that the supervisor needs and that may be files: loaded while they can be trusted.
NEEDED = ("_socket", "_struct", "_json", "_operator", "math", "errno", "fcntl", "resource", "select", "_signal")
STANDARD = ("encodings.punycode",)  # for names with xn-- labels
# Ours, in the order of dependence.
DOORS = (
    "netsandbox.session.upstream",
    "netsandbox.session.supervisor",
    "netsandbox_dns.wire",
    "netsandbox_dns.resolver",
    "netsandbox_dns.upstream",
    "netsandbox_dns.tcp_door",
    "netsandbox_dns.udp_recorder",
    "netsandbox.runtime.http.head",
    "netsandbox_proxy.parsers.request_rewrite",
    "netsandbox.runtime.http.clienthello",
    "netsandbox_proxy.tunnel",
    "netsandbox_proxy.door",
    "netsandbox_proxy.forward_proxy",
    "netsandbox_proxy.http_stage",
    "netsandbox_proxy.pinned_http",
    "netsandbox_proxy.handshakes",
    "netsandbox.policy.decision",
    "netsandbox.policy.idn",
    "netsandbox.session.gate",
    "netsandbox.session.doors",
    "netsandbox.session.control",
    "netsandbox.session.exec_requests",
    "netsandbox_portmap.session_name",
    "netsandbox.session.offered_port",
    "netsandbox_portmap.bind_responder",
    "netsandbox_portmap.bind_requests",
)
# What the command line needs when the command has ended.
AT_END = (
    "netsandbox.cli.notices",
    "netsandbox.cli.terminal",
    "netsandbox.cli.unseen_paths",
    "netsandbox.backends.namespaces.path_access",
    "netsandbox.audit.sweep",
    "netsandbox.config.paths",
)
# The layers above the session. What comes after `go` imports none of them but those listed.
UPPER = tuple(f"netsandbox.{layer}." for layer in ("cli", "config", "doctor", "learn", "shells"))

# The file, its time of change and its size; where the code begins and ends, the same for a shared object.
Entry = tuple[str, int, int, int, int]


class BundledLoader(SourceFileLoader):
    """The interpreter's own loader, except that the code comes from the bundle."""

    def __init__(self, name: str, path: str, code: bytes | memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> "CodeType":
        code: CodeType = marshal.loads(self._code)  # noqa: S302 (as trusted as the source)
        return code


class Bundle:
    """The first finder on the path, until imports are sealed. `missed` are the modules that it should have had."""

    def __init__(
        self, place: str, entries: dict[str, Entry | None], late: tuple[str, ...] = (), descriptor: int = -1
    ) -> None:
        self.place = place
        self.entries = entries  # None for a module that cannot be bundled
        self.late = late  # those that a process needs after `go`, one behind the other in the file
        self.missed: list[str] = []
        self._descriptor = descriptor

    def code(self, entry: Entry) -> bytes:
        _, _, _, begin, end = entry
        return os.pread(self._descriptor, end - begin, begin)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self.entries, self._descriptor = {}, -1

    @property
    def lacks(self) -> bool:
        """Whether modules are missing that may be written."""
        return bool(self.missed) and self.is_writable

    @property
    def is_writable(self) -> bool:
        return not sys.dont_write_bytecode and os.access(os.path.dirname(self.place), os.W_OK)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        entry = self.entries.get(name, ())
        if entry is None:
            return None
        if not entry or not _is_unchanged(entry):
            if _belongs_here(name):
                self.missed.append(name)
            return None
        file, _, _, begin, end = entry
        if begin == end:
            return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))
        return _bundled_spec(name, file, self.code(entry))

    def late_code(self) -> dict[str, tuple[str, memoryview]] | None:
        """File and code of each late module that is not loaded; None if they are not all here and unchanged."""
        waiting = [(name, self.entries.get(name)) for name in self.late if name not in sys.modules]
        entries = [(name, entry) for name, entry in waiting if entry is not None and _is_unchanged(entry)]
        if not self.late or any(map(_is_of_the_session, self.missed)) or len(entries) != len(waiting):
            return None
        if not entries:
            return {}
        first, end = entries[0][1][3], entries[-1][1][4]
        code = memoryview(os.pread(self._descriptor, end - first, first))
        if len(code) != end - first:
            return None
        return {name: (entry[0], code[entry[3] - first : entry[4] - first]) for name, entry in entries}


class Sealed:
    """The last finder on the path after `go`: our modules from memory, and no others."""

    def __init__(self, modules: dict[str, tuple[str, memoryview]]) -> None:
        self._modules = modules

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        kept = self._modules.get(name)
        return None if kept is None else _bundled_spec(name, *kept)


def _bundled_spec(name: str, file: str, code: bytes | memoryview) -> ModuleSpec:
    spec = ModuleSpec(name, BundledLoader(name, file, code), origin=file)
    spec.has_location = True
    spec.cached = file  # otherwise the interpreter makes a path for each module, which nothing reads
    if file.endswith("/__init__.py"):
        spec.submodule_search_locations = [file.removesuffix("/__init__.py")]
    return spec


def _belongs_here(name: str) -> bool:
    """Our modules, and those of the standard library that are files."""
    if name.startswith("netsandbox"):
        return True
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names and top not in sys.builtin_module_names and not is_frozen(name)


def _is_of_the_session(name: str) -> bool:
    """Whether what comes after `go` may import *name*."""
    return name.startswith("netsandbox") and not name.startswith(UPPER)


def _is_unchanged(entry: Entry) -> bool:
    file, changed, size, _, _ = entry
    try:
        state = os.stat(file)
    except OSError:
        return False
    return state.st_mtime_ns == changed and state.st_size == size


def read_bundle(place: str) -> Bundle:
    """The bundle at *place*; empty if it is missing, damaged, or of another interpreter or folder."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Bundle(place, {})
    try:
        length = int.from_bytes(os.read(descriptor, LENGTH_BYTES), "little")
        mark, size, late, entries = marshal.loads(os.read(descriptor, length))  # noqa: S302 (as trusted as the sources)
        whole = (mark, size) == (MARK, os.fstat(descriptor).st_size)
    except (OSError, EOFError, ValueError, TypeError, OverflowError):
        whole = False
    if whole and descriptor > STDERR:  # a process whose standard streams are closed must find them closed
        return Bundle(place, entries, late, descriptor)
    os.close(descriptor)
    return Bundle(place, {})


def start(command: list[str]) -> None:
    """Set the search path of an isolated process and import from the bundle of its subcommand."""
    gc.disable()  # nothing becomes garbage on the way to exec; the doors turn it on again
    sys.path += search_path(ROOT, sys.executable)
    sys.meta_path.insert(0, read_bundle(LAUNCH if command in (["run"], ["--supervise"]) else COMMANDS))


def search_path(root: str, interpreter: str) -> list[str]:
    """The folders behind the standard library: ours, and those where the packages that we need may be installed.

    `site` is not asked: it would read the environment and execute .pth files.
    """
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = [root, *(f"{root}/{name}" for name in COMPONENTS)]
    if root.endswith("-packages"):
        folders = [root, root.replace("/lib64/", "/lib/")]
    beside = os.path.dirname(os.path.dirname(interpreter))
    for prefix in (beside, sys.prefix):
        folders += (f"{prefix}/lib/{version}/site-packages", f"{prefix}/local/lib/{version}/dist-packages")
    folders.append(f"{sys.prefix}/lib/python3/dist-packages")  # Debian's own packages
    return list(dict.fromkeys(folders))


def load_needed() -> None:
    for name in NEEDED:
        __import__(name)


def load_everything(backend_modules: tuple[str, ...] = ()) -> None:
    """For a process whose imports are not ours to seal, and for one without a complete bundle."""
    load_needed()
    for name in (*STANDARD, *DOORS, *backend_modules, *AT_END):
        __import__(name)


def seal(backend_modules: tuple[str, ...] = ()) -> None:
    """From now on nothing is imported but built-in and frozen modules, and ours from memory."""
    load_needed()
    bundle = sys.meta_path[0]
    kept = bundle.late_code() if isinstance(bundle, Bundle) else None
    listed = (*STANDARD, *DOORS, *backend_modules, *AT_END)
    added: list[str] = []
    if kept is None:
        load_everything(backend_modules)
    else:  # the bundle was written by a session that needed other modules, as one of another backend
        added = [name for name in listed if name not in kept and name not in sys.modules]
        for name in added:
            __import__(name)
    if isinstance(bundle, Bundle):
        if bundle.lacks or (added and bundle.is_writable):
            from netsandbox.runtime.bundle_writer import complete

            if kept is None or added:
                more = [name for name in sys.modules if name in listed or _is_of_the_session(name)]
                bundle.late = tuple(dict.fromkeys((*(bundle.late if added else ()), *more)))
            complete(bundle)
        bundle.close()
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Sealed(kept or {})]
