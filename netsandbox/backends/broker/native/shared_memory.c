#include "shared_memory.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "calls.h"
#include "trap_pool.h"

#define MAX_SEGMENTS 256
#define PERMISSIONS 0777
#define IPC_64 0x100

static struct segment {
    key_t key;
    int id;
    void *held; /* where we have it attached, which keeps it */
} segments[MAX_SEGMENTS];
static size_t segment_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct segment *with_id(int id)
{
    for (size_t number = 0; number < segment_count; number++)
        if (segments[number].id == id)
            return &segments[number];
    return NULL;
}

static struct segment *with_key(key_t key)
{
    for (size_t number = 0; key != IPC_PRIVATE && number < segment_count; number++)
        if (segments[number].key == key)
            return &segments[number];
    return NULL;
}

/* 0, or an errno. */
static int make(struct segment *made, size_t size, int flags)
{
    int error;

    made->id = shmget(IPC_PRIVATE, size, IPC_CREAT | (flags & PERMISSIONS));
    if (made->id < 0)
        return errno;
    made->held = shmat(made->id, NULL, 0);
    error = made->held == (void *)-1 ? errno : 0;
    shmctl(made->id, IPC_RMID, NULL);
    return error;
}

/* 0 with the id, or an errno. */
static int get(const struct seccomp_notif *call, int *id)
{
    struct segment made = { .key = (key_t)call->data.args[0] };
    int flags = (int)call->data.args[2];
    struct segment *found = with_key(made.key);
    int error;

    if (found != NULL) {
        *id = found->id;
        return (flags & IPC_CREAT) && (flags & IPC_EXCL) ? EEXIST : 0;
    }
    if (made.key != IPC_PRIVATE && !(flags & IPC_CREAT))
        return ENOENT;
    if (segment_count == MAX_SEGMENTS)
        return ENOSPC;
    error = make(&made, (size_t)call->data.args[1], flags);
    if (error)
        return error;
    segments[segment_count++] = made;
    *id = made.id;
    return 0;
}

/* -1 if the call may go on: the id is no pointer. Otherwise what it gives. */
static int use(const struct seccomp_notif *call)
{
    struct segment *found = with_id((int)call->data.args[0]);
    int command = call->data.nr == SYS_shmat ? IPC_STAT : (int)call->data.args[1] & ~IPC_64;

    if (command != IPC_STAT && command != IPC_RMID)
        return EPERM;
    if (found == NULL)
        return EINVAL;
    if (command == IPC_STAT)
        return -1;
    shmdt(found->held);
    *found = segments[--segment_count];
    return 0;
}

void serve_shared_memory(const struct seccomp_notif *call)
{
    int id = 0;
    int error;

    pthread_mutex_lock(&lock);
    error = call->data.nr == SYS_shmget ? get(call, &id) : use(call);
    pthread_mutex_unlock(&lock);
    if (error < 0)
        let_go_on(call);
    else
        answer(call, error, id);
}
