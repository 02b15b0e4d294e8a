"""Windows of all holders never overlap; anything unavailable is an error that states what to do next."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import host_ports
from netsandbox_portmap.host_ports import is_free
from netsandbox_portmap.ranges import RangeLock
from netsandbox_portmap.window import (
    HeldWindow,
    WindowError,
    device_of,
    take_window,
)

from tests.rig import ports
from tests.rig.advice import helpful


@pytest.fixture
def quiet():
    """The first of 300 ports in a row that nothing on this host uses."""
    return ports.free_window(300)


def listener(address, port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen()
    return server


class Bytes:
    """Locks of any number of sessions, without a file."""

    def __init__(self):
        self.held = set()

    def take(self, start, length):
        wanted = range(start, start + length)
        if any(byte in self.held for byte in wanted):
            return False
        self.held.update(wanted)
        return True

    def release(self, start, length):
        self.held.difference_update(range(start, start + length))

    def obstacle(self, start, length):
        raise NotImplementedError


@pytest.fixture
def idle_host(monkeypatch):
    monkeypatch.setattr(host_ports, "is_free", lambda *_, **__: True)


def test_the_first_free_window_of_the_grid_is_taken(take):
    windows = [take() for _ in range(3)]
    assert [str(held.window) for held in windows] == ["50000-50099", "50100-50199", "50200-50299"]
    assert [held.window.device for held in windows] == ["127.195.80.1", "127.195.180.1", "127.196.24.1"]
    windows[1].close()
    windows[1].close()
    assert str(take().window) == "50100-50199"


def test_the_default_pool_is_the_documented_one(path):
    locks = RangeLock.open(path, shared=False)
    assert str(take_window(locks, whole=False).window) == "20000-20099"
    locks.close()


@pytest.mark.usefixtures("idle_host")
def test_who_asked_for_no_size_gets_less_when_there_is_no_more(take):
    pool = (50000, 50122)
    sizes = [take(pool=pool).window.count for _ in range(5)]
    assert sizes == [100, 10, 10, 2, 1]
    with pytest.raises(WindowError, match="no window of 1 is free in the pool 50000-50122") as problem:
        take(pool=pool)
    assert helpful(problem)


@pytest.mark.usefixtures("idle_host")
@pytest.mark.attack(221)
def test_a_thousand_sessions_have_windows_of_two_ports_and_more():
    """H9. Two ports are one to publish and one for the names."""
    locks = Bytes()
    windows = [take_window(locks, whole=False).window for _ in range(1000)]
    ports = [port for window in windows for port in window.ports]
    assert len(ports) == len(set(ports))
    assert len({window.device for window in windows}) == 1000
    assert [window.count for window in windows[:51]] == [100] * 50 + [10]
    assert {window.count for window in windows} == {100, 10, 2}
    assert all(20000 <= port <= 29999 for port in ports)


@pytest.mark.usefixtures("idle_host")
def test_a_port_that_is_given_back_is_the_next_window():
    locks = Bytes()
    held = [take_window(locks, whole=False) for _ in range(400)]
    for one in (held[20], held[60], held[399]):
        window = one.window
        one.close()
        again = take_window(locks, whole=False).window
        assert (again.base, again.count) == (window.base, window.count)


@pytest.mark.usefixtures("idle_host")
def test_the_whole_pool_is_given_out_in_the_end():
    locks, total = Bytes(), 0
    while total < 10000:
        total += take_window(locks, whole=False).window.count
    with pytest.raises(WindowError, match="no window of 1 is free in the pool 20000-29999"):
        take_window(locks, whole=False)


@pytest.mark.usefixtures("idle_host")
def test_a_window_of_a_chosen_size_may_lie_in_any_part_of_the_pool():
    locks = Bytes()
    windows = [take_window(locks, whole=False, count=100).window for _ in range(100)]
    assert {window.count for window in windows} == {100}


def test_a_small_window_that_nobody_chose_has_only_ports_that_are_free(take, quiet):
    """In a hundred ports there is always another; in two there may be none."""
    pool = (quiet, quiet + 11)
    with listener("127.0.0.1", quiet + 1):
        assert str(take(pool=pool).window) == f"{quiet + 2}-{quiet + 3}"  # no ten are free in a row on the grid


def test_who_asked_for_a_size_gets_that_or_an_error(take):
    assert str(take(pool=(50000, 50122), count=50).window) == "50000-50049"
    assert str(take(pool=(50000, 50122), count=50).window) == "50050-50099"
    with pytest.raises(WindowError, match="no window of 50 is free") as problem:
        take(pool=(50000, 50122), count=50)
    assert helpful(problem)


def test_a_window_larger_than_the_pool_is_an_error(take):
    with pytest.raises(WindowError, match="no window of 200 is free in the pool 50000-50099"):
        take(pool=(50000, 50099), count=200)


def test_a_window_may_lie_outside_the_pool_when_it_is_asked_for(take):
    assert str(take(base=3000, count=10).window) == "3000-3009"
    assert str(take(base=65436).window) == "65436-65535"


def test_the_grid_goes_around_windows_that_were_asked_for(take):
    take(base=50150, count=100)
    assert [str(take().window) for _ in range(2)] == ["50000-50099", "50300-50399"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"base": 80}, "privileged"),
        ({"base": 1023, "count": 1}, "privileged"),
        ({"base": 0}, "privileged"),
        ({"base": -1}, "privileged"),
        ({"base": 65500}, "past 65535"),
        ({"base": 65536, "count": 1}, "past 65535"),
        ({"base": 50000, "count": 0}, "1 to 4096"),
        ({"base": 50000, "count": 4097}, "1 to 4096"),
        ({"count": 0}, "1 to 4096"),
        ({"count": -3}, "1 to 4096"),
        ({"count": 4097}, "1 to 4096"),
    ],
)
def test_a_window_that_cannot_be_is_an_error_with_advice(take, options, text):
    with pytest.raises(WindowError, match=text) as problem:
        take(**options)
    assert helpful(problem)


def test_a_pool_that_cannot_be_is_an_error(take):
    with pytest.raises(WindowError, match="pool 80-90"):
        take(pool=(80, 90))


@pytest.mark.parametrize(("base", "count"), [(50100, 100), (50001, 100), (50199, 1), (50000, 1000), (50150, 10)])
def test_a_window_that_overlaps_another_is_refused_and_says_which(take, base, count):
    take(base=50100, count=100)
    with pytest.raises(WindowError, match="another session has 50100-50199") as problem:
        take(base=base, count=count)
    assert helpful(problem)


def test_one_session_cannot_take_the_same_window_twice(path):
    locks = RangeLock.open(path, shared=False)
    take_window(locks, base=50000, whole=False)
    with pytest.raises(WindowError, match="50000-50099"):
        take_window(locks, base=50000, whole=False)
    locks.close()


def test_a_lock_on_everything_is_an_error_and_no_window(take, path):
    """A user who can open the file can lock all of it: others then get no window, and nothing else happens."""
    with open(path, "wb") as greedy:
        fcntl.lockf(greedy, fcntl.LOCK_EX)  # the older kind of lock, up to the end of any file
        with pytest.raises(WindowError, match="no window of 1 is free"):
            take()
        with pytest.raises(WindowError, match="another session has 0-65535"):
            take(base=50000)
    assert take().window.base == 50000


def test_a_device_belongs_to_one_session(take):
    first = take(device="127.0.0.2")
    assert first.window.device == "127.0.0.2"
    with pytest.raises(WindowError, match=r"device 127\.0\.0\.2") as problem:
        take(device="127.0.0.2")
    assert helpful(problem)
    assert str(take().window) == "50100-50199"  # the refused session left nothing behind
    first.close()
    assert take(device="127.0.0.2").window.base == 50000


def test_a_device_that_was_named_is_not_given_to_the_window_it_would_go_with(take):
    take(base=40000, device=device_of(50000))
    assert take().window.base == 50100
    with pytest.raises(WindowError, match=r"the device 127\.195\.80\.1") as problem:
        take(base=50000)
    assert helpful(problem)


def test_the_device_of_a_window_cannot_be_named_by_another_session(take):
    window = take().window
    with pytest.raises(WindowError, match="another session has the device"):
        take(device=window.device)


def test_everybody_may_name_the_address_that_everybody_has(take):
    assert take(device="127.0.0.1").window.device == take(device="127.0.0.1").window.device


requests = st.tuples(
    st.none() | st.integers(50000, 50060),
    st.none() | st.integers(1, 30),
    st.none() | st.sampled_from(("127.0.0.1", "127.0.0.2", device_of(50000), device_of(50010))),
)


def expected(live, base, count, device):
    """The first port and the size of the window that a session must get beside the live ones, or None."""
    ports = {port for _, window in live for port in window.ports}
    devices = {window.device for _, window in live} - {"127.0.0.1"}

    def free(first, size):
        return ports.isdisjoint(range(first, first + size)) and (device or device_of(first)) not in devices

    if base is not None:
        return (base, count or 100) if free(base, count or 100) else None
    sizes = (count,) if count else (100, 10, 2, 1)
    grid = ((first, size) for size in sizes for first in range(50000, 50061 - size, size))
    return next((spot for spot in grid if free(*spot)), None)


@given(st.lists(requests | st.integers(0, 5), max_size=15))
def test_no_two_windows_share_a_port_or_a_device_whatever_the_order(steps):
    """A step is a request for a window, or the number of a session that ends."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_ports, "is_free", lambda *_, **__: True)
        live = []
        for step in steps:
            if isinstance(step, int):
                for locks, _ in live[step : step + 1]:
                    locks.close()
                del live[step : step + 1]
                continue
            base, count, device = step
            locks = RangeLock.open(f"{folder}/ports", shared=False)
            options = {"pool": (50000, 50059), "base": base, "count": count, "device": device}
            try:
                window = take_window(locks, **options, whole=False).window
            except WindowError:
                window = None
            assert (window and (window.base, window.count)) == expected(live, base, count, device)
            if window:
                live.append((locks, window))
            else:
                locks.close()
        for locks, _ in live:
            locks.close()


