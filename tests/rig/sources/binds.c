/* Every way to say where a socket shall listen: binds libc|raw OUTSIDE, where OUTSIDE is a port that is not in the window.
 *
 * Prints "NAME ANSWER" for each: the name of the error, or "at PORT". What worked stays open; after "done" it waits until
 * its input ends. With `raw` the calls are made by the machine's own instruction, past every library. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

static int raw, base, last;

static long direct(long number, long a, long b, long c)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long call __asm__("x8") = number;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(second), "r"(third), "r"(call) : "memory");
#endif
    if (result < 0 && result > -4096) {
        errno = -(int)result;
        return -1;
    }
    return result;
}

static int do_bind(int fd, const void *name, socklen_t length)
{
    return raw ? (int)direct(SYS_bind, fd, (long)name, length) : bind(fd, name, length);
}

static int do_listen(int fd)
{
    return raw ? (int)direct(SYS_listen, fd, 8, 0) : listen(fd, 8);
}

static void say(const char *name, int fd, int failed)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;

    if (failed) {
        printf("%s %s\n", name, strerrorname_np(errno) ? strerrorname_np(errno) : "?");
        return;
    }
    getsockname(fd, (void *)&own, &size);
    printf("%s at %d\n", name, ntohs(((struct sockaddr_in *)&own)->sin_port));
}

static socklen_t spell(struct sockaddr_storage *name, const char *address, int port)
{
    struct sockaddr_in *four = (void *)name;
    struct sockaddr_in6 *six = (void *)name;

    memset(name, 0, sizeof *name);
    if (strchr(address, ':') == NULL) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        inet_pton(AF_INET, address, &four->sin_addr);
        return sizeof *four;
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    if (strncmp(address, "fe80", 4) == 0)
        six->sin6_scope_id = 1;
    inet_pton(AF_INET6, address, &six->sin6_addr);
    return sizeof *six;
}

static int try(const char *name, int type, const char *address, int port)
{
    struct sockaddr_storage where;
    socklen_t length = spell(&where, address, port);
    int fd = socket(where.ss_family, type, 0), on = 1;
    int failed = fd < 0;

    if (!failed && where.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, 26 /* IPV6_V6ONLY */, &on, sizeof on);
    if (!failed && strstr(name, "mapped") != NULL)
        setsockopt(fd, IPPROTO_IPV6, 26, &(int){ 0 }, sizeof on);
    failed = failed || do_bind(fd, &where, length) != 0 || (type == SOCK_STREAM && do_listen(fd) != 0);
    say(name, fd, failed);
    return fd;
}

static void spellings(int outside)
{
    try("outside-v4", SOCK_STREAM, "127.0.0.1", outside);
    try("outside-any", SOCK_STREAM, "0.0.0.0", outside);
    try("outside-v6", SOCK_STREAM, "::1", outside);
    try("outside-any6", SOCK_STREAM, "::", outside);
    try("outside-mapped", SOCK_STREAM, "::ffff:127.0.0.1", outside);
    try("outside-mapped-any", SOCK_STREAM, "::ffff:0.0.0.0", outside);
    try("outside-udp", SOCK_DGRAM, "127.0.0.1", outside);
    try("outside-udp6", SOCK_DGRAM, "::1", outside);
    try("outside-below", SOCK_STREAM, "127.0.0.1", base - 1);
    try("outside-above", SOCK_STREAM, "127.0.0.1", last + 1);
    try("low-80", SOCK_STREAM, "127.0.0.1", 80);
    try("low-door", SOCK_STREAM, "127.0.0.1", 1008);
    try("low-asking", SOCK_STREAM, "127.0.0.1", 1011);
    try("low-door6", SOCK_STREAM, "::", 1009);
    try("device-v4", SOCK_STREAM, "127.0.0.2", base);
    try("device-far", SOCK_STREAM, "192.0.2.1", base);
    try("device-mapped", SOCK_STREAM, "::ffff:192.0.2.1", base);
    try("device-link", SOCK_STREAM, "fe80::1", base);
    try("device-v6", SOCK_STREAM, "2001:db8::1", base);
    try("device-udp", SOCK_DGRAM, "127.0.0.2", base);
}

