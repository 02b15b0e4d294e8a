#include "socket_table.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caller.h"
#include "channel.h"
#include "descendants.h"
#include "trap_pool.h"
#include "waiting_connect.h"

#define BUCKETS 1024       /* a power of two */
#define MANY 1024          /* new entries that a sweep is made for, besides as many as are in use */

static struct entry *buckets[BUCKETS];
static size_t held; /* copies */
static size_t added; /* entries since the last sweep */
static size_t alive; /* those that it found in use */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

int sweep_wish = -1;

void sockets_begin(void)
{
    sweep_wish = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sweep_wish < 0)
        fail("making an eventfd");
}

ino_t caller_inode(const struct seccomp_notif *call, int number)
{
    char what[32];
    char link[64];
    unsigned long inode;

    snprintf(what, sizeof what, "fd/%d", number);
    errno = 0;
    if (caller_link((pid_t)call->pid, what, link, sizeof link) > 0 && sscanf(link, "socket:[%lu]", &inode) == 1)
        return (ino_t)inode;
    errno = errno == ENOENT ? EBADF : ENOTSOCK;
    return 0;
}

static struct entry **place_in(ino_t inode)
{
    struct entry **at = &buckets[inode & (BUCKETS - 1)];

    while (*at != NULL && (*at)->inode != inode)
        at = &(*at)->next;
    return at;
}

/* No process has the socket any more. A lingering close would keep us waiting, and each thread that wants the lock. */
static void close_parts(struct entry *entry)
{
    const struct linger off = { 0, 0 };

    if (entry->copy >= 0) {
        setsockopt(entry->copy, SOL_SOCKET, SO_LINGER, &off, sizeof off);
        close(entry->copy);
        held--;
    }
    if (entry->near >= 0)
        close(entry->near);
    entry->copy = entry->near = -1;
}

static void unlink_entry(struct entry **at)
{
    struct entry *entry = *at;

    *at = entry->next;
    close_parts(entry);
    free(entry->name);
    free(entry);
}

struct entry *entry_add(int copy, int near, uint8_t kind, int family, int type, pid_t pid)
{
    struct entry *made = calloc(1, sizeof *made);
    struct entry **old;
    struct stat found;
    int wakes;

    if (made == NULL || fstat(copy, &found) < 0) {
        free(made);
        return NULL;
    }
    made->inode = found.st_ino;
    made->kind = kind;
    made->family = (uint8_t)family;
    made->type = (uint8_t)type;
    made->pid = pid;
    made->copy = copy;
    made->near = near;
    made->is_used = 1;
    pthread_mutex_lock(&lock);
    old = place_in(made->inode);
    if (*old != NULL && (*old)->is_used) { /* another thread still works with it */
        pthread_mutex_unlock(&lock);
        free(made);
        return NULL;
    }
    if (*old != NULL) /* its socket is gone: the kernel gave the number to ours */
        unlink_entry(old);
    made->next = buckets[made->inode & (BUCKETS - 1)];
    buckets[made->inode & (BUCKETS - 1)] = made;
    held++;
    wakes = ++added == alive + MANY;
    pthread_mutex_unlock(&lock);
    if (wakes)
        eventfd_write(sweep_wish, 1);
    return made;
}

struct entry *entry_take(ino_t inode)
{
    struct entry *found;

    if (inode == 0)
        return NULL;
    pthread_mutex_lock(&lock);
    while ((found = *place_in(inode)) != NULL && found->is_used) {
        pthread_mutex_unlock(&lock);
        if (!hand_over()) /* what holds it may wait for long, and other calls must go on */
            return NULL;
        pthread_mutex_lock(&lock);
        if ((found = *place_in(inode)) != NULL && found->is_used)
            pthread_cond_wait(&released, &lock);
    }
    if (found != NULL)
        found->is_used = 1;
    pthread_mutex_unlock(&lock);
    return found;
}

void entry_done(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    entry->is_used = 0;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

void entry_drop_copy(struct entry *entry)
{
    int copy = entry->copy;

    if (copy < 0)
        return;
    pthread_mutex_lock(&lock);
    entry->copy = -1;
    held--;
    pthread_mutex_unlock(&lock);
    close_copy(copy); /* it may linger */
}

void entry_remove(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    unlink_entry(place_in(entry->inode));
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

int is_stream_port(uint16_t port)
{
    int found = 0;

    pthread_mutex_lock(&lock);
    for (size_t bucket = 0; bucket < BUCKETS && !found; bucket++)
        for (struct entry *each = buckets[bucket]; each != NULL && !found; each = each->next)
            found = each->kind == KIND_STREAM && each->has_local && each->local.port == port;
    pthread_mutex_unlock(&lock);
    return found;
}

static int compare(const void *one, const void *other)
{
    ino_t first = *(const ino_t *)one;
    ino_t second = *(const ino_t *)other;

    return first < second ? -1 : first > second;
}

/* The inodes of all sockets that processes below this one have. NULL if they are not all known: then none is unused. */
static ino_t *open_sockets(size_t *found_count)
{
    size_t room = 256;
    ino_t *found = malloc(room * sizeof *found);
    size_t processes;
    pid_t *below = descendants(&processes);

    *found_count = 0;
    if (below == NULL) {
        free(found);
        return NULL;
    }
    for (size_t number = 0; found != NULL && number < processes; number++) {
        char path[64];
        DIR *descriptors;
        struct dirent *each;

        snprintf(path, sizeof path, "/proc/%d/fd", (int)below[number]);
        descriptors = opendir(path);
        if (descriptors == NULL) {
            if (errno == ENOENT || errno == ESRCH)
                continue; /* it has ended */
            if (errno == EACCES || errno == EPERM)
                continue; /* the binder, the spawner, or a program that cannot be read: its calls are refused */
            free(found);
            found = NULL;
            break;
        }
        while (found != NULL && (each = readdir(descriptors)) != NULL) {
            char link[64];
            unsigned long inode;
            ssize_t length = readlinkat(dirfd(descriptors), each->d_name, link, sizeof link - 1);

            link[length > 0 ? length : 0] = '\0';
            if (sscanf(link, "socket:[%lu]", &inode) != 1)
                continue;
            if (*found_count == room) {
                ino_t *more = realloc(found, 2 * room * sizeof *found);

                if (more == NULL)
                    free(found);
                found = more;
                room *= 2;
            }
            if (found != NULL)
                found[(*found_count)++] = (ino_t)inode;
        }
        closedir(descriptors);
    }
    free(below);
    if (found != NULL)
        qsort(found, *found_count, sizeof *found, compare);
    return found;
}

void sweep_sockets(int now)
{
    size_t open;
    ino_t *sockets = open_sockets(&open);

    if (sockets == NULL)
        return;
    pthread_mutex_lock(&lock);
    added = alive = 0;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++)
        for (struct entry **at = &buckets[bucket]; *at != NULL;) {
            struct entry *entry = *at;

            if (entry->is_used || bsearch(&entry->inode, sockets, open, sizeof *sockets, compare) != NULL) {
                entry->missing = 0;
                alive++;
            } else if (entry->missing++ > 0 || now) { /* one that is on its way in a message is in no process */
                unlink_entry(at);
                continue;
            }
            at = &entry->next;
        }
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
    free(sockets);
}

int is_sweep_due(void)
{
    int is_due;

    pthread_mutex_lock(&lock);
    is_due = held > 0 || added >= alive + MANY;
    pthread_mutex_unlock(&lock);
    return is_due;
}
