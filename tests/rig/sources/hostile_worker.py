"""What a worker does that an attacker controls. It is sealed, and has the channel and the two sockets of a connection.

`install` puts it in the place of the worker's loop; the outcome of each attempt goes to the supervisor as a refusal.
"""

import array
import ctypes
import errno
import os
import select
import socket
import time

from netsandbox_proxy.inspect import channel, worker

MACHINE = 0 if os.uname().machine == "x86_64" else 1
LIBC = ctypes.CDLL(None, use_errno=True)
LAST = "all was tried"
SYSCALLS = {  # x86_64, aarch64
    "ptrace": (101, 117),
    "prctl": (157, 167),
    "seccomp": (317, 277),
    "io_uring_setup": (425, 425),
    "openat2": (437, 437),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "setns": (308, 268),
    "unshare": (272, 97),
    "mount": (165, 40),
    "clone3": (435, 435),
    "clone": (56, 220),
    "execveat": (322, 281),
    "memfd_create": (319, 279),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "dup": (32, 23),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "accept4": (288, 242),
    "socketpair": (53, 199),
    "splice": (275, 76),
    "tkill": (200, 130),
    "shmget": (29, 194),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "personality": (135, 92),
    "x32 socket": (0x40000000 | 41, 198),
}


def call(number, *arguments):
    if LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(each) for each in arguments)) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def redirected(descriptor, port):
    """A handed socket is unconnected, and connected to somebody else."""
    unspecified = ctypes.create_string_buffer(16)
    if LIBC.connect(descriptor, unspecified, 16) != 0:
        raise OSError(ctypes.get_errno(), "connect")
    to = socket.AF_INET.to_bytes(2, "little") + port.to_bytes(2, "big") + bytes((127, 0, 0, 1)) + bytes(8)
    if LIBC.connect(descriptor, to, 16) != 0:
        raise OSError(ctypes.get_errno(), "connect")


def given_away(over, descriptor):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, over)
    try:
        rights = array.array("i", [descriptor])
        sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    finally:
        sock.detach()


def executable():
    LIBC.mmap.restype = ctypes.c_void_p
    if LIBC.mmap(None, 4096, 7, 0x22, -1, 0) == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")


def attempts(client, server, port, log):
    yield "socket", socket.socket
    yield "connect the server's socket again", lambda: redirected(server, port)
    yield "connect the client's socket again", lambda: redirected(client, port)
    yield "give the server's socket to the client", lambda: given_away(client, server)
    yield "give the channel to the server", lambda: given_away(server, 3)
    yield "open", lambda: os.open("/etc/passwd", os.O_RDONLY)
    yield "write a record", lambda: os.open(log, os.O_WRONLY | os.O_APPEND)
    yield "read its own files", lambda: os.open("/proc/self/environ", os.O_RDONLY)
    yield "exec", lambda: os.execv("/bin/true", ["true"])
    yield "fork", os.fork
    # Without a signal: should the filter not hold, nobody is hurt.
    yield "kill the supervisor", lambda: os.kill(os.getppid(), 0)
    yield "kill everybody", lambda: os.kill(-1, 0)
    yield "executable memory", executable
    yield "import", lambda: __import__("this")
    for name, numbers in SYSCALLS.items():
        yield name, lambda numbers=numbers: call(numbers[MACHINE], 0, 0, 0, 0, 0)


def outcome(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except ImportError:
        return "EPERM"
    return "done"


def install(port, log, lies):
    def run(self):
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        while True:
            poll.poll()
            (message, *_), descriptors = channel.receive(self._channel)
            if message["kind"] == "open":
                break
        number = message["id"]
        for name, attempt in attempts(*descriptors, port, log):
            detail = f"{name}: {outcome(attempt)}"
            self._channel.sendmsg(
                [channel.encode({"kind": "refused", "id": number, "reason": "internal", "detail": detail})]
            )
        self._channel.sendmsg([channel.encode({"kind": "refused", "id": number, "reason": "internal", "detail": LAST})])
        for times, lie in lies:
            for _ in range(times):
                self._channel.sendmsg([channel.encode({"id": number, **lie})])
        while True:
            time.sleep(1)

    worker.Worker.run = run
