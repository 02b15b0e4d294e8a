/* Races of a session of the broker for a server of the host: MODE ROUNDS GOOD-PORT BAD-PORT. GOOD is a port of the session's
 * localhost, where this program itself listens; BAD is where the host's server listens, at 127.0.0.1 and every address. Prints
 * how many calls were made and how many succeeded. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NUMBER 100 /* the descriptor that is swapped */

static struct sockaddr_in shared;
static struct sockaddr_in places[2];
static atomic_int over;

static struct sockaddr_in place(const char *address, const char *port)
{
    struct sockaddr_in made = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

    inet_pton(AF_INET, address, &made.sin_addr);
    return made;
}

static void *flip(void *unused)
{
    while (!over)
        for (int each = 0; each < 2; each++) {
            memcpy(&shared, &places[each], sizeof shared);
            __asm__ volatile("" ::: "memory"); /* or the compiler leaves the first of two copies out */
        }
    return unused;
}

static void *swap(void *type)
{
    int kind = *(int *)type;

    while (!over) {
        int stream = socket(AF_INET, kind, 0);
        int other = socket(AF_UNIX, SOCK_STREAM, 0);

        for (int each = 0; each < 20; each++) {
            dup2(other, NUMBER);
            dup2(stream, NUMBER);
        }
        close(stream);
        close(other);
    }
    return NULL;
}

static void *reopen(void *unused)
{
    while (!over) {
        int made = socket(AF_INET, SOCK_STREAM, 0);

        dup2(made, NUMBER);
        close(made);
        usleep(100); /* long enough for a call now and then */
        close(NUMBER);
    }
    return unused;
}

static void *accept_all(void *listener)
{
    int peer;

    while ((peer = accept(*(int *)listener, NULL, NULL)) >= 0 || !over)
        if (peer >= 0)
            close(peer);
    return NULL;
}

static int one(const char *mode, int round)
{
    int sends = strstr(mode, "sendto") != NULL;
    int swaps = strncmp(mode, "swap", 4) == 0 || strcmp(mode, "reopen") == 0;
    int socket_used = swaps ? NUMBER : socket(AF_INET, sends ? SOCK_DGRAM : SOCK_STREAM, 0);
    const struct sockaddr_in *aim = swaps ? &places[round % 2] : &shared;
    int done;

    if (sends)
        done = sendto(socket_used, "secret\n", 7, MSG_NOSIGNAL, (const void *)aim, sizeof *aim) > 0;
    else if (strstr(mode, "bind") != NULL)
        done = bind(socket_used, (const void *)aim, sizeof *aim) == 0 && listen(socket_used, 1) == 0;
    else
        done = connect(socket_used, (const void *)aim, sizeof *aim) == 0;
    if (!sends && done)
        send(socket_used, "secret\n", 7, MSG_NOSIGNAL);
    if (!swaps)
        close(socket_used);
    return done;
}

int main(int count, char **words)
{
    int kind = strstr(words[1], "sendto") != NULL ? SOCK_DGRAM : SOCK_STREAM;
    int rounds = atoi(words[2]);
    int reached = 0;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t threads[2];

    places[0] = place("127.0.0.1", words[3]);
    places[1] = place(strstr(words[1], "away") != NULL ? "192.0.2.1" : "127.0.0.1", words[4]);
    shared = places[0];
    if (strstr(words[1], "bind") == NULL
        && (bind(listener, (void *)&places[0], sizeof shared) || listen(listener, 4096)))
        return 1;
    pthread_create(&threads[0], NULL, accept_all, &listener);
    pthread_create(&threads[1], NULL,
                   strncmp(words[1], "swap", 4) == 0          ? swap
                       : strcmp(words[1], "reopen") == 0 ? reopen
                                                         : flip,
                   &kind);
    for (int round = 0; round < rounds || (reached == 0 && round < 20 * rounds); round++)
        reached += one(words[1], round);
    over = 1;
    printf("%d %d\n", rounds, reached);
    fflush(stdout);
    _exit(count != 5);
}
