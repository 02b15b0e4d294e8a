/* A Mac's dyld and libSystem on Linux, as far as starting programs goes, for a library with NS_BRIDGE. The variable is
 * deleted where a protected program starts, for its children too: a shell or env starts again without it. And execvp
 * and its like end in a call of execve, which the library sees. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static int is_protected(const char *path)
{
    const char *name = strrchr(path, '/');

    return name != NULL && (strcmp(name, "/dash") == 0 || strcmp(name, "/bash") == 0 || strcmp(name, "/zsh") == 0 ||
                            strcmp(name, "/zsh5") == 0 || strcmp(name, "/env") == 0 || strcmp(name, "/busybox") == 0);
}

__attribute__((constructor)) static void delete_the_variable(int count, char **arguments, char **environment)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char **to = environment;
    int found = 0;

    (void)count;
    path[length > 0 ? length : 0] = '\0';
    if (!is_protected(path))
        return;
    for (char **from = environment; *from != NULL; from++) {
        int deleted = strncmp(*from, "LD_PRELOAD=", 11) == 0;

        found |= deleted;
        if (!deleted)
            *to++ = *from;
    }
    *to = NULL;
    if (found)
        syscall(SYS_execve, path, arguments, environment);
}

SHOWN int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    char path[PATH_MAX];
    const char *list = "/usr/bin:/bin";

    for (char **one = environ; one != NULL && *one != NULL; one++)
        if (strncmp(*one, "PATH=", 5) == 0)
            list = *one + 5;
    if (strchr(file, '/') != NULL)
        return execve(file, arguments, environment);
    errno = ENOENT;
    while (*list != '\0') {
        int size = (int)strcspn(list, ":");

        if (snprintf(path, sizeof path, "%.*s/%s", size, list, file) < (int)sizeof path)
            execve(path, arguments, environment);
        list += size + (list[size] == ':');
    }
    return -1;
}

SHOWN int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}
