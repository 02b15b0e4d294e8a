/* Servers and clients for published ports: what is the same on both sides of a comparison. Loopback only.
 *
 *   stream serve PORT                      answers each connection: D and eight bytes of a count: sends that many;
 *                                          U and a count: takes that many and says one byte
 *   stream fetch ADDRESS PORT D|U BYTES    one such connection; prints GB/s
 *   stream relay PORT TO_PORT              carries connections to another port by splice(2), a thread for each way and
 *                                          nothing else: the least that a relay can be
 *   stream name PORT TEXT                  says "up" once it listens, then TEXT to everybody who connects
 *   stream listen                          a port on each line of standard input: listens there, prints the clock when
 *                                          listen() had returned, and lets go when the next line comes
 *   stream knock ADDRESS PORT SECONDS      connects until it is let in; prints the clock then
 *
 * The clock is CLOCK_MONOTONIC in nanoseconds, the same in a session and outside of it.
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 256 * 1024, PIPE = 1 << 20, BACKLOG = 128, NAP_NS = 20000 };

struct way {
    int from, to;
};

static int relay_to;
static const char *said;

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0)
        stop("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static int dial(const char *address, int port)
{
    struct sockaddr_in to = place(address, port);
    int fd = new_socket();

    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static int listen_at(int port)
{
    struct sockaddr_in at = place("127.0.0.1", port);
    int fd = new_socket(), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG))
        stop("listen");
    return fd;
}

static uint64_t give(int fd, uint64_t count)
{
    static const char buffer[BUFFER];

    while (count > 0) {
        ssize_t sent = send(fd, buffer, count < BUFFER ? count : BUFFER, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        count -= (uint64_t)sent;
    }
    return count;
}

static uint64_t take(int fd, uint64_t count)
{
    char buffer[BUFFER];

    while (count > 0) {
        ssize_t got = recv(fd, buffer, count < BUFFER ? count : BUFFER, 0);
        if (got <= 0)
            break;
        count -= (uint64_t)got;
    }
    return count;
}

static void *serve_one(void *number)
{
    int fd = (int)(intptr_t)number;
    char word[9];
    uint64_t count;

    if (recv(fd, word, sizeof word, MSG_WAITALL) == sizeof word) {
        memcpy(&count, word + 1, sizeof count);
        if (word[0] == 'D')
            give(fd, count);
        else if (take(fd, count) == 0)
            give(fd, 1);
    }
    close(fd);
    return NULL;
}

static void *carry(void *argument)
{
    struct way way = *(struct way *)argument;
    int pipe[2];

    free(argument);
    if (pipe2(pipe, O_CLOEXEC))
        stop("pipe");
    fcntl(pipe[1], F_SETPIPE_SZ, PIPE);
    for (;;) {
        ssize_t held = splice(way.from, NULL, pipe[1], NULL, PIPE, SPLICE_F_MOVE);
        if (held <= 0)
            break;
        while (held > 0) {
            ssize_t moved = splice(pipe[0], NULL, way.to, NULL, (size_t)held, SPLICE_F_MOVE);
            if (moved <= 0)
                break;
            held -= moved;
        }
        if (held > 0)
            break;
    }
    shutdown(way.to, SHUT_WR);
    shutdown(way.from, SHUT_RD);
    close(pipe[0]);
    close(pipe[1]);
    return NULL;
}

static pthread_t start_way(int from, int to)
{
    struct way *way = malloc(sizeof *way);
    pthread_t thread;

    *way = (struct way){from, to};
    pthread_create(&thread, NULL, carry, way);
    return thread;
}

static void *relay_one(void *number)
{
    int client = (int)(intptr_t)number, server = dial("127.0.0.1", relay_to);

    if (server >= 0) {
        pthread_t up = start_way(client, server), down = start_way(server, client);
        pthread_join(up, NULL);
        pthread_join(down, NULL);
        close(server);
    }
    close(client);
    return NULL;
}

static void *name_one(void *number)
{
    int fd = (int)(intptr_t)number;

    send(fd, said, strlen(said), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static _Noreturn void each_connection(int listener, void *(*handle)(void *))
{
    pthread_attr_t alone;

    pthread_attr_init(&alone);
    pthread_attr_setdetachstate(&alone, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t thread;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            pthread_create(&thread, &alone, handle, (void *)(intptr_t)fd);
    }
}

static int fetch(const char *address, int port, char way, uint64_t count)
{
    long began = now();
    int fd = dial(address, port);
    char word[9] = {way};

    if (fd < 0)
        stop("connect");
    memcpy(word + 1, &count, sizeof count);
    if (send(fd, word, sizeof word, MSG_NOSIGNAL) != sizeof word)
        stop("send");
    if (way == 'D' ? take(fd, count) : give(fd, count) || take(fd, 1))
        stop("cut short");
    printf("%.4f\n", (double)count / (double)(now() - began));
    return 0;
}

static _Noreturn void name(int port, const char *text)
{
    int listener = listen_at(port);

    said = text;
    puts("up");
    fflush(stdout);
    each_connection(listener, name_one);
}

static int listen_on_demand(void)
{
    char line[32];
    int fd = -1;

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (fd >= 0)
            close(fd);
        fd = atoi(line) > 0 ? listen_at(atoi(line)) : -1;
        printf("%ld\n", now());
        fflush(stdout);
    }
    return 0;
}

static int knock(const char *address, int port, int seconds)
{
    long end = now() + seconds * 1000000000L;
    const struct timespec nap = {0, NAP_NS};

    while (now() < end) {
        int fd = dial(address, port);
        if (fd >= 0) {
            printf("%ld\n", now());
            return 0;
        }
        nanosleep(&nap, NULL);
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(what, "serve") == 0)
        each_connection(listen_at(atoi(argv[2])), serve_one);
    if (argc == 6 && strcmp(what, "fetch") == 0)
        return fetch(argv[2], atoi(argv[3]), argv[4][0], strtoull(argv[5], NULL, 10));
    if (argc == 4 && strcmp(what, "relay") == 0) {
        relay_to = atoi(argv[3]);
        each_connection(listen_at(atoi(argv[2])), relay_one);
    }
    if (argc == 4 && strcmp(what, "name") == 0)
        name(atoi(argv[2]), argv[3]);
    if (argc == 2 && strcmp(what, "listen") == 0)
        return listen_on_demand();
    if (argc == 5 && strcmp(what, "knock") == 0)
        return knock(argv[2], atoi(argv[3]), atoi(argv[4]));
    fprintf(stderr, "usage: stream serve|fetch|relay|name|listen|knock …; see stream.c\n");
    return 2;
}
