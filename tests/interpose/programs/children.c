/* Every way to start a program, each with an environment that lost the library. Arguments: a way, then what to run. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *empty[] = {NULL};
static char *foreign[] = {"A=1", "LD_PRELOAD=/nonexistent/other.so", "NETSANDBOX_PORT_MAP=/nonexistent", NULL};

static int start(const char *way, char **what)
{
    const char *path = what[0];

    if (strcmp(way, "execve") == 0)
        return execve(path, what, empty);
    if (strcmp(way, "execve-null") == 0)
        return execve(path, what, NULL);
    if (strcmp(way, "execve-foreign") == 0)
        return execve(path, what, foreign);
    if (strcmp(way, "execle") == 0)
        return execle(path, path, what[1], what[2], (char *)NULL, empty);
    if (strcmp(way, "execvpe") == 0)
        return execvpe(path, what, empty);
    if (strcmp(way, "fexecve") == 0)
        return fexecve(open(path, O_RDONLY | O_CLOEXEC), what, empty);
    if (strcmp(way, "execveat") == 0)
        return execveat(open(path, O_PATH | O_CLOEXEC), "", what, empty, 0x1000 /* AT_EMPTY_PATH */);
    clearenv();
    if (strcmp(way, "execv") == 0)
        return execv(path, what);
    if (strcmp(way, "execvp") == 0)
        return execvp(path, what);
    if (strcmp(way, "execl") == 0)
        return execl(path, path, what[1], what[2], (char *)NULL);
    if (strcmp(way, "execlp") == 0)
        return execlp(path, path, what[1], what[2], (char *)NULL);
    return -1;
}

int main(int count, char **arguments)
{
    const char *way = arguments[1];
    char **what = arguments + 2;
    int status;
    pid_t child;

    if (count < 3)
        return 2;
    if (strcmp(way, "posix_spawn") == 0) {
        if (posix_spawn(&child, what[0], NULL, NULL, what, empty) != 0)
            return 3;
    } else if (strcmp(way, "posix_spawnp") == 0) {
        if (posix_spawnp(&child, what[0], NULL, NULL, what, empty) != 0)
            return 3;
    } else if (strcmp(way, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execve(what[0], what, empty);
            _exit(3);
        }
    } else {
        return start(way, what) != 0 ? 3 : 0;
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
