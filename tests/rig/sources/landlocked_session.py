"""Computes the file rules of a session and tries them in a child under Landlock (tests/rig/landlocked.py)."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys

from netsandbox.backends.broker.session_files import SessionFiles
from netsandbox.backends.contract import SessionContext
from netsandbox.backends.linux.private_home import PrivateHome
from netsandbox.errors import NetsandboxError
from netsandbox.paths import session_state_home
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths, make_folders, own_paths
from netsandbox.settings import Command, RunSettings

FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
libc = ctypes.CDLL(None, use_errno=True)


class Handled(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64)]


class Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def confine(handled, permits):
    attributes = Handled(handled)
    rules = checked(libc.syscall(444, ctypes.byref(attributes), ctypes.sizeof(attributes), 0))
    for rights, path in permits:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # removed since; it stays closed
            continue
        rule = Beneath(rights if os.path.isdir(path) else rights & FILE_RIGHTS, place)
        checked(libc.syscall(445, rules, 1, ctypes.byref(rule), 0))
        os.close(place)
    checked(libc.prctl(38, 1, 0, 0, 0))
    checked(libc.syscall(446, rules, 0))


def drop_capabilities():
    """As the backend does; a capability opens the variables of other processes."""
    for number in range(41):
        libc.prctl(24, number, 0, 0, 0)
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    checked(libc.capset(header, none))


def attempt(kind, value):
    if kind == "read":
        with open(value, errors="replace") as file:
            return file.read()
    if kind == "list":
        return sorted(os.listdir(value))
    if kind == "sh":
        done = subprocess.run(["/bin/sh", "-c", value], check=False, capture_output=True, text=True)
        return [done.returncode, done.stdout, done.stderr]
    if kind == "write":
        os.close(os.open(value, os.O_WRONLY | os.O_TRUNC))
        with open(value, "w") as file:
            file.write("planted")
    elif kind == "append":  # opened and left as it is
        os.close(os.open(value, os.O_WRONLY | os.O_APPEND))
    elif kind == "truncate":
        os.truncate(value, 0)
    elif kind == "make":
        os.close(os.open(value, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    elif kind == "remove":
        os.unlink(value)
    elif kind == "device":
        os.mknod(value, 0o20600, os.makedev(1, 3))
    elif kind in ("rename", "link"):
        getattr(os, kind)(*value.split(" "))
    return "done"


def tried(kind, value):
    try:
        return attempt(kind, value if kind == "sh" else os.path.expandvars(value))
    except OSError as error:
        return errno.errorcode[error.errno]


def rule(text):
    return PathRule(text.rstrip("/"), "--rule", text.endswith("/"))


asked = json.loads(sys.argv[1])
lists = ("allow_read", "allow_write", "deny_read", "deny_write", "caches", "allow_execute")
fields = {name: tuple(map(rule, value)) if name in lists else value for name, value in asked["files"].items()}
fields["devices"] = tuple(fields.get("devices", ()))
settings = RunSettings(files=FileRules(**fields), **asked["settings"])
environment = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
context = SessionContext("id", settings, Command(asked["words"], environment), sealed=False, open_log=None)
if not asked["temporary"]:
    from netsandbox.backends.broker import open_files
    from netsandbox.backends.linux import file_view, open_folders

    open_files.TEMPORARY = file_view.TEMPORARY = open_folders.TEMPORARY = ()
state = session_state_home()
make_folders()
own = own_paths()
own = OwnPaths(own.hidden, (*own.read_only, *asked["own"]))
try:
    files = SessionFiles(context, state, own)
except NetsandboxError as error:
    print(json.dumps({"error": str(error), "kind": type(error).__name__}))
    sys.exit()
inner = files.environment(environment)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.environb.clear()
    os.environb.update(inner)
    os.chdir(files.working)
    drop_capabilities()
    confine(files.handled, files.permits)
    with open(writer, "w") as file:
        json.dump([tried(*each) for each in asked["attempts"]], file)
    os._exit(0)
os.close(writer)
with open(reader) as file:
    results = json.load(file)
os.waitpid(child, 0)
view = files.view
kept = PrivateHome(view.folders.home, view.home).written(since=0.0) if view and view.folders.is_kept else ()
lines = files.finish()
files.close()
print(
    json.dumps(
        {
            "results": results,
            "notices": files.notices,
            "lines": lines,
            "kept": kept,
            "permits": files.permits,
            "environment": {os.fsdecode(name): os.fsdecode(value) for name, value in inner.items()},
        }
    )
)
