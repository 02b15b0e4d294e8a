#include "call_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "caller.h"
#include "reports.h"

#define PAGE 4096UL
#define SHORT_PATH 256UL /* most paths are shorter */

/* The path at *address*: its length, or 0 for one that is empty or cannot be read, which the kernel refuses too. */
static size_t path_text(pid_t pid, uint64_t address, char *into, size_t size)
{
    size_t length = 0;

    while (address != 0 && length < size) {
        size_t part = PAGE - ((address + length) & (PAGE - 1));
        ssize_t got;
        char *end;

        if (part > SHORT_PATH && length == 0)
            part = SHORT_PATH;
        if (part > size - length)
            part = size - length;
        got = caller_memory(pid, address + length, into + length, part);
        if (got <= 0)
            return 0;
        end = memchr(into + length, '\0', (size_t)got);
        if (end != NULL)
            return (size_t)(end - into);
        length += (size_t)got;
    }
    return 0;
}

size_t full_path(const struct seccomp_notif *call, const struct path_row *row, char *into)
{
    char given[PATH_MAX];
    size_t length = path_text((pid_t)call->pid, call->data.args[row->path], given, sizeof given);
    size_t above = 0;

    if (length == 0)
        return 0;
    if (given[0] != '/') {
        int folder = row->folder == NO_ARGUMENT ? AT_FDCWD : (int)call->data.args[row->folder];
        char what[32] = "cwd";

        if (folder != AT_FDCWD)
            snprintf(what, sizeof what, "fd/%d", folder);
        above = caller_link((pid_t)call->pid, what, into, PATH_MAX);
        if (row->tells & TELLS && (above == 0 ? errno == ENAMETOOLONG : above + 1 + length >= PATH_MAX))
            count_unreported();
        if (above == 0 || into[0] != '/' || above + 1 + length >= PATH_MAX)
            return 0;
        into[above++] = '/';
    }
    memcpy(into + above, given, length + 1);
    return above + length;
}