# The host


@pytest.mark.parametrize("offset", [0, 42, 99])
def test_a_window_with_a_port_in_use_is_skipped(take, quiet, offset):
    pool = (quiet, quiet + 299)
    with listener("127.0.0.1", quiet + offset):
        assert take(pool=pool, whole=True).window.base == quiet + 100
        assert take(pool=pool, whole=False).window.base == quiet


def test_a_port_that_is_in_use_on_either_address_of_localhost_is_in_use(take, quiet):
    with socket.create_server(("::1", quiet), family=socket.AF_INET6):
        assert take(pool=(quiet, quiet + 299), whole=True).window.base == quiet + 100


def test_a_window_that_was_asked_for_names_the_port_in_use(take, quiet):
    with listener("127.0.0.1", quiet + 42):
        with pytest.raises(WindowError, match=f"port {quiet + 42} of {quiet}-{quiet + 99} is in use") as problem:
            take(base=quiet, whole=True)
        assert helpful(problem)
        assert take(base=quiet, whole=False).window.base == quiet


def test_a_window_falls_back_to_what_is_free_between_ports_in_use(take, quiet):
    with listener("127.0.0.1", quiet + 5), listener("127.0.0.1", quiet + 12):
        assert str(take(pool=(quiet, quiet + 19), whole=True).window) == f"{quiet}-{quiet + 1}"


