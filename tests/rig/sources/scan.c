/* A server with a secret, and a scanner of everything that might be somebody else's.
 *
 * scan SECRET PORT: listens on PORT of 127.0.0.1 and gives SECRET to whoever connects; says "listening"; reads one line
 * of words "ADDRESS:FIRST-LAST" (IPv6 without brackets, the last colon counts); connects to each of those ports, one after
 * another, and prints "ADDRESS PORT WORD" for each that is open, where WORD is what it said within a moment, or "-"; says
 * "done COUNT REFUSED", the attempts and those that were refused; serves on until its input ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 500
#define OWN_PATIENCE_MS 60000 /* it answers, whatever else the machine does */

static const char *secret;
static int own_port;
static long attempts, refused;

static void *serve(void *argument)
{
    int listener = *(int *)argument;

    for (;;) {
        int visitor = accept(listener, NULL, NULL);
        if (visitor < 0)
            continue;
        if (write(visitor, secret, strlen(secret)) < 0)
            perror("write");
        close(visitor);
    }
    return NULL;
}

static socklen_t spell(const char *address, int port, struct sockaddr_storage *name)
{
    struct sockaddr_in *four = (void *)name;
    struct sockaddr_in6 *six = (void *)name;

    memset(name, 0, sizeof *name);
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        return sizeof *four;
    }
    if (inet_pton(AF_INET6, address, &six->sin6_addr) != 1)
        exit(2);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    return sizeof *six;
}

static void listen_to(int fd, const char *address, int port)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    char heard[64] = "";
    int patience = port == own_port && strcmp(address, "127.0.0.1") == 0 ? OWN_PATIENCE_MS : PATIENCE_MS;
    ssize_t got = poll(&one, 1, patience) > 0 ? read(fd, heard, sizeof heard - 1) : 0;

    for (ssize_t i = 0; i < got; i++)
        if (heard[i] <= ' ' || heard[i] > '~')
            heard[i] = '_';
    printf("%s %d %s\n", address, port, got > 0 ? heard : "-");
}

/* The kernel may lend the port that is tried as the source: then the socket has met itself, and is tried again. */
static int met_itself(int fd, const struct sockaddr_storage *name, socklen_t length)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;

    return getsockname(fd, (void *)&own, &size) == 0 && memcmp(&own, name, length) == 0;
}

/* A socket of IPv4 that was refused is tried again with the next port: a new one for each costs as much as the attempt. */
static void try(const char *address, int port)
{
    static int kept = -1;
    struct sockaddr_storage name;
    socklen_t length = spell(address, port, &name);
    int fd = name.ss_family == AF_INET && kept >= 0 ? kept : socket(name.ss_family, SOCK_STREAM, 0);
    int failed = connect(fd, (void *)&name, length);

    while (failed == 0 && met_itself(fd, &name, length)) {
        close(fd);
        fd = socket(name.ss_family, SOCK_STREAM, 0);
        failed = connect(fd, (void *)&name, length);
    }
    if (name.ss_family == AF_INET)
        kept = -1;
    attempts++;
    if (failed == 0) {
        listen_to(fd, address, port);
    } else if (errno == ECONNREFUSED) {
        refused++;
        if (name.ss_family == AF_INET) {
            kept = fd;
            return;
        }
    } else {
        printf("%s %d error-%d\n", address, port, errno);
    }
    close(fd);
}

static void scan(char *line)
{
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        char *colon = strrchr(word, ':');
        int first, last;

        *colon = '\0';
        if (sscanf(colon + 1, "%d-%d", &first, &last) != 2)
            exit(3);
        for (int port = first; port <= last; port++)
            try(word, port);
    }
}

int main(int count, char **words)
{
    static char line[1 << 16];
    struct sockaddr_storage name;
    socklen_t length = spell("127.0.0.1", atoi(words[2]), &name);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t server;

    secret = words[1];
    own_port = atoi(words[2]);
    if (count != 3 || bind(listener, (void *)&name, length) != 0 || listen(listener, 64) != 0) {
        perror("listen");
        return 1;
    }
    pthread_create(&server, NULL, serve, &listener);
    puts("listening");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 4;
    scan(line);
    printf("done %ld %ld\n", attempts, refused);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL)
        continue;
    return 0;
}
