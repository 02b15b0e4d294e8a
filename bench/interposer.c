/* What the preload library costs a program. Linked dynamically, or it would not be there at all. Loopback only.
 *
 *   interposer connects AT AT_PORT TO TO_PORT BLOCKS   a listener at AT, made past the library; connect() and close()
 *                                                      by the library to TO and past it to AT, in turns
 *   interposer inside PORT BLOCKS                      the same, the listener made by bind() as any program would
 *   interposer binds FIRST COUNT                       bind() of ports never asked for, then of the same ones again
 *   interposer asks FIRST COUNT                        only the question to the supervisor, for ports never asked for
 *
 * Prints one JSON line of nanoseconds. `connects` and `inside` give the middle of each block of connections, in which
 * the one thread that connects also accepts, outside the time taken: no scheduler is in the figures. Run without the
 * library both ways are the same, which shows how far the figures can be trusted.
 */
#define _GNU_SOURCE
#include "../interpose/src/portmap.h"
#include "loopback.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EACH = 50, MOST = 4096, WARM_UP = 4 };

typedef int (*name_call)(int, const struct sockaddr *, socklen_t);

static name_call by_library, past_library;

static int new_socket(void)
{
    struct linger reset = {1, 0}; /* no TIME_WAIT: ports would run out */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        stop("socket");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    return fd;
}

static void find_calls(const char *call)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

    *(void **)&by_library = dlsym(RTLD_DEFAULT, call);
    *(void **)&past_library = libc ? dlsym(libc, call) : NULL;
    if (by_library == NULL || past_library == NULL)
        stop("dlsym");
}

static int by_size(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, const long *figures, int count, const char *end)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%ld", i ? ", " : "", figures[i]);
    printf("]%s", end);
}

static long block(int listener, name_call call, const struct sockaddr_in *to)
{
    long taken[EACH];

    for (int i = 0; i < EACH; i++) {
        int fd = new_socket(), accepted;
        long began = now();
        int failed = call(fd, (const struct sockaddr *)to, sizeof *to);

        close(fd);
        taken[i] = now() - began;
        if (failed)
            stop("connect");
        accepted = (int)syscall(SYS_accept4, listener, NULL, NULL, 0);
        if (accepted < 0)
            stop("accept");
        close(accepted);
    }
    qsort(taken, EACH, sizeof *taken, by_size);
    return taken[EACH / 2];
}

static int compare(int listener, struct sockaddr_in at, struct sockaddr_in to, int blocks)
{
    static long hooked[MOST], real[MOST];
    cpu_set_t one;

    if (blocks < 1 || blocks > MOST)
        return 2;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    find_calls("connect");
    for (int i = -WARM_UP; i < blocks; i++) {
        int into = i < 0 ? 0 : i;
        if (i % 2) { /* whoever goes second finds warmer caches */
            hooked[into] = block(listener, by_library, &to);
            real[into] = block(listener, past_library, &at);
        } else {
            real[into] = block(listener, past_library, &at);
            hooked[into] = block(listener, by_library, &to);
        }
    }
    printf("{");
    print("hooked", hooked, blocks, ", ");
    print("real", real, blocks, "}\n");
    return 0;
}

static int connects(const struct sockaddr_in at, const struct sockaddr_in to, int blocks)
{
    int listener = new_socket(), on = 1;

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (syscall(SYS_bind, listener, &at, sizeof at) || syscall(SYS_listen, listener, 16))
        stop("bind");
    return compare(listener, at, to, blocks);
}

static int inside(int port, int blocks)
{
    struct sockaddr_in to = place("127.0.0.1", port), at;
    socklen_t size = sizeof at;
    int listener = new_socket();

    if (bind(listener, (struct sockaddr *)&to, sizeof to) || listen(listener, 16))
        stop("bind");
    if (syscall(SYS_getsockname, listener, &at, &size))
        stop("getsockname");
    return compare(listener, at, to, blocks);
}

static long bind_once(int port)
{
    struct sockaddr_in name = place("127.0.0.1", port);
    int fd = new_socket(), on = 1;
    long began, taken;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* as servers do */
    began = now();
    if (bind(fd, (struct sockaddr *)&name, sizeof name))
        stop("bind");
    taken = now() - began;
    close(fd);
    return taken;
}

static int binds(int first, int count)
{
    static long new[MOST], again[MOST];

    for (int i = 0; i < count; i++) {
        new[i] = bind_once(first + i);
        again[i] = bind_once(first + i);
    }
    printf("{");
    print("new", new, count, ", ");
    print("again", again, count, "}\n");
    return 0;
}

static const struct ns_map *open_map(void)
{
    const char *path = getenv("NETSANDBOX_PORT_MAP");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct ns_map), PROT_READ, MAP_SHARED, fd, 0);

    if (map == MAP_FAILED)
        stop("NETSANDBOX_PORT_MAP");
    close(fd);
    return map;
}

static long ask_once(const struct ns_map *map, int port)
{
    struct sockaddr_in door = place("127.0.0.1", map->door);
    struct ns_request request = {
        .magic = NS_MAP_MAGIC, .operation = NS_REQUEST_BIND, .port = (uint16_t)port, .address = {127, 0, 0, 1}, .protocol = 6};
    struct ns_reply reply;
    long began = now(), taken;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(request.token, map->token, sizeof request.token);
    if (past_library(fd, (struct sockaddr *)&door, sizeof door) || send(fd, &request, sizeof request, 0) < 0 ||
        recv(fd, &reply, sizeof reply, MSG_WAITALL) != sizeof reply || reply.error)
        stop("ask");
    close(fd);
    taken = now() - began;
    return taken;
}

static int asks(int first, int count)
{
    static long taken[MOST];
    const struct ns_map *map = open_map();

    find_calls("connect");
    for (int i = 0; i < count; i++)
        taken[i] = ask_once(map, first + i);
    printf("{");
    print("ask", taken, count, "}\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "connects") == 0)
        return connects(place(argv[2], atoi(argv[3])), place(argv[4], atoi(argv[5])), atoi(argv[6]));
    if (argc == 4 && strcmp(argv[1], "inside") == 0)
        return inside(atoi(argv[2]), atoi(argv[3]));
    if (argc == 4 && atoi(argv[3]) <= MOST && strcmp(argv[1], "binds") == 0)
        return binds(atoi(argv[2]), atoi(argv[3]));
    if (argc == 4 && atoi(argv[3]) <= MOST && strcmp(argv[1], "asks") == 0)
        return asks(atoi(argv[2]), atoi(argv[3]));
    fprintf(stderr, "usage: interposer connects|inside|binds|asks …; see interposer.c\n");
    return 2;
}