def test_ports_of_a_named_device_are_sought_there(take, quiet):
    with listener("127.0.0.1", quiet):
        assert take(base=quiet, device="127.0.0.9", whole=True).window.base == quiet
    with listener("127.0.0.8", quiet + 100), pytest.raises(WindowError, match=f"port {quiet + 100}"):
        take(base=quiet + 100, device="127.0.0.8", whole=True)


def test_what_a_closed_connection_leaves_behind_is_no_reason_to_refuse_a_restart(take, quiet):
    with listener("127.0.0.1", quiet) as server, socket.create_connection(("127.0.0.1", quiet)) as client:
        accepted_end, _ = server.accept()
        accepted_end.close()  # the side that closes first keeps the port in TIME_WAIT
        assert client.recv(1) == b""
    assert not is_free(quiet, lingering=False)
    assert take(pool=(quiet, quiet + 299), whole=True).window.base == quiet + 100
    assert take(base=quiet, whole=True).window.base == quiet


def test_probing_leaves_the_ports_as_they_were(take, quiet):
    before = len(os.listdir("/proc/self/fd"))
    held = take(pool=(quiet, quiet + 99), whole=True)
    assert len(os.listdir("/proc/self/fd")) == before + 1  # the lock file
    with listener("127.0.0.1", held.window.base), listener("127.0.0.1", held.window.last):
        pass


def test_a_host_that_cannot_be_probed_is_an_error_and_nothing_stays_held(path, quiet):
    """INV-1: without descriptors, it is unknown which ports are free."""
    locks, other = RangeLock.open(path, shared=True), RangeLock.open(path, shared=True)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.dup(0)
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, before[1]))
    try:
        with pytest.raises(WindowError, match=os.strerror(errno.EMFILE)):
            take_window(locks, pool=(quiet, quiet + 99), whole=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert other.take(0, 1 << 30)
    locks.close()
    other.close()


def test_a_file_that_cannot_be_locked_is_an_error(path):
    """INV-1: a write lock needs a descriptor for writing."""
    RangeLock.open(path, shared=True).close()
    locks = RangeLock(os.open(path, os.O_RDONLY))
    with pytest.raises(WindowError, match=os.strerror(errno.EBADF)):
        take_window(locks, whole=False)
    os.close(locks._descriptor)


def test_a_held_window_does_not_close_the_lock_file(path):
    locks = RangeLock.open(path, shared=False)
    held = take_window(locks, base=50000, whole=False)
    assert isinstance(held, HeldWindow)
    held.close()
    assert take_window(locks, base=50000, whole=False).window.base == 50000
    locks.close()
    held.close()
