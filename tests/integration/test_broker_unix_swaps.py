"""A session moves a socket of the host to the name that it binds just then: the host's socket is not its own by that.

The verdict is the canary's: the host's server counts its accepts.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE, lines

pytestmark = [pytest.mark.open_files, pytest.mark.ordinary_user]
BROKER = ("--backend", "broker", "--files", "project")
ROUNDS = 12

# Each round binds a new name, while another thread moves the host's socket there as soon as the name is seen.
SWAP = (
    PRELUDE
    + r"""
#include <pthread.h>
#include <sys/un.h>
static char wanted[32], now[32] = "host.sock";
static volatile int ready;
static struct sockaddr_un named(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, name);
    return address;
}
static int dial(const char *name)
{
    struct sockaddr_un address = named(name);
    int s = socket(AF_UNIX, SOCK_STREAM, 0), result = connect(s, (void *)&address, sizeof address), kept = errno;
    close(s);
    errno = kept;
    return result;
}
static void *move(void *unused)
{
    struct stat found;
    ready = 1;
    for (int tries = 0; tries < 2000000 && stat(wanted, &found) < 0; tries++) ;
    if (rename(now, wanted) == 0) strcpy(now, wanted);
    return unused;
}
int main(int argc, char **argv)
{
    struct stat found;
    printf("ready\n");
    fflush(stdout);
    for (int tries = 0; tries < 100000000 && stat(now, &found) < 0; tries++) ;
    for (int round = 0; round < atoi(argv[1]); round++) {
        pthread_t thread;
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        struct sockaddr_un address;
        snprintf(wanted, sizeof wanted, "own-%d.sock", round);
        address = named(wanted);
        ready = 0;
        pthread_create(&thread, NULL, move, NULL);
        while (!ready) ;
        bind(s, (void *)&address, sizeof address);
        pthread_join(thread, NULL);
    }
    said("moved", strcmp(now, "host.sock") ? "ok" : "never");
    TRY("host", dial(now));
    struct sockaddr_un address = named("twin.sock");
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(s, (void *)&address, sizeof address);
    listen(s, 1);
    TRY("twin", dial("twin.sock"));
    return 0;
}
"""
)


@pytest.mark.attack(146)
def test_a_new_socket_of_the_host_does_not_become_the_sessions(
    netsandbox: Any, probe: Any, canary: Any, identity: Any
) -> None:
    home = netsandbox.home()
    program = str(probe("unix-swap", SWAP))
    running = netsandbox.spawn("run", *BROKER, "--", program, str(ROUNDS), cwd=home.work)
    running.read_until(b"ready\n")
    made = home.work.parent / "host.sock"
    server = canary.unix(made)
    os.chown(made, identity.uid, identity.gid)
    made.rename(home.work / made.name)
    found = lines(running.read_until(b"twin ok\n").decode().removeprefix("ready\n"))
    assert server.accepts == 0, found
    assert found["host"] in ("EACCES", "ECONNREFUSED")  # the host's, or the stand-in that was put in its place
    assert found["twin"] == "ok"
