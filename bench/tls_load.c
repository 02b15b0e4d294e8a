/* Load for inspection: HTTPS by a CONNECT proxy, run inside a session or outside it. Every socket goes to 127.0.0.1.
 *
 *   tls_load requests PROXY TARGET NAME PATH AT_ONCE SECONDS     requests, each thread on one connection
 *   tls_load connections PROXY TARGET NAME PATH AT_ONCE SECONDS  new connections, a TLS handshake and a request in each
 *   tls_load hold PROXY TARGET NAME PATH COUNT -                 COUNT connections that have carried one request and are
 *                                                                idle now; ends at the end of standard input
 *
 * TARGET is what CONNECT names (HOST:PORT), NAME what the handshake and Host name (HOST:PORT). The first two print one
 * JSON line, `hold` prints "held COUNT". No session is resumed, and the certificate is not looked at: each contestant
 * presents a different one, and its check costs a client the same.
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { BUFFER = 65536, MAX_THREADS = 64, PATIENCE_SECONDS = 20 };

struct connection {
    int fd;
    SSL *tls;
};

static SSL_CTX *context;
static int proxy_port;
static char connect_head[512], request[1024], name[256];
static long ends_at;
static atomic_long good, failed, bytes;

static void hang_up(struct connection *c)
{
    SSL_free(c->tls);
    if (c->fd >= 0)
        close(c->fd);
}

/* 0 when the proxy made the tunnel. */
static int tunnel(int fd)
{
    char answer[2048];
    size_t size = 0;

    if (send(fd, connect_head, strlen(connect_head), MSG_NOSIGNAL) < 0)
        return -1;
    while (size < sizeof answer - 1) {
        ssize_t got = recv(fd, answer + size, 1, 0); /* byte by byte: what follows is TLS */
        if (got <= 0)
            return -1;
        size += (size_t)got;
        answer[size] = 0;
        if (strstr(answer, "\r\n\r\n") != NULL)
            return strncmp(answer + 9, "200", 3) == 0 ? 0 : -1;
    }
    return -1;
}

static int dial(struct connection *c)
{
    struct sockaddr_in to = place("127.0.0.1", proxy_port);
    struct timeval patience = {PATIENCE_SECONDS, 0};
    int on = 1;

    c->tls = SSL_new(context);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0 || tunnel(c->fd) != 0)
        return -1;
    SSL_set_fd(c->tls, c->fd);
    SSL_set_tlsext_host_name(c->tls, name);
    return SSL_connect(c->tls) == 1 ? 0 : -1;
}

/* One request and its whole response; 0 when it said 200. */
static int exchange(struct connection *c, char *buffer)
{
    size_t size = 0;
    char *end = NULL, *length;
    long missing;

    if (SSL_write(c->tls, request, (int)strlen(request)) <= 0)
        return -1;
    while (end == NULL) {
        int got = SSL_read(c->tls, buffer + size, (int)(BUFFER - 1 - size));
        if (got <= 0)
            return -1;
        size += (size_t)got;
        buffer[size] = 0;
        end = strstr(buffer, "\r\n\r\n");
    }
    length = strcasestr(buffer, "content-length:");
    if (strncmp(buffer + 9, "200", 3) != 0 || length == NULL)
        return -1;
    missing = atol(length + 15);
    atomic_fetch_add(&bytes, missing);
    missing -= (long)(size - (size_t)(end + 4 - buffer));
    while (missing > 0) {
        int got = SSL_read(c->tls, buffer, BUFFER);
        if (got <= 0)
            return -1;
        missing -= got;
    }
    return 0;
}

static void *requests(void *unused)
{
    char *buffer = malloc(BUFFER);
    struct connection c;

    (void)unused;
    if (dial(&c) != 0)
        atomic_fetch_add(&failed, 1);
    else
        while (now() < ends_at)
            if (exchange(&c, buffer) == 0)
                atomic_fetch_add(&good, 1);
            else {
                atomic_fetch_add(&failed, 1);
                break;
            }
    hang_up(&c);
    free(buffer);
    return NULL;
}

static void *connections(void *unused)
{
    char *buffer = malloc(BUFFER);

    (void)unused;
    while (now() < ends_at) {
        struct connection c;
        atomic_fetch_add(dial(&c) == 0 && exchange(&c, buffer) == 0 ? &good : &failed, 1);
        hang_up(&c);
    }
    free(buffer);
    return NULL;
}

static int run(void *(*work)(void *), int at_once, double seconds)
{
    pthread_t threads[MAX_THREADS];
    long began = now();
    double took;

    if (at_once < 1 || at_once > MAX_THREADS)
        return 2;
    ends_at = began + (long)(seconds * 1e9);
    for (int i = 0; i < at_once; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < at_once; i++)
        pthread_join(threads[i], NULL);
    took = (double)(now() - began) * 1e-9;
    printf("{\"good\": %ld, \"failed\": %ld, \"per_second\": %.1f, \"megabytes_per_second\": %.1f}\n", (long)good,
           (long)failed, (double)good / took, (double)bytes / took / 1e6);
    return good && !failed ? 0 : 1;
}

static int hold(int count)
{
    struct connection *all = calloc((size_t)count, sizeof *all);
    char *buffer = malloc(BUFFER), byte;
    struct rlimit files;
    int held = 0;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < count; i++)
        held += dial(&all[i]) == 0 && exchange(&all[i], buffer) == 0;
    printf("held %d\n", held);
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: tls_load requests|connections|hold …; see tls_load.c\n");
        return 2;
    }
    proxy_port = atoi(argv[2]);
    snprintf(connect_head, sizeof connect_head, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[3], argv[3]);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n", argv[5],
             argv[4]);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[4], ":"), argv[4]);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x08http/1.1", 9);
    if (strcmp(argv[1], "hold") == 0)
        return hold(atoi(argv[6]));
    return run(strcmp(argv[1], "requests") == 0 ? requests : connections, atoi(argv[6]), atof(argv[7]));
}
