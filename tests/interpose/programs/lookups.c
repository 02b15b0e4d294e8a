/* Looks names up, one line each. Arguments: info FAMILY FLAGS SERVICE NAME…, or host FAMILY NAME…, or threads NAME. */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define THREADS 8
#define ROUNDS 20

static void print_address(const struct addrinfo *one)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *v4 = (const void *)one->ai_addr;
    const struct sockaddr_in6 *v6 = (const void *)one->ai_addr;

    if (one->ai_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    else
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    printf(" %s:%d/%d", text, ntohs(v4->sin_port), one->ai_socktype);
}

static void print_info(const char *name, const char *service, const struct addrinfo *hints)
{
    struct addrinfo *found = NULL;
    int error = getaddrinfo(name, service, hints, &found);

    if (error != 0)
        printf("error %d", error);
    else
        printf("%s", found->ai_canonname ? found->ai_canonname : "-");
    for (struct addrinfo *one = found; one != NULL; one = one->ai_next)
        print_address(one);
    printf("\n");
    if (found != NULL)
        freeaddrinfo(found);
}

static void print_host(const char *name, int family)
{
    struct hostent *host = family == 0 ? gethostbyname(name) : gethostbyname2(name, family);
    char text[INET6_ADDRSTRLEN];

    if (host == NULL) {
        printf("error %d\n", h_errno);
        return;
    }
    printf("%s %d", host->h_name, host->h_aliases[0] == NULL);
    for (char **one = host->h_addr_list; *one != NULL; one++)
        printf(" %s", inet_ntop(host->h_addrtype, *one, text, sizeof text));
    printf("\n");
}

static void *look_up(void *name)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    long lost = 0;

    for (int turn = 0; turn < ROUNDS; turn++) {
        struct addrinfo *found = NULL;
        struct hostent *host = gethostbyname(name);

        lost += host == NULL || strcmp(host->h_name, name) != 0;
        lost += getaddrinfo(name, "80", &hints, &found) != 0;
        if (found != NULL)
            freeaddrinfo(found);
    }
    return (void *)lost;
}

static void print_threads(char *name)
{
    pthread_t threads[THREADS];
    long lost = 0;

    for (int one = 0; one < THREADS; one++)
        pthread_create(&threads[one], NULL, look_up, name);
    for (int one = 0; one < THREADS; one++) {
        void *result;

        pthread_join(threads[one], &result);
        lost += (long)result;
    }
    printf("lost %ld\n", lost);
}

int main(int count, char **arguments)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

    if (strcmp(arguments[1], "threads") == 0)
        print_threads(arguments[2]);
    if (strcmp(arguments[1], "host") == 0)
        for (int one = 3; one < count; one++)
            print_host(arguments[one], atoi(arguments[2]));
    if (strcmp(arguments[1], "info") == 0) {
        hints.ai_family = atoi(arguments[2]);
        hints.ai_flags = atoi(arguments[3]);
        for (int one = 5; one < count; one++)
            print_info(arguments[one], arguments[4][0] ? arguments[4] : NULL, &hints);
    }
    return 0;
}
