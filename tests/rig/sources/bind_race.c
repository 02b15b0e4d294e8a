/* Four pairs of threads race the judge of bind: bind_race flip|swap|aim OUTSIDE MILLISECONDS. Says "ready" and begins at a line of
 * input; goes on for that long, and then until it has tried and succeeded often enough, but not for ever.
 *
 * flip: one thread writes an allowed and a forbidden port into the address in turn, the other binds and listens with it.
 * swap: one thread puts sockets of other kinds under the number that the other binds (116).
 * aim: one thread connects the socket and takes that back, so that it has a port of the kernel's choice now and then.
 * Prints "ITERATIONS GOOD OUTSIDE": binds (or listens) that were tried, that came to be in the window, and elsewhere. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 4
#define LEAST_TRIED 1000
#define LEAST_GOOD 30
#define LONGEST 300 /* tenths of a second */

struct pair {
    volatile struct sockaddr_in name;
    atomic_int number; /* of the socket that is bound */
    int place;
};

static int base, count, outside;
static atomic_int over;
static atomic_long iterations, good, bad;

static struct sockaddr_in at(int port)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

/* Only sockets that listen, or are bound on purpose, count: a connect may have any port of its own. */
static void note(int fd, int listening)
{
    struct sockaddr_in6 own;
    socklen_t size = sizeof own;
    int accepts = 0, port;

    if (getsockname(fd, (void *)&own, &size) != 0)
        return;
    port = ntohs(own.sin6_port);
    size = sizeof accepts;
    if (listening && (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) != 0 || !accepts))
        return;
    if (port >= base && port < base + count)
        good++;
    else if (port != 0)
        bad++;
}

static void *flip(void *argument)
{
    struct pair *pair = argument;
    uint16_t allowed = htons(base + pair->place), forbidden = htons(outside);

    while (!over) {
        pair->name.sin_port = forbidden;
        pair->name.sin_port = allowed;
    }
    return NULL;
}

static void *bind_flipped(void *argument)
{
    struct pair *pair = argument;
    int on = 1;

    while (!over) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        iterations++;
        if (bind(fd, (struct sockaddr *)&pair->name, sizeof pair->name) == 0 && listen(fd, 1) == 0)
            note(fd, 1);
        close(fd);
    }
    return NULL;
}

static void *swap(void *argument)
{
    struct pair *pair = argument;

    while (!over) {
        int stream = socket(AF_INET, SOCK_STREAM, 0), datagram = socket(AF_INET, SOCK_DGRAM, 0);
        int six = socket(AF_INET6, SOCK_STREAM, 0);
        for (int i = 0; i < 50; i++) {
            dup2(i % 3 ? six : datagram, pair->number);
            dup2(stream, pair->number);
        }
        note(stream, 0);
        note(datagram, 0);
        note(six, 0);
        close(stream);
        close(datagram);
        close(six);
    }
    return NULL;
}

static void *bind_swapped(void *argument)
{
    struct pair *pair = argument;

    for (int i = 0; !over; i++) {
        struct sockaddr_in name = at(i % 4 == 3 ? outside : base + pair->place + PAIRS * (i % 8));
        iterations++;
        if (bind(pair->number, (struct sockaddr *)&name, sizeof name) == 0)
            listen(pair->number, 1);
    }
    return NULL;
}

static void *aim(void *argument)
{
    struct pair *pair = argument;
    struct sockaddr_in closed = at(1), none = { .sin_family = AF_UNSPEC };

    while (!over) {
        connect(pair->number, (struct sockaddr *)&closed, sizeof closed);
        connect(pair->number, (struct sockaddr *)&none, sizeof none);
    }
    return NULL;
}

static void *listen_aimed(void *argument)
{
    struct pair *pair = argument;

    while (!over) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        dup2(fd, pair->number);
        iterations++;
        if (listen(fd, 1) == 0)
            note(fd, 1);
        close(fd);
    }
    return NULL;
}

int main(int words, char **word)
{
    static struct pair pairs[PAIRS];
    void *(*disturb)(void *) = word[1][0] == 'f' ? flip : word[1][0] == 's' ? swap : aim;
    void *(*act)(void *) = word[1][0] == 'f' ? bind_flipped : word[1][0] == 's' ? bind_swapped : listen_aimed;
    pthread_t threads[2 * PAIRS];

    if (words != 4)
        return 2;
    puts("ready");
    fflush(stdout);
    getchar();
    outside = atoi(word[2]);
    base = atoi(getenv("LISTENING_BASE_PORT"));
    count = atoi(getenv("LISTENING_PORT_COUNT"));
    for (int i = 0; i < PAIRS; i++) {
        struct sockaddr_in name = at(base + i);
        memcpy((void *)&pairs[i].name, &name, sizeof name);
        pairs[i].place = i;
        pairs[i].number = 100 + i;
        dup2(0, 100 + i);
        pthread_create(&threads[2 * i], NULL, disturb, &pairs[i]);
        pthread_create(&threads[2 * i + 1], NULL, act, &pairs[i]);
    }
    for (int i = 0; i < LONGEST && (i < atoi(word[3]) / 100 || iterations <= LEAST_TRIED || good <= LEAST_GOOD); i++)
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
    over = 1;
    for (int i = 0; i < 2 * PAIRS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", iterations, good, bad);
    return 0;
}
