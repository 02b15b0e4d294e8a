"""What may be imported once the command runs: nothing that it could have written.

The supervisor loads the doors while the command is already running, and the command can write what the user can: the
working directory, a virtual environment, a Python of the user's own. A module planted there and imported here would run
outside the sandbox. So before `go` there are two ways:

- `seal` (the command line): from then on only the interpreter's built-in and frozen modules and our own packages can be
  imported. Our packages are read-only inside the session, and they are reached by descriptors that were opened before
  it began, so that moving a folder above them changes nothing. Where an installer made hard links (uv does, into a
  cache that the command can write), read-only folders protect nothing: then everything of ours is loaded first too.
- `load_everything` (the Python API, where the process is not ours to seal): all of it is imported first.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter
from _frozen_importlib_external import PathFinder, spec_from_file_location

from netsandbox.runtime.bytecode_bundle import Bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

# Modules of the interpreter that the supervisor needs and that may be files: loaded while they can be trusted.
NEEDED = (
    *("_socket", "_struct", "_json", "_operator", "math", "errno", "fcntl", "resource", "select", "_signal"),
    "encodings.punycode",  # for names with xn-- labels
)
# Ours, in the order of dependence.
DOORS = (
    "netsandbox.session.upstream",
    "netsandbox.session.supervisor",
    "netsandbox_dns.wire",
    "netsandbox_dns.resolver",
    "netsandbox_dns.upstream",
    "netsandbox_dns.tcp_door",
    "netsandbox_dns.udp_recorder",
    "netsandbox_proxy.parsers.head",
    "netsandbox_proxy.parsers.request_rewrite",
    "netsandbox_proxy.parsers.clienthello",
    "netsandbox_proxy.tunnel",
    "netsandbox_proxy.door",
    "netsandbox_proxy.forward_proxy",
    "netsandbox_proxy.http_stage",
    "netsandbox_proxy.handshakes",
    "netsandbox.policy.decision",
    "netsandbox.policy.idn",
    "netsandbox.session.gate",
    "netsandbox.session.doors",
    "netsandbox.session.control",
    "netsandbox_portmap.session_name",
    "netsandbox_portmap.bind_responder",
    "netsandbox_portmap.bind_requests",
)


# What the command line needs when the command has ended.
AT_END = ("netsandbox.cli.notices", "netsandbox.cli.terminal", "netsandbox.audit.sweep")


class Sealed:
    """The last finder on the path: our packages, by their descriptors, and no others."""

    def __init__(self, packages: list[str]) -> None:
        self._homes = {}
        for path in packages:
            descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self._homes[os.path.basename(path)] = f"/proc/self/fd/{descriptor}"

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        top, dot, _ = name.partition(".")
        home = self._homes.get(top)
        if home is None:
            return None
        if not dot:
            return spec_from_file_location(name, f"{home}/__init__.py", submodule_search_locations=[home])
        return PathFinder.find_spec(name, path)  # type: ignore[arg-type]

    def adopt(self, name: str, module: object) -> None:
        """A loaded package of ours also finds its modules by descriptor."""
        home = self._homes.get(name.partition(".")[0])
        if home is not None and hasattr(module, "__path__"):
            module.__path__ = ["/".join((home, *name.split(".")[1:]))]


def load_needed() -> None:
    for name in NEEDED:
        __import__(name)


def load_everything(backend_modules: tuple[str, ...] = ()) -> None:
    """For a process whose imports are not ours to seal, and for files that have other names."""
    load_needed()
    for name in (*DOORS, *backend_modules, *AT_END):
        __import__(name)


def _linked_elsewhere(packages: list[str]) -> bool:
    """Whether a file of ours has a second name; an installer links all files or none."""
    for package in packages:
        try:
            if os.stat(f"{package}/__init__.py").st_nlink > 1:
                return True
        except OSError:
            return True
    return False


def seal(packages: list[str], backend_modules: tuple[str, ...] = ()) -> None:
    """From now on nothing is imported but built-in and frozen modules and *packages*."""
    if _linked_elsewhere(packages):
        load_everything(backend_modules)
    load_needed()
    if isinstance(bundle := sys.meta_path[0], Bundle):
        if bundle.lacks:
            from netsandbox.runtime.bundle_writer import complete

            complete(bundle)
        bundle.close()
    finder = Sealed(packages)
    for name, module in list(sys.modules.items()):
        finder.adopt(name, module)
    sys.pycache_prefix = None  # bytecode is beside our sources, where the session cannot write
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, finder]
