"""The native observer reads paths from the memory of hostile processes. Whatever they hand it, it goes on, and the next
refusal is recorded."""

from __future__ import annotations

import os
from typing import Any

import pytest

from netsandbox.backends.namespaces.file_calls import observed_calls
from tests.integration.test_closed_files import SECRET, put
from tests.integration.test_file_records import denied

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]

# Memory of two pages, of which the second cannot be read: a text that ends there has its NUL as the last byte, or none.
PREFIX = """
import ctypes, errno, mmap, os, random, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.syscall.restype = ctypes.c_long
OPENAT, OPENAT2, AT_FDCWD, PAGE = (257 if os.uname().machine == "x86_64" else 56), 437, -100, 4096
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(each & 2**64 - 1) for each in arguments))
    return result if result >= 0 else -ctypes.get_errno()
def at_page_end(data):
    pages = -(-len(data) // PAGE)
    start = libc.mmap(None, (pages + 1) * PAGE, 3, 0x22, -1, 0)
    assert libc.mprotect(ctypes.c_void_p(start + pages * PAGE), PAGE, 0) == 0
    address = start + pages * PAGE - len(data)
    ctypes.memmove(address, data, len(data))
    return address
def opened(address, flags=0):
    return call(OPENAT, AT_FDCWD, address, flags, 0)
plan = sys.argv[1].encode()
"""
LAST = "\nassert opened(at_page_end(plan + b'\\0')) == -errno.ENOENT\nprint('over')\n"


def attack(netsandbox: Any, script: str) -> Any:
    plan = put(netsandbox.home(), "Documents/plan.md")
    run = netsandbox("run", "--", netsandbox.python, "-c", PREFIX + script + LAST, str(plan), timeout=120)
    assert run.stdout == "over\n", run.stderr
    assert run.returncode == 0
    assert ("file", "read", "not-shown", str(plan)) in denied(run)
    assert SECRET not in run.stdout
    return run


@pytest.mark.attack(115)
def test_paths_that_end_where_memory_does(netsandbox: Any) -> None:
    """The observer reads in parts: each length around their bounds, with a NUL at the end and without."""
    script = """
for length in (1, 2, 254, 255, 256, 257, 511, 512, 4094, 4095):
    path = b"/" + b"./" * 2048
    path = path[:length - 1] + b"/"
    address = at_page_end(path + b"\\0")
    result = opened(address)
    assert result >= 0, (length, result)
    os.close(result)
    assert opened(at_page_end(path)) in (-errno.EFAULT, -errno.ENAMETOOLONG), length
for length in (4096, 4097, 8191, 8192, 70000):
    assert opened(at_page_end(b"/" * length + b"\\0")) == -errno.ENAMETOOLONG, length
    assert opened(at_page_end(b"/" * length)) == -errno.ENAMETOOLONG, length
assert opened(at_page_end(b"\\0")) == -errno.ENOENT
"""
    attack(netsandbox, script)


@pytest.mark.attack(115)
def test_the_longest_path_is_recorded_whole(netsandbox: Any) -> None:
    """One byte more is refused by the kernel, and is no refusal of ours."""
    plan = put(netsandbox.home(), "Documents/plan.md")
    script = """
folder, name = plan.rsplit(b"/", 1)
for size, number in ((4095, errno.ENOENT), (4096, errno.ENAMETOOLONG)):
    path = folder + b"/" * (size - len(folder) - len(name)) + name
    assert len(path) == size
    assert opened(at_page_end(path + b"\\0"), os.O_WRONLY) == -number
"""
    run = attack(netsandbox, script)
    assert ("file", "change", "not-shown", str(plan)) in denied(run)
    (record,) = [each for each in run.audit if each.get("operation") == "change"]
    assert record["count"] == 1


@pytest.mark.attack(115)
def test_addresses_that_are_nowhere(netsandbox: Any) -> None:
    script = """
NOWHERE = (0, 1, 4095, 2**47 - 1, 2**47, 2**63, 2**64 - 1, 2**64 - 4096, 0xFFFFFFFF81000000, at_page_end(b"x") + 1)
for address in NOWHERE:
    assert opened(address) == -errno.EFAULT, hex(address)
    assert call(OPENAT2, AT_FDCWD, at_page_end(plan + b"\\0"), address, 24) == -errno.EFAULT
    assert call(OPENAT2, AT_FDCWD, at_page_end(plan + b"\\0"), at_page_end(bytes(7)), 24) == -errno.EFAULT
for folder in (-1, 2**31 - 1, -2**31, 99):
    assert call(OPENAT, folder, at_page_end(b"x\\0"), 0, 0) == -errno.EBADF
"""
    attack(netsandbox, script)


@pytest.mark.attack(115)
def test_random_arguments_of_every_observed_call(netsandbox: Any) -> None:
    """In a folder of its own, by processes of which many are killed meanwhile."""
    numbers = sorted(observed_calls(os.uname().machine))
    script = f"""
os.mkdir("mess"); os.chdir("mess")
numbers = {numbers!r}
def mess(seed):
    pick = random.Random(seed)
    texts = [at_page_end(pick.randbytes(pick.choice((1, 9, 250, 300, 4096, 5000)))) for _ in range(20)]
    for _ in range(20):
        texts.append(at_page_end(b"a" + bytes(pick.choices(b"ab/", k=pick.randrange(40))) + b"\\0"))
    other = (0, 1, -1, AT_FDCWD, 2**63, 2**47, 64, 65, 0o200000)
    for _ in range(400):
        call(pick.choice(numbers), *(pick.choice(texts if pick.random() < 0.5 else other) for _ in range(6)))
for seed in range(30):
    child = os.fork()
    if child == 0:
        os.closerange(0, 3)
        signal.alarm(2)  # it may make a pipe and wait for the other end
        mess(seed)
        os._exit(0)
    if seed % 3 == 0:
        time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
    attack(netsandbox, script)


@pytest.mark.attack(118)
def test_callers_that_are_killed_while_they_wait(netsandbox: Any) -> None:
    """Each is killed at another moment of its call; the pid may be another process's when the observer looks."""
    script = """
address = at_page_end(plan + b"\\0")
for number in range(300):
    child = os.fork()
    if child == 0:
        while True:
            opened(address)
    time.sleep(number % 7 / 5000)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
    attack(netsandbox, script)


@pytest.mark.attack(118)
def test_ten_thousand_threads(netsandbox: Any) -> None:
    """In crowds of 250 that all wait for the observer at once."""
    script = """
address = at_page_end(plan + b"\\0")
results = []
threading.stack_size(65536)
for _ in range(40):
    threads = [threading.Thread(target=lambda: results.append(opened(address))) for _ in range(250)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
assert results == [-errno.ENOENT] * 10000, len(results)
"""
    run = attack(netsandbox, script)
    files = [each for each in run.audit if each["event"] == "file"]
    assert len(files) < 10
    assert sum(each["count"] for each in files) > 5000
