"""The allowed Unix socket is that one, whatever the workload races, swaps or puts in its place.

The verdict is the canary's: the forbidden listener counts its accepts, and a run must also show that the good one
works.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.rig.unix_probe import results, script

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

RACE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static const char *good, *bad;
static atomic_int over;
static atomic_long iterations, reached;
struct pair { struct sockaddr_un address; int number; };
static void aim(struct sockaddr_un *address, const char *path)
{
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, path);
}
static void *flip_address(void *arg)
{
    struct pair *pair = arg;
    while (!over) { aim(&pair->address, bad); aim(&pair->address, good); }
    return NULL;
}
static void *connect_flipped(void *arg)
{
    struct pair *pair = arg;
    while (!over) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        iterations++;
        if (connect(fd, (struct sockaddr *)&pair->address, sizeof pair->address) == 0) reached++;
        close(fd);
    }
    return NULL;
}
static void *swap_descriptor(void *arg)
{
    struct pair *pair = arg;
    while (!over) {
        int local = socket(AF_UNIX, SOCK_STREAM, 0), internet = socket(AF_INET, SOCK_STREAM, 0);
        for (int i = 0; i < 50; i++) { dup2(internet, pair->number); dup2(local, pair->number); }
        close(local); close(internet);
    }
    return NULL;
}
static void *connect_swapped(void *arg)
{
    struct pair *pair = arg;
    struct sockaddr_un address;
    for (long i = 0; !over; i++) {
        aim(&address, i % 2 ? bad : good);
        iterations++;
        if (connect(pair->number, (struct sockaddr *)&address, sizeof address) == 0) reached++;
    }
    return NULL;
}
int main(int argc, char **argv)
{
    static struct pair pairs[4];
    pthread_t threads[8];
    int swap = argv[1][0] == 's';
    good = argv[2]; bad = argv[3];
    for (int i = 0; i < 4; i++) {
        aim(&pairs[i].address, good);
        pairs[i].number = 100 + i;
        dup2(0, 100 + i);
        pthread_create(&threads[2 * i], NULL, swap ? swap_descriptor : flip_address, &pairs[i]);
        pthread_create(&threads[2 * i + 1], NULL, swap ? connect_swapped : connect_flipped, &pairs[i]);
    }
    struct timespec pause = { 2, 300000000 }, more = { 0, 100000000 };
    nanosleep(&pause, NULL);
    for (int i = 0; i < 200 && (iterations <= 1000 || reached <= 100); i++) /* a busy machine needs longer */
        nanosleep(&more, NULL);
    over = 1;
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    printf("%ld %ld\n", iterations, reached);
    return 0;
}
"""


@pytest.mark.attack(115)
@pytest.mark.attack(116)
@pytest.mark.parametrize("mode", ["flip-address", "swap-descriptor"])
def test_races_for_the_forbidden_socket_are_lost(
    netsandbox: Any, canary: Any, probe: Any, short_tmp: Path, mode: str
) -> None:
    """115: threads rewrite the address while it is judged; 116: they put another socket under the same number."""
    good, bad = canary.unix(short_tmp / "good.sock"), canary.unix(short_tmp / "evil.sock")
    program, argument = probe("race", RACE), "swap" if mode == "swap-descriptor" else "flip"
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", program, argument, good.path, bad.path)
    iterations, reached = map(int, run.stdout.split())
    assert (run.returncode, bad.accepts) == (0, 0)
    assert iterations > 1000
    assert reached > 100
    assert good.accepts > 100


