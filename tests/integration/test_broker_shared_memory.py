"""Objects of System V without an IPC namespace: those of the host are out of reach. A session has
shared memory of its own, and neither semaphores nor queues.

The host's side reads back what the command tried to read, change and remove.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE, lines
from tests.rig.waiting import wait_for

pytestmark = [pytest.mark.open_files, pytest.mark.ordinary_user]
BROKER = ("--backend", "broker")
KEY = 0x6E000000 | os.getpid()  # tests run side by side

HEAD = (
    PRELUDE
    + r"""
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
"""
)
# Prints the ids of new objects with the key, and their content when it is told to end. Removes them.
HOST = (
    HEAD
    + r"""
int main(int argc, char **argv)
{
    key_t key = (key_t)strtoul(argv[1], NULL, 0);
    int segment = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
    int semaphores = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
    int queue = msgget(key, IPC_CREAT | IPC_EXCL | 0600);
    struct { long type; char text[8]; } message = { 1, "secret" };
    char *at = shmat(segment, NULL, 0);
    strcpy(at, "secret");
    msgsnd(queue, &message, sizeof message.text, 0);
    printf("%d %d %d\n", segment, semaphores, queue);
    fflush(stdout);
    getchar();
    printf("memory %s\n", at);
    TRY("segment", shmctl(segment, IPC_STAT, &(struct shmid_ds){ 0 }));
    printf("semaphore %d\n", semctl(semaphores, 0, GETVAL));
    TRY("queue", msgrcv(queue, &message, sizeof message.text, 1, IPC_NOWAIT));
    shmctl(segment, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
"""
)
INSIDE = (
    HEAD
    + r"""
static void by_id(const char *name, int segment, int semaphores, int queue)
{
    char text[64], *at = shmat(segment, NULL, 0);
    struct { long type; char text[8]; } message;
    struct sembuf up = { 0, 1, 0 };
    snprintf(text, sizeof text, "%s-shmat", name);
    tried(text, at == (void *)-1 ? -1 : 0);
    if (at != (void *)-1) strcpy(at, "changed");
    snprintf(text, sizeof text, "%s-semop", name);
    TRY(text, semop(semaphores, &up, 1));
    snprintf(text, sizeof text, "%s-semtimedop", name);
    TRY(text, semtimedop(semaphores, &up, 1, NULL));
    snprintf(text, sizeof text, "%s-setval", name);
    TRY(text, semctl(semaphores, 0, SETVAL, 7));
    snprintf(text, sizeof text, "%s-msgrcv", name);
    TRY(text, msgrcv(queue, &message, sizeof message.text, 0, IPC_NOWAIT));
    snprintf(text, sizeof text, "%s-remove", name);
    TRY(text, shmctl(segment, IPC_RMID, NULL));
    snprintf(text, sizeof text, "%s-remove-sem", name);
    TRY(text, semctl(semaphores, 0, IPC_RMID));
    snprintf(text, sizeof text, "%s-remove-msg", name);
    TRY(text, msgctl(queue, IPC_RMID, NULL));
}
int main(int argc, char **argv)
{
    key_t key = (key_t)strtoul(argv[1], NULL, 0);
    int segment;
    TRY("key-shm", shmget(key, 4096, 0));
    TRY("key-sem", semget(key, 1, 0));
    TRY("key-msg", msgget(key, 0));
    TRY("new-sem", semget(IPC_PRIVATE, 1, 0600));
    TRY("new-msg", msgget(IPC_PRIVATE, 0600));
    TRY("all-shm", shmctl(0, SHM_STAT, &(struct shmid_ds){ 0 }));
    TRY("all-sem", semctl(0, 0, SEM_STAT, &(struct semid_ds){ 0 }));
    TRY("all-msg", msgctl(0, MSG_STAT, &(struct msqid_ds){ 0 }));
    TRY("posix-queue", mq_open("/netsandbox-test", O_CREAT | O_RDWR, 0600, NULL));
    by_id("host", atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    segment = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
    said("same-id", shmget(key, 4096, 0) == segment ? "ok" : "other");
    TRY("again", shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600));
    TRY("stat", shmctl(segment, IPC_STAT, &(struct shmid_ds){ 0 }));
    TRY("own-shmat", shmat(segment, NULL, 0) == (void *)-1 ? -1 : 0);
    strcpy(shmat(segment, NULL, 0), "shared");
    said("shared", shmat(segment, NULL, 0));
    TRY("give-away", shmctl(segment, IPC_SET, &(struct shmid_ds){ 0 }));
    TRY("own-remove", shmctl(segment, IPC_RMID, NULL));
    TRY("gone", shmget(key, 4096, 0));
    printf("left %d\n", shmget(key, 4096, IPC_CREAT | 0600));
    fflush(stdout);
    if (argc > 5) pause();
    return 0;
}
"""
)
BY_ID = ("shmat", "semop", "semtimedop", "setval", "msgrcv", "remove", "remove-sem", "remove-msg")


@pytest.mark.attack(169)
def test_objects_of_the_host_are_out_of_reach_and_own_ones_work(netsandbox: Any, probe: Any, identity: Any) -> None:
    host_program = [*identity.prefix, str(probe("system-v-host", HOST)), hex(KEY)]
    inside = str(probe("system-v-inside", INSIDE))
    with subprocess.Popen(host_program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        ids = host.stdout.readline().split()
        run = netsandbox("run", *BROKER, "--", inside, hex(KEY), *ids)
        left = lines(host.communicate("\n")[0])
    found = lines(run.stdout)
    assert left == {"memory": "secret", "segment": "ok", "semaphore": "0", "queue": "ok"}, found
    assert {found[f"all-{kind}"] for kind in ("sem", "msg")} == {"ENOSYS"}
    assert {found[f"{way}-{kind}"] for way in ("key", "new") for kind in ("sem", "msg")} == {"ENOSYS"}
    assert (found["key-shm"], found["all-shm"], found["posix-queue"]) == ("ENOENT", "EPERM", "ENOSYS")
    refused = {name: "EINVAL" if name in ("shmat", "remove") else "ENOSYS" for name in BY_ID}
    assert {name: found[f"host-{name}"] for name in BY_ID} == refused
    assert (found["own-shmat"], found["shared"], found["own-remove"]) == ("ok", "shared", "ok")
    assert (found["same-id"], found["stat"], found["again"], found["gone"]) == ("ok", "ok", "EEXIST", "ENOENT")
    assert found["give-away"] == "EPERM"
    assert found["left"] not in segments()


def segments() -> list[str]:
    """The ids of all on this machine."""
    return [line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]


@pytest.mark.attack(243)
def test_no_segment_outlives_a_broker_that_is_killed(netsandbox: Any, probe: Any) -> None:
    """As one of a session that ends by itself; what the kernel keeps without a process would be the host's for ever."""
    program = str(probe("system-v-inside", INSIDE))
    running = netsandbox.spawn("run", *BROKER, "--", program, hex(KEY + 1), "0", "0", "0", "stay")
    running.read_until(b"left ")
    left = running.read_until(b"\n").decode().strip()
    assert left in segments()
    broker = min(each.pid for each in running.family() if each.name == "netsandbox-brok")
    os.kill(broker, signal.SIGKILL)
    running.wait()
    wait_for(lambda: left not in segments())
