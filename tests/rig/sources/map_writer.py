"""Attacks the port map from inside a session: `map_writer.py write PORT` or `map_writer.py lie`.

write: every way to change the file, as [answers, is it the same, the port that a server then sees]; waits for a line.
lie: in children that each put a false map over their own mapping, binds; the children's wait statuses, 0 when every
bind was refused or came to be in the window.
"""

import ctypes
import errno
import json
import mmap
import os
import random
import socket
import struct
import sys

PATH = os.environ["NETSANDBOX_PORT_MAP"]
BASE, COUNT = (int(os.environ[f"LISTENING_{name}"]) for name in ("BASE_PORT", "PORT_COUNT"))
GETSOCKNAME = {"x86_64": 51, "aarch64": 204}[os.uname().machine]
MS_REMOUNT, MS_BIND, MNT_DETACH = 32, 4096, 2
PRIVATE_FIXED_ANONYMOUS = 0x32
WINDOW, ASKED = 24, 176  # offsets of `base` and `asked` in struct ns_map

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def tried(act, *words):
    try:
        act(*words)
    except OSError as error:
        return errno.errorcode[error.errno or errno.EINVAL]
    return "ok"


def called(result):
    return "ok" if result == 0 else errno.errorcode[ctypes.get_errno()]


def content():
    with open(PATH, "rb") as file:
        return file.read()


def mapped():
    """Where the library has the map: address and size."""
    with open("/proc/self/maps") as maps:
        line = next(line for line in maps if line.split()[4] == str(os.stat(PATH).st_ino))
    first, last = (int(text, 16) for text in line.split()[0].split("-"))
    return first, last - first


def map_writable():
    with open(PATH, "rb") as file:
        mmap.mmap(file.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def poke():
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(mapped()[0])
        memory.write(b"XXXX")


def reopen():
    with open(PATH, "rb") as file:
        os.close(os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDWR))


def write(port):
    socket.create_server(("127.0.0.1", port)).close()
    before = content()
    with open("mine", "w"):
        pass
    folder, name = os.path.dirname(PATH), PATH.encode()
    out = {
        "write": tried(os.open, PATH, os.O_RDWR),
        "append": tried(os.open, PATH, os.O_WRONLY | os.O_APPEND),
        "truncate": tried(os.truncate, PATH, 0),
        "shrink": tried(os.open, PATH, os.O_WRONLY | os.O_TRUNC),
        "chmod": tried(os.chmod, PATH, 0o777),
        "utime": tried(os.utime, PATH),
        "unlink": tried(os.unlink, PATH),
        "rename": tried(os.rename, PATH, "moved"),
        "aside": tried(os.rename, PATH, PATH + ".old"),
        "folder": tried(os.rename, folder, folder + ".old"),
        "over": tried(os.rename, "mine", PATH),
        "symlink": tried(os.symlink, "mine", PATH),
        "fifo": tried(os.mkfifo, PATH),
        "link": tried(os.link, PATH, "linked"),
        "mmap": tried(map_writable),
        "mem": tried(poke),
        "reopen": tried(reopen),
        "mprotect": called(libc.mprotect(*mapped(), mmap.PROT_READ | mmap.PROT_WRITE)),
        "remount": called(libc.mount(None, name, None, MS_REMOUNT | MS_BIND, None)),
        "umount": called(libc.umount2(name, MNT_DETACH)),
        "cover": called(libc.mount(b"mine", name, None, MS_BIND, None)),
    }
    with socket.create_server(("127.0.0.1", port)) as server:
        print(json.dumps([out, content() == before, server.getsockname()[1]]), flush=True)
    sys.stdin.readline()


def real_port(sock):
    """As the kernel has it, past the library."""
    name, length = ctypes.create_string_buffer(16), ctypes.c_uint(16)
    libc.syscall(GETSOCKNAME, sock.fileno(), name, ctypes.byref(length))
    return struct.unpack("!H", name.raw[2:4])[0]


def lie(change):
    """The wait status of a child that believes a changed map."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    first, size = mapped()
    whole = bytearray(ctypes.string_at(first, size))
    if libc.mmap(first, size, mmap.PROT_READ | mmap.PROT_WRITE, PRIVATE_FIXED_ANONYMOUS, -1, 0) != first:
        os._exit(9)
    change(whole)
    ctypes.memmove(first, bytes(whole), size)
    for port in (3000, 4000, BASE, 80, 0):
        with socket.socket() as sock:
            if tried(sock.bind, ("127.0.0.1", port)) == "ok" and not BASE <= real_port(sock) < BASE + COUNT:
                os._exit(7)
    os._exit(0)


def put(offset, form, *values):
    return lambda data: struct.pack_into("=" + form, data, offset, *values)


def another_window(data):
    struct.pack_into("=HH", data, WINDOW, 3000, 4096)
    struct.pack_into("=4096H", data, ASKED, *range(3000, 7096))


def empty(data):
    data[:] = bytes(len(data))


def noise(seed):
    choice = random.Random(seed)

    def change(data):
        for _ in range(40):
            data[choice.randrange(200 if seed % 2 else len(data))] = choice.randrange(256)

    return change


LIES = (
    put(0, "I", 0),  # no magic
    put(4, "I", 99),  # another version
    put(8, "I", 0xFFFFFFFF),  # a size beyond everything
    put(12, "I", 1),  # a writer that never ends
    put(16, "I", 99),  # no strategy
    put(20, "4s", b"\x08\x08\x08\x08"),  # a device that is not loopback
    put(20, "4s", b"\x7f\x09\x09\x09"),  # another session's device
    put(WINDOW, "HH", 65535, 65535),
    put(WINDOW, "HH", 0, 0),
    put(28, "H", 1),  # no door
    put(30, "H", 65535),  # more passing ports than there is room
    put(30, "HH", 2, 3000),
    put(32, "16s", bytes(16)),  # a token that is not ours
    another_window,
    empty,
    *map(noise, range(40)),
)

if sys.argv[1] == "write":
    write(int(sys.argv[2]) or BASE)
else:
    socket.create_server(("127.0.0.1", 3000)).close()
    print(json.dumps([lie(change) for change in LIES]), flush=True)