@pytest.mark.open_files
@pytest.mark.attack(146)
@pytest.mark.attack(147)
@pytest.mark.attack(149)
@pytest.mark.parametrize("late", [False, True], ids=["before-first-use", "after-first-use"])
def test_another_socket_put_under_the_allowed_name_is_refused(
    netsandbox: Any, canary: Any, short_tmp: Path, late: bool
) -> None:
    """By symbolic link, hard link, rename, and a renamed folder; the user meant the socket that was there."""
    inner = short_tmp / "folder"
    inner.mkdir()
    inner.chmod(0o777)
    good, bad = canary.unix(inner / "good.sock", echo=True), canary.unix(short_tmp / "bad.sock", echo=True)
    body = f"""
good, bad, folder = {good.path!r}, {bad.path!r}, {str(inner)!r}
if {late}:
    report(first=lambda: talk(good))
os.rename(good, good + ".kept")
os.symlink(bad, good); report(symlink=lambda: talk(good)); os.unlink(good)
os.link(bad, good); report(hardlink=lambda: talk(good)); os.unlink(good)
os.rename(bad, good); report(renamed=lambda: talk(good)); os.rename(good, bad)
os.rename(folder, folder + "2"); os.mkdir(folder); os.link(bad, good); report(folder=lambda: talk(good))
report(kept=lambda: talk(folder + "2/good.sock.kept"))
"""
    run = netsandbox("run", "--allow-unix-socket", good.path, "--", netsandbox.python, "-c", script(body))
    found = results(run)
    if late:
        assert found.pop("first") == "hello"
    assert found.pop("kept") == "hello"  # the twin: it is the inode that counts
    assert found == dict.fromkeys(("symlink", "hardlink", "renamed", "folder"), "EACCES")
    assert bad.accepts == 0


@pytest.mark.open_files
def test_a_server_that_makes_its_socket_anew_is_still_the_one_meant(
    netsandbox: Any, canary: Any, short_tmp: Path
) -> None:
    body = """
print("ready", flush=True); sys.stdin.readline()
report(again=lambda: talk(sys.argv[1]))
"""
    path = short_tmp / "server.sock"
    first = canary.unix(path, echo=True)
    option = ("--allow-unix-socket", path)
    running = netsandbox.spawn("run", *option, "--", netsandbox.python, "-c", script(body), path, stdin=-1)
    running.read_until(b"ready")
    first.close()
    path.unlink()
    second = canary.unix(path, echo=True)
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    assert b"hello" in running.read_until(b"}")
    assert (first.accepts, second.accepts) == (0, 1)


RACES = Path(__file__).parent.parent / "rig" / "unix_races.c"  # bench/soak runs it a million times
ROUNDS = {"bind": 1000}


@pytest.mark.attack(115)
@pytest.mark.attack(116)
@pytest.mark.attack(146)
@pytest.mark.attack(147)
@pytest.mark.attack(149)
@pytest.mark.parametrize(
    ("mode", "files"),
    [
        *((mode, "project") for mode in ("address", "descriptor", "hardlink", "symlink", "folder", "inode", "bind")),
        *(("exchange", files) for files in ("project", "readable", "open")),
    ],
)
def test_no_race_in_a_shared_folder_reaches_the_host_or_lets_it_in(
    netsandbox: Any, canary: Any, probe: Any, mode: str, files: str
) -> None:
    """The session's own socket is reached meanwhile; a program of the host tries each name that the session binds."""
    work, rounds = netsandbox.home().work, ROUNDS.get(mode, 10_000)
    host = canary.unix(work / "host.sock")
    program = probe("unix_races", RACES.read_text())
    command = ("run", "--files", files, "--allow-read", Path(program).parent, "--", program, mode, str(rounds))
    running = netsandbox.spawn(*command)
    came = 0
    while mode == "bind" and running.process.poll() is None:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            came += client.connect_ex(str(work / "bound.sock")) == 0
    assert running.wait(timeout=120) == 0
    calls, reached = map(int, running.read_until(b"\n").split())
    assert calls >= rounds
    assert reached < calls  # some were aimed at the host, or nothing raced
    assert reached > (0 if mode in ("inode", "descriptor", "bind") else rounds // 50)
    assert (host.accepts, came) == (0, 0)
