#include "caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trap_pool.h"

static int open_memory(pid_t pid, int flags)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/%d/mem", (int)pid);
    return open(name, flags | O_CLOEXEC);
}

/* Where process_vm_readv(2) is refused, as by some containers' filters, the file that stands for the memory is not. */
static ssize_t read_file(pid_t pid, uint64_t address, void *into, size_t size)
{
    int file = open_memory(pid, O_RDONLY);
    ssize_t done;

    if (file < 0)
        return -1;
    done = pread(file, into, size, (off_t)address);
    close(file);
    if (done < 0 && errno == EIO)
        errno = EFAULT;
    return done;
}

ssize_t caller_memory(pid_t pid, uint64_t address, void *into, size_t size)
{
    struct iovec here = { into, size };
    struct iovec there = { (void *)(uintptr_t)address, size };
    ssize_t done = process_vm_readv(pid, &here, 1, &there, 1, 0);

    return done < 0 && (errno == EPERM || errno == ENOSYS) ? read_file(pid, address, into, size) : done;
}

int caller_store(const struct seccomp_notif *call, uint64_t address, const void *from, size_t size)
{
    int file = open_memory((pid_t)call->pid, O_WRONLY);
    int is_stored = file >= 0 && is_waiting(call) && pwrite(file, from, size, (off_t)address) == (ssize_t)size;

    if (file >= 0)
        close(file);
    return is_stored;
}

size_t caller_link(pid_t pid, const char *what, char *into, size_t size)
{
    char name[64];
    ssize_t length;

    snprintf(name, sizeof name, "/proc/%d/%s", (int)pid, what);
    length = readlink(name, into, size - 1);
    if (length < 0 || (size_t)length >= size - 1)
        length = 0;
    into[length] = '\0';
    return (size_t)length;
}

const char *status_field(pid_t pid, const char *name)
{
    static _Thread_local char text[8192];
    char path[64];
    const char *found;
    ssize_t length;
    int file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    found = strstr(text, name);
    return found == NULL ? "" : found + strlen(name);
}

pid_t process_of(pid_t thread)
{
    return (pid_t)strtol(status_field(thread, "\nTgid:"), NULL, 10);
}

int signal_waits(pid_t pid)
{
    uint64_t blocked = strtoull(status_field(pid, "\nSigBlk:"), NULL, 16);
    uint64_t ours = strtoull(status_field(pid, "\nSigPnd:"), NULL, 16);
    uint64_t shared = strtoull(status_field(pid, "\nShdPnd:"), NULL, 16);

    return ours & ~blocked ? 2 : shared & ~blocked ? 1 : 0;
}
