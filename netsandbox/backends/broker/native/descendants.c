#include "descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#define MAX_PROCESSES 65536
#define QUICK_ROUNDS 200  /* then all processes are looked at */
#define BLIND_ROUNDS 300  /* without a list of processes */
#define SPARE 4           /* two folders and two files may be open at a time */
#define PATIENT_ROUNDS 250 /* then something forks as fast as we kill, and is stopped first */

struct process {
    pid_t pid;
    pid_t parent;
};

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char text[512];
    char *end;
    ssize_t length;
    int parent = 0;
    int file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    end = strrchr(text, ')'); /* a program may call itself anything */
    if (end == NULL || sscanf(end + 1, " %*c %d", &parent) != 1)
        return 0;
    return (pid_t)parent;
}

static struct process *all_processes(size_t *count)
{
    DIR *entries = opendir("/proc");
    struct process *found = malloc(MAX_PROCESSES * sizeof *found);
    struct dirent *each;

    *count = 0;
    while (entries != NULL && found != NULL && *count < MAX_PROCESSES && (each = readdir(entries)) != NULL) {
        pid_t pid = (pid_t)strtol(each->d_name, NULL, 10);

        if (pid > 0 && (found[*count].parent = parent_of(pid)) > 0)
            found[(*count)++].pid = pid;
    }
    if (entries != NULL)
        closedir(entries);
    else {
        free(found);
        found = NULL;
    }
    return found;
}

/* Whether *pid* is among the first *count* of a list. */
static int is_listed(pid_t pid, const pid_t *list, size_t count)
{
    for (size_t number = 0; number < count; number++)
        if (list[number] == pid)
            return 1;
    return 0;
}

pid_t *descendants(size_t *count)
{
    size_t all;
    struct process *processes = all_processes(&all);
    pid_t *below = processes == NULL ? NULL : malloc((all + 1) * sizeof *below);
    size_t known;

    *count = 0;
    if (below == NULL) {
        free(processes);
        return NULL;
    }
    below[0] = getpid();
    known = 1;
    for (size_t before = 0; before != known;) {
        before = known;
        for (size_t number = 0; number < all; number++)
            if (processes[number].pid > 0 && is_listed(processes[number].parent, below, known)) {
                below[known++] = processes[number].pid;
                processes[number].pid = -1;
            }
    }
    memmove(below, below + 1, (known - 1) * sizeof *below);
    *count = known - 1;
    free(processes);
    return below;
}

int is_descendant(pid_t pid)
{
    pid_t own = getpid();

    for (int steps = 0; pid > 1 && steps < MAX_PROCESSES; steps++) {
        pid = parent_of(pid);
        if (pid == own)
            return 1;
    }
    return 0;
}

int signal_descendant(pid_t pid, int number)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0U);
    int error;

    if (process < 0)
        return errno == EINVAL ? ESRCH : errno;
    error = !is_descendant(pid) ? EPERM : syscall(SYS_pidfd_send_signal, process, number, NULL, 0U) < 0 ? errno : 0;
    close(process);
    return error;
}

int signal_descendants(int number)
{
    size_t count;
    pid_t *below = descendants(&count);
    int is_known = below != NULL;

    for (size_t each = 0; below != NULL && each < count; each++) {
        int error = signal_descendant(below[each], number);

        is_known = is_known && error != EMFILE && error != ENFILE && error != ENOMEM;
    }
    free(below);
    return is_known;
}

/* A session can make us use up all descriptors, and its processes cannot be listed without one. */
static int spare[SPARE] = { -1, -1, -1, -1 };

void keep_spare_descriptors(void)
{
    for (size_t number = 0; number < SPARE; number++)
        spare[number] = open("/", O_PATH | O_CLOEXEC);
}

static void use_spare_descriptors(void)
{
    for (size_t number = 0; number < SPARE; number++) {
        if (spare[number] >= 0)
            close(spare[number]);
        spare[number] = -1;
    }
}

/* Kills the children that the kernel lists for each of our threads, which is much faster than a look at all processes.
 * What they leave are our children then. 0 if there is no such list. */
static int kill_children(void)
{
    DIR *threads = opendir("/proc/self/task");
    struct dirent *thread;
    int is_listed_here = 0;

    while (threads != NULL && (thread = readdir(threads)) != NULL) {
        char path[64];
        FILE *children;
        int pid;

        snprintf(path, sizeof path, "/proc/self/task/%.20s/children", thread->d_name);
        children = thread->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (children == NULL)
            continue;
        is_listed_here = 1;
        while (fscanf(children, "%d", &pid) == 1)
            kill((pid_t)pid, SIGKILL);
        fclose(children);
    }
    if (threads != NULL)
        closedir(threads);
    return is_listed_here;
}

void kill_descendants(void)
{
    const struct timespec moment = { .tv_nsec = 50000 };
    const struct timespec longer = { .tv_nsec = 1000000 };
    int blind = 0;

    use_spare_descriptors();
    for (int round = 0;; round++) {
        pid_t ended = waitpid(-1, NULL, WNOHANG);

        if (ended > 0)
            continue;
        if (ended < 0 && errno == ECHILD)
            return;
        if (round < QUICK_ROUNDS && kill_children()) {
            nanosleep(&moment, NULL);
            continue;
        }
        if (round > PATIENT_ROUNDS)
            signal_descendants(SIGSTOP);
        blind = signal_descendants(SIGKILL) ? 0 : blind + 1;
        if (blind > BLIND_ROUNDS)
            _exit(1); /* the keeper sees that, and has descriptors of its own */
        nanosleep(&longer, NULL);
    }
}

void end_session(void)
{
    kill_descendants();
    _exit(1);
}
