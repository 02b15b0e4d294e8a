/* What the programs that measure localhost share: the clock, an address, and the end when something fails. */
#ifndef NETSANDBOX_BENCH_LOOPBACK_H
#define NETSANDBOX_BENCH_LOOPBACK_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void stop(const char *what)
{
    perror(what);
    exit(1);
}

static inline long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static inline struct sockaddr_in place(const char *address, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &name.sin_addr) != 1)
        stop(address);
    return name;
}

#endif
