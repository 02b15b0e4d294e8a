/* Load for CONNECT proxies, run inside a session or outside it. Every socket goes to 127.0.0.1.
 *
 *   load tunnels PROXY HOST PORT get|hello AT_ONCE TOTAL   new tunnels, one exchange in each; prints one JSON line
 *   load hold PROXY HOST PORT COUNT                        COUNT tunnels that have carried one GET and are idle now;
 *                                                          prints "held COUNT", ends at the end of standard input
 *   load churn PORT TOTAL                                  connect and close, one after the other; prints ns each
 *
 * `hello` sends a ClientHello with HOST as its SNI and waits for any TLS record: the handshake need not succeed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 16384, MAX_THREADS = 256, WARM_UP = 200, PATIENCE_SECONDS = 10 };

struct text {
    char bytes[1024];
    size_t size;
};

static int proxy_port;
static struct text connect_head, payload;
static int is_hello, total;
static double *latencies;
static atomic_int next_number, failures;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int dial(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval patience = {PATIENCE_SECONDS, 0};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static int say(int fd, const struct text *text)
{
    return send(fd, text->bytes, text->size, MSG_NOSIGNAL) == (ssize_t)text->size ? 0 : -1;
}

/* Reads a response head and its body; 0 when it said 200. */
static int hear_http(int fd, int has_body)
{
    char buffer[BUFFER];
    size_t size = 0;
    char *end = NULL, *length;
    long missing;

    while (end == NULL) {
        ssize_t got = recv(fd, buffer + size, sizeof buffer - 1 - size, 0);
        if (got <= 0)
            return -1;
        size += (size_t)got;
        buffer[size] = 0;
        end = strstr(buffer, "\r\n\r\n");
    }
    if (strncmp(buffer + 9, "200", 3) != 0)
        return -1;
    length = strcasestr(buffer, "content-length:");
    if (!has_body || length == NULL)
        return has_body ? -1 : 0;
    missing = atol(length + 15) - (long)(size - (size_t)(end + 4 - buffer));
    while (missing > 0) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0)
            return -1;
        missing -= got;
    }
    return 0;
}

static int hear_record(int fd)
{
    unsigned char record[BUFFER];
    return recv(fd, record, sizeof record, 0) > 0 && record[0] >= 20 && record[0] <= 23 ? 0 : -1;
}

/* A tunnel that has carried one exchange, or -1. */
static int open_tunnel(void)
{
    int fd = dial(proxy_port);
    if (fd < 0)
        return -1;
    if (say(fd, &connect_head) == 0 && hear_http(fd, 0) == 0 && say(fd, &payload) == 0 &&
        (is_hello ? hear_record(fd) : hear_http(fd, 1)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void *work(void *unused)
{
    (void)unused;
    for (;;) {
        int number = atomic_fetch_add(&next_number, 1), fd;
        double began = now();
        if (number >= total)
            return NULL;
        fd = open_tunnel();
        latencies[number] = fd < 0 ? -1 : now() - began;
        if (fd < 0)
            atomic_fetch_add(&failures, 1);
        else
            close(fd);
    }
}

static void put(struct text *text, const void *bytes, size_t size)
{
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

static void put16(struct text *text, size_t number)
{
    unsigned char bytes[2] = {(unsigned char)(number >> 8), (unsigned char)number};
    put(text, bytes, 2);
}

/* RFC 8446 4.1.2, with server_name and supported_versions only. */
static void write_hello(struct text *text, const char *host)
{
    size_t name = strlen(host), extensions = 4 + 5 + name + 4 + 3, body = 2 + 32 + 1 + 2 + 2 + 2 + 2 + extensions;
    char random[32];

    memset(random, 7, sizeof random);
    put(text, "\x16\x03\x01", 3);
    put16(text, body + 4);
    put(text, "\x01\x00", 2);
    put16(text, body);
    put(text, "\x03\x03", 2);
    put(text, random, sizeof random);
    put(text, "\x00\x00\x02\x13\x01\x01\x00", 7);
    put16(text, extensions);
    put16(text, 0);
    put16(text, name + 5);
    put16(text, name + 3);
    put(text, "\x00", 1);
    put16(text, name);
    put(text, host, name);
    put(text, "\x00\x2b\x00\x03\x02\x03\x04", 7);
}

static void prepare(char **argv, int hello)
{
    const char *host = argv[1], *port = argv[2];

    proxy_port = atoi(argv[0]);
    connect_head.size = (size_t)snprintf(connect_head.bytes, sizeof connect_head.bytes,
                                         "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port, host, port);
    is_hello = hello;
    if (hello)
        write_hello(&payload, host);
    else
        payload.size = (size_t)snprintf(payload.bytes, sizeof payload.bytes,
                                        "GET /small HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int tunnels(int at_once)
{
    pthread_t threads[MAX_THREADS];
    double began, seconds, *passed;
    int i, good;

    for (i = 0; i < WARM_UP; i++) {
        int fd = open_tunnel();
        if (fd >= 0)
            close(fd);
    }
    latencies = calloc((size_t)total, sizeof *latencies);
    if (latencies == NULL || at_once < 1 || at_once > MAX_THREADS)
        return 2;
    began = now();
    for (i = 0; i < at_once; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (i = 0; i < at_once; i++)
        pthread_join(threads[i], NULL);
    seconds = now() - began;
    qsort(latencies, (size_t)total, sizeof *latencies, by_size);
    passed = latencies + failures;
    good = total - failures;
    printf("{\"good\": %d, \"failed\": %d, \"per_second\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n", good,
           (int)failures, good / seconds, good ? passed[good / 2] * 1e3 : 0, good ? passed[(long)good * 99 / 100] * 1e3 : 0);
    return good ? 0 : 1;
}

static int hold(int count)
{
    struct rlimit files;
    char byte;
    int held = 0, i;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (i = 0; i < count; i++)
        held += open_tunnel() >= 0;
    printf("held %d\n", held);
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

static int churn(int port, int count)
{
    struct linger reset = {1, 0};
    double began = now();
    int i, bad = 0;

    for (i = 0; i < count; i++) {
        int fd = dial(port);
        bad += fd < 0;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    printf("%.0f\n", (now() - began) / count * 1e9);
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "tunnels") == 0) {
        prepare(argv + 2, strcmp(argv[5], "hello") == 0);
        total = atoi(argv[7]);
        return tunnels(atoi(argv[6]));
    }
    if (argc == 6 && strcmp(argv[1], "hold") == 0) {
        prepare(argv + 2, 0);
        return hold(atoi(argv[5]));
    }
    if (argc == 4 && strcmp(argv[1], "churn") == 0)
        return churn(atoi(argv[2]), atoi(argv[3]));
    fprintf(stderr, "usage: load tunnels|hold|churn …; see load.c\n");
    return 2;
}