static void options(int outside)
{
    static const struct { const char *name; int level, option; } all[] = {
        { "option-reuseport", SOL_SOCKET, SO_REUSEPORT },
        { "option-reuseaddr", SOL_SOCKET, SO_REUSEADDR },
        { "option-freebind", IPPROTO_IP, 15 /* IP_FREEBIND */ },
        { "option-no-port", IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
    };
    struct sockaddr_storage where;
    socklen_t length = spell(&where, "127.0.0.1", outside);
    int on = 1;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, all[i].level, all[i].option, &on, sizeof on);
        say(all[i].name, fd, do_bind(fd, &where, length));
        close(fd);
    }
}

static void oddities(int outside)
{
    struct sockaddr_storage where;
    struct sockaddr_in *four = (void *)&where;
    socklen_t length = spell(&where, "0.0.0.0", outside);
    int fd = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0), copy;

    four->sin_family = AF_UNSPEC;
    say("outside-unspec", fd, do_bind(fd, &where, length));
    say("outside-long", fd, do_bind(fd, &where, sizeof where));
    say("odd-short", fd, do_bind(fd, &where, 8));
    say("odd-huge", fd, do_bind(fd, &where, 1 << 20));
    say("odd-null", fd, do_bind(fd, NULL, 16));
    say("odd-kernel", fd, do_bind(fd, (void *)-4096L, 16));
    say("odd-number", fd, do_bind(1000, &where, length));
    say("odd-file", fd, do_bind(0, &where, length));
    spell(&where, "127.0.0.1", outside);
    say("odd-family", six, do_bind(six, &where, sizeof(struct sockaddr_in6)));
    spell(&where, "::1", outside);
    say("odd-family4", fd, do_bind(fd, &where, sizeof(struct sockaddr_in)));
    copy = dup(fd);
    length = spell(&where, "127.0.0.1", outside);
    say("outside-dup", copy, do_bind(copy, &where, length));
    say("odd-multipath", fd, socket(AF_INET, SOCK_STREAM, 262) < 0);
}

static void twins(void)
{
    struct sockaddr_storage where;
    socklen_t length = spell(&where, "0.0.0.0", base + 7);
    int fd = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0), on = 1;

    try("twin-v4", SOCK_STREAM, "127.0.0.1", base + 1);
    try("twin-any", SOCK_STREAM, "0.0.0.0", base + 2);
    try("twin-v6", SOCK_STREAM, "::1", base + 3);
    try("twin-any6", SOCK_STREAM, "::", base + 4);
    try("twin-mapped", SOCK_STREAM, "::ffff:127.0.0.1", base + 5);
    try("twin-udp", SOCK_DGRAM, "127.0.0.1", base + 6);
    try("twin-last", SOCK_STREAM, "127.0.0.1", last);
    try("twin-zero", SOCK_STREAM, "127.0.0.1", 0);
    try("twin-zero6", SOCK_STREAM, "::1", 0);
    try("twin-zero-udp", SOCK_DGRAM, "0.0.0.0", 0);
    ((struct sockaddr_in *)&where)->sin_family = AF_UNSPEC;
    say("twin-unspec", fd, do_bind(fd, &where, length) || do_listen(fd));
    fd = socket(AF_INET, SOCK_STREAM, 0);
    say("twin-unbound", fd, do_listen(fd));
    say("twin-unbound6", six, do_listen(six));
    length = spell(&where, "127.0.0.1", base + 8);
    for (int i = 0; i < 2; i++) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        say(i ? "twin-shared-again" : "twin-shared", fd, do_bind(fd, &where, length) || do_listen(fd));
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    length = spell(&where, "127.0.0.1", 0);
    say("twin-zero-no-port", fd, do_bind(fd, &where, length) || do_listen(fd));
}

int main(int count, char **words)
{
    char byte;

    if (count != 3)
        return 2;
    raw = strcmp(words[1], "raw") == 0;
    base = atoi(getenv("LISTENING_BASE_PORT"));
    last = base + atoi(getenv("LISTENING_PORT_COUNT")) - 1;
    spellings(atoi(words[2]));
    options(atoi(words[2]));
    oddities(atoi(words[2]));
    twins();
    puts("done");
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}
