"""Unix sockets of the host in the project, which a session exchanges with one that it is binding.

On a file system without birth times only the kernel knows which file the new socket has, so the scene is played on one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.rig.command import CommandLine
from tests.rig.probes import Probe

pytestmark = [pytest.mark.backend("broker"), pytest.mark.usefixtures("user_namespaces")]

# Exchanges the name of a socket of the host with that of one that is just being bound, then connects there. Prints how
# often the host's server answered, and whether a socket of its own does when nothing is exchanged.
SWAP = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#define TRIES 40
static volatile int swapping, bound;
static char path[64], host_path[64];
static void *swap(void *unused)
{
    for (;;) {
        while (!swapping);
        while (!bound && renameat2(AT_FDCWD, host_path, AT_FDCWD, path, 2) != 0);
        swapping = 0;
    }
    return unused;
}
static int answers(const char *expected)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct timeval wait = { 0, 200000 };
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), good = 0, accepted;
    char text[5] = "";
    strcpy(address.sun_path, path);
    bind(server, (void *)&address, sizeof address);
    bound = 1;
    while (swapping);
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    listen(server, 1);
    if (connect(client, (void *)&address, sizeof address) == 0) {
        if (strcmp(expected, "own") == 0 && (accepted = accept(server, NULL, NULL)) >= 0)
            good = write(accepted, "own", 3) == 3;
        good = read(client, text, 4) > 0 && strcmp(text, expected) == 0;
    }
    close(client);
    close(server);
    return good;
}
int main(int count, char **words)
{
    pthread_t thread;
    struct stat host, now;
    int reached = 0;
    pthread_create(&thread, NULL, swap, NULL);
    for (int number = 0; number < atoi(words[1]); number++) {
        snprintf(host_path, sizeof host_path, "host%d", number);
        if (stat(host_path, &host) < 0) return 1;
        for (int round = 0; round < TRIES; round++) {
            snprintf(path, sizeof path, "own%d.%d", number, round);
            bound = 0;
            swapping = 1;
            reached += answers("host");
            if (stat(path, &now) == 0 && now.st_ino == host.st_ino)
                rename(path, host_path);
            else if (stat(host_path, &now) < 0 || now.st_ino != host.st_ino)
                break; /* the binder removed that name for the new one */
        }
    }
    strcpy(path, "quiet");
    printf("%d %d\n", reached, answers("own"));
}
"""
# Plays the host in mounts of its own: the file system, the servers, and the session beside them.
HOST = """
import json, os, select, socket, subprocess, sys
folder, program, command = sys.argv[1], sys.argv[2], sys.argv[3:]
subprocess.run(["mount", "-t", "ramfs", "none", folder], check=True)
project = os.path.join(folder, "project")
os.mkdir(project)
os.chdir(project)
subprocess.run(["cp", program, "swap"], check=True)
servers = []
for number in range(24):
    servers.append(socket.socket(socket.AF_UNIX))
    servers[-1].bind(f"host{number}")
    servers[-1].listen(50)
session = subprocess.Popen([*command, "./swap", str(len(servers))], stdout=subprocess.PIPE, text=True)
accepts = 0
while session.poll() is None:
    for server in select.select(servers, [], [], 0.05)[0]:
        client = server.accept()[0]
        accepts += 1
        client.send(b"host")
        client.close()
print(json.dumps({"accepts": accepts, "session": session.stdout.read().split(), "status": session.returncode}))
"""


@pytest.mark.attack(116)
@pytest.mark.closed_files
def test_a_socket_of_the_host_is_not_taken_for_one_that_was_just_bound(netsandbox: CommandLine, probe: Probe) -> None:
    home = netsandbox.home()
    program = probe("swap-socket", SWAP, flags=("-pthread", "-include", "fcntl.h"))
    folder = home.path / "ram"
    folder.mkdir()
    run = [*home.identity.command, "run", "--backend", "broker", "-q", "--"]
    played = home.plainly(["unshare", "-Urm", sys.executable, "-c", HOST, str(folder), str(program), *run])
    assert played.returncode == 0, played.stderr
    found: dict[str, Any] = json.loads(played.stdout.splitlines()[-1])
    assert found == {"accepts": 0, "session": ["0", "1"], "status": 0}
