/* Races for a Unix socket of the host, from inside a session: unix_races MODE ROUNDS, in a folder with host.sock.
 * Prints the calls that were made, and how often the session's own socket was reached. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static atomic_int over;
static atomic_long calls, reached;
static long rounds;
static int swapped = 500;
static struct sockaddr_un flipped;

static void aim(struct sockaddr_un *address, const char *path)
{
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, path);
    atomic_signal_fence(memory_order_seq_cst); /* the other thread must see each of them */
}

static int serve(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int server = socket(AF_UNIX, SOCK_STREAM, 0);

    aim(&address, path);
    unlink(path);
    if (bind(server, (struct sockaddr *)&address, sizeof address) < 0 || listen(server, 4096) < 0)
        perror(path);
    return server;
}

static void *accept_all(void *server)
{
    for (int came; (came = accept(*(int *)server, NULL, NULL)) >= 0;)
        close(came);
    return NULL;
}

/* One call with the address as it is at the moment. */
static void try(int descriptor, const struct sockaddr_un *address)
{
    calls++;
    if (connect(descriptor, (const struct sockaddr *)address, sizeof *address) == 0)
        reached++;
}

static void *disturb(void *mode)
{
    const char *how = mode;

    while (!over) {
        if (strcmp(how, "address") == 0) {
            aim(&flipped, "host.sock");
            sched_yield(); /* both must be seen */
            aim(&flipped, "good.sock");
            sched_yield();
        } else if (strcmp(how, "exchange") == 0) {
            renameat2(AT_FDCWD, "good.sock", AT_FDCWD, "host.sock", RENAME_EXCHANGE);
        } else if (strcmp(how, "hardlink") == 0) {
            unlink("link");
            usleep(link("host.sock", "link") == 0);
            unlink("link");
            usleep(link("good.sock", "link") == 0);
        } else if (strcmp(how, "symlink") == 0) {
            unlink("link");
            usleep(symlink("host.sock", "link") == 0);
            unlink("link");
            usleep(symlink("good.sock", "link") == 0);
        } else if (strcmp(how, "folder") == 0) {
            renameat2(AT_FDCWD, "mine", AT_FDCWD, "theirs", RENAME_EXCHANGE);
        } else if (strcmp(how, "inode") == 0) { /* the number of a dead stand-in is used again */
            int server = serve("again.sock");

            usleep(1);
            close(server);
            unlink("again.sock");
            usleep(link("host.sock", "again.sock") == 0);
        } else { /* descriptor */
            int internet = socket(AF_INET, SOCK_STREAM, 0);
            int local = socket(AF_UNIX, SOCK_STREAM, 0);

            for (int turn = 0; turn < 20; turn++) {
                dup2(internet, swapped);
                dup2(local, swapped);
            }
            close(internet);
            close(local);
        }
    }
    return NULL;
}

static void *attack(void *mode)
{
    const char *how = mode;
    struct sockaddr_un target;
    const char *path = strcmp(how, "exchange") == 0 ? "good.sock"
        : strcmp(how, "folder") == 0               ? "mine/s.sock"
        : strcmp(how, "inode") == 0                ? "again.sock"
                                                   : "link";

    while (calls < rounds) {
        if (strcmp(how, "descriptor") == 0) {
            aim(&target, calls % 2 ? "host.sock" : "good.sock");
            try(swapped, &target);
            continue;
        }
        int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);

        aim(&target, path);
        try(descriptor, strcmp(how, "address") == 0 ? &flipped : &target);
        close(descriptor);
    }
    over = 1;
    return NULL;
}

/* The session binds under a name that is exchanged, and programs of the host connect to whatever is there. */
static void *bind_often(void *unused)
{
    while (calls < rounds) {
        int server = socket(AF_UNIX, SOCK_STREAM, 0);

        unlink("bound.sock");
        calls++;
        if (bind(server, (struct sockaddr *)&flipped, sizeof flipped) == 0 && listen(server, 1) == 0) {
            struct sockaddr_un peer;
            socklen_t length = sizeof peer;
            int came;

            reached++;
            fcntl(server, F_SETFL, O_NONBLOCK);
            came = accept(server, (struct sockaddr *)&peer, &length);
            if (came >= 0) {
                puts("the host came in");
                exit(3);
            }
        }
        close(server);
    }
    over = 1;
    return unused;
}

static void *flip_bound(void *unused)
{
    while (!over) {
        aim(&flipped, "host.sock");
        sched_yield();
        aim(&flipped, "bound.sock");
        sched_yield();
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[6];
    int servers[2];

    if (argc != 3)
        return 1;
    rounds = atol(argv[2]);
    dup2(0, swapped);
    if (strcmp(argv[1], "bind") == 0) {
        aim(&flipped, "bound.sock");
        pthread_create(&threads[0], NULL, bind_often, NULL);
        pthread_create(&threads[1], NULL, flip_bound, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        printf("%ld %ld\n", (long)calls, (long)reached);
        return 0;
    }
    mkdir("mine", 0755);
    mkdir("theirs", 0755);
    servers[0] = serve("good.sock");
    servers[1] = serve("mine/s.sock");
    if (link("host.sock", "theirs/s.sock") < 0)
        perror("theirs/s.sock");
    aim(&flipped, "good.sock");
    for (int number = 0; number < 2; number++)
        pthread_create(&threads[4 + number], NULL, accept_all, &servers[number]);
    for (int number = 0; number < 2; number++) {
        pthread_create(&threads[number], NULL, disturb, argv[1]);
        pthread_create(&threads[2 + number], NULL, attack, argv[1]);
    }
    for (int number = 0; number < 4; number++)
        pthread_join(threads[number], NULL);
    printf("%ld %ld\n", (long)calls, (long)reached);
    return 0;
}
