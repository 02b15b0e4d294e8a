#include "trap_pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK 262144

/* Linux 6.6: the caller's processor goes on with us at once, and back. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

int trap_listener;

int is_waiting(const struct seccomp_notif *call)
{
    uint64_t id = call->id;

    return ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

void let_go_on(const struct seccomp_notif *call)
{
    struct seccomp_notif_resp response = { .id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

    if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 && errno != ENOENT && errno != EINTR)
        _exit(1);
}

static void receive(struct seccomp_notif *call)
{
    struct pollfd watched = { .fd = trap_listener, .events = POLLIN };

    for (;;) {
        memset(call, 0, sizeof *call);
        if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_RECV, call) == 0)
            return;
        if (errno != EINTR && errno != ENOENT)
            _exit(1);
        if (poll(&watched, 1, 0) > 0 && !(watched.revents & POLLIN))
            for (;;) /* the last process is gone; the supervisor ends us after it has read our reports */
                pause();
    }
}

void take_listener(int listener)
{
    if (listener < 0)
        _exit(1);
    trap_listener = listener;
    ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* EINVAL before Linux 6.6 */
}

void receive_listener(int source)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    char kind;
    struct iovec vector = { &kind, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct cmsghdr *header;
    ssize_t length;
    int listener;

    do
        length = recvmsg(source, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    header = length == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof trap_listener))
        _exit(1); /* the session was not set up */
    memcpy(&listener, CMSG_DATA(header), sizeof listener);
    close(source);
    take_listener(listener);
}

/* One thread receives at a time, so only it uses what is static here. A call that may wait is finished by the thread
 * that received it, after another one has taken its place. */
static pthread_mutex_t receiving = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int receives;
static atomic_int spare; /* threads that wait for their turn */
static size_t threads;

static void (*serve)(struct seccomp_notif *call);

static void *serve_calls(void *unused);

int hand_over(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int failed;

    if (!receives)
        return 1;
    if (atomic_load(&spare) == 0) {
        if (threads == MAX_THREADS || pthread_attr_init(&attributes) != 0)
            return 0;
        atomic_fetch_add(&spare, 1);
        failed = pthread_attr_setstacksize(&attributes, STACK) != 0
            || pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) != 0
            || pthread_create(&thread, &attributes, serve_calls, NULL) != 0;
        pthread_attr_destroy(&attributes);
        if (failed) {
            atomic_fetch_sub(&spare, 1);
            return 0;
        }
        threads++;
    }
    receives = 0;
    pthread_mutex_unlock(&receiving);
    return 1;
}

static void *serve_calls(void *unused)
{
    struct seccomp_notif call;

    for (;;) {
        if (!receives) {
            pthread_mutex_lock(&receiving);
            atomic_fetch_sub(&spare, 1);
            receives = 1;
        }
        receive(&call);
        serve(&call);
        if (!receives)
            atomic_fetch_add(&spare, 1);
    }
    return unused;
}

static void raise_descriptor_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files); /* a lower limit only means fewer bound sockets */
    }
}

void serve_pool(void (*one)(struct seccomp_notif *call))
{
    serve = one;
    raise_descriptor_limit();
    atomic_fetch_add(&spare, 1);
    serve_calls(NULL);
    _exit(1);
}
