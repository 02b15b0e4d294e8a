#include "system_v.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "calls.h"
#include "trap_pool.h"

#define MAX_OBJECTS 1024
#define PERMISSIONS 0777
#define LAST_COMMON 2 /* IPC_RMID, IPC_SET, IPC_STAT */

static struct object {
    enum system_v_kind { SEGMENT, SEMAPHORES, QUEUE } kind;
    key_t key;
    int id;
} objects[MAX_OBJECTS];
static size_t object_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct object *with_id(enum system_v_kind kind, int id)
{
    for (size_t number = 0; number < object_count; number++)
        if (objects[number].kind == kind && objects[number].id == id)
            return &objects[number];
    return NULL;
}

static struct object *with_key(enum system_v_kind kind, key_t key)
{
    for (size_t number = 0; key != IPC_PRIVATE && number < object_count; number++)
        if (objects[number].kind == kind && objects[number].key == key)
            return &objects[number];
    return NULL;
}

/* The object has no key on the host, so none of the host's is found, and nobody outside finds this one. */
static int make(enum system_v_kind kind, const struct seccomp_notif *call)
{
    int flags = (int)call->data.args[kind == QUEUE ? 1 : 2];
    int made_with = (kind == SEGMENT ? flags & ~(IPC_EXCL | PERMISSIONS) : 0) | IPC_CREAT | (flags & PERMISSIONS);

    switch (kind) {
    case SEGMENT:
        return shmget(IPC_PRIVATE, (size_t)call->data.args[1], made_with);
    case SEMAPHORES:
        return semget(IPC_PRIVATE, (int)call->data.args[1], made_with);
    default:
        return msgget(IPC_PRIVATE, made_with);
    }
}

static void destroy(const struct object *object)
{
    if (object->kind == SEGMENT)
        shmctl(object->id, IPC_RMID, NULL);
    else if (object->kind == SEMAPHORES)
        semctl(object->id, 0, IPC_RMID);
    else
        msgctl(object->id, IPC_RMID, NULL);
}

/* shmget, semget, msgget: 0 with the id, or an errno. */
static int get(enum system_v_kind kind, const struct seccomp_notif *call, int *id)
{
    key_t key = (key_t)call->data.args[0];
    int flags = (int)call->data.args[kind == QUEUE ? 1 : 2];
    struct object *found = with_key(kind, key);

    if (found != NULL) {
        *id = found->id;
        return (flags & IPC_CREAT) && (flags & IPC_EXCL) ? EEXIST : 0;
    }
    if (key != IPC_PRIVATE && !(flags & IPC_CREAT))
        return ENOENT;
    if (object_count == MAX_OBJECTS)
        return ENOSPC;
    *id = make(kind, call);
    if (*id < 0)
        return errno;
    objects[object_count++] = (struct object) { kind, key, *id };
    return 0;
}

/* Commands about all objects of the host have an index in place of the id. */
static int is_about_one(enum system_v_kind kind, int command)
{
    return command <= LAST_COMMON || (kind == SEGMENT && (command == SHM_LOCK || command == SHM_UNLOCK))
        || (kind == SEMAPHORES && command >= GETPID && command <= SETALL);
}

/* shmctl, semctl, msgctl: -1 if the call may go on, or what it gives. */
static int control(enum system_v_kind kind, const struct seccomp_notif *call)
{
    struct object *found = with_id(kind, (int)call->data.args[0]);
    int command = (int)call->data.args[kind == SEMAPHORES ? 2 : 1] & ~0x100; /* IPC_64 */

    if (!is_about_one(kind, command))
        return EPERM;
    if (found == NULL)
        return EINVAL;
    if (command != IPC_RMID)
        return -1;
    destroy(found); /* by us, so that it is forgotten before its id is used again */
    *found = objects[--object_count];
    return 0;
}

void serve_system_v(const struct seccomp_notif *call)
{
    int is_get = call->data.nr == SYS_shmget || call->data.nr == SYS_semget || call->data.nr == SYS_msgget;
    int is_control = call->data.nr == SYS_shmctl || call->data.nr == SYS_semctl || call->data.nr == SYS_msgctl;
    enum system_v_kind kind = QUEUE;
    int id = 0;
    int error;

    if (call->data.nr == SYS_shmget || call->data.nr == SYS_shmat || call->data.nr == SYS_shmctl)
        kind = SEGMENT;
    else if (call->data.nr == SYS_semget || call->data.nr == SYS_semop || call->data.nr == SYS_semtimedop
             || call->data.nr == SYS_semctl)
        kind = SEMAPHORES;
    pthread_mutex_lock(&lock);
    if (is_get)
        error = get(kind, call, &id);
    else if (is_control)
        error = control(kind, call);
    else
        error = with_id(kind, (int)call->data.args[0]) != NULL ? -1 : EINVAL;
    pthread_mutex_unlock(&lock);
    if (error < 0)
        let_go_on(call); /* the id is no pointer */
    else
        answer(call, error, id);
}

void system_v_end(void)
{
    pthread_mutex_lock(&lock);
    while (object_count > 0)
        destroy(&objects[--object_count]);
    pthread_mutex_unlock(&lock);
}
